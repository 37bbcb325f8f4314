"""The live part of the demo: a quorum, another project's client, and a leader that is killed.

Owns the story; all that is printed comes from real clients of a real quorum on this machine, whose
files are removed with a temporary folder, except for a capture of its traffic.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from kraftwire.cli.main import main as kraftwire
from kraftwire.testing import Quorum, quorum
from tools.merge_captures import merge

# After this time a node's silence is noticed, and then it lasts long enough to be distinguished
# from a pause.
_HEARD_S = 3.0
_SILENT_S = 2.0

# Text after the timeline and the leaders is left for a second look.
_REST = "\nReplicas and their lag"

# An admin client that knows nothing of kraftwire queries the quorum.
_CLIENT = """
import sys
from kafka import KafkaAdminClient
client = KafkaAdminClient(bootstrap_servers=sys.argv[1].split(","))
topic = client.describe_metadata_quorum()["topics"][0]["partitions"][0]
print("leader", topic["leader_id"], "of epoch", topic["leader_epoch"],
      "with high watermark", topic["high_watermark"])
for voter in topic["current_voters"]:
    print("  voter", voter["replica_id"], "has the log up to", voter["log_end_offset"])
client.close()
"""


def show_quorum(kept: Path) -> int:
    """Start, ask, kill, wait, decode; returns the exit code.

    `kept` becomes the capture of all traffic.
    """
    with tempfile.TemporaryDirectory(prefix="kraftwire-demo-") as name:
        folder = Path(name)
        properties = {"kraftwire.capture.file": folder / "node{node}.pcapng"}
        print("Three nodes start on free ports of this machine, with Kafka's own properties ...",
              flush=True)  # fmt: skip
        started = time.monotonic()
        with quorum(nodes=3, folder=folder, properties=properties, dynamic=True) as nodes:
            ready = time.monotonic()
            print(f"... and are ready after {ready - started:.1f} s.\n", flush=True)
            _ask_as_python_client(nodes.bootstrap_servers)
            _sleep_until(ready + _HEARD_S)
            _kill_leader(nodes)
            # The quorum runs until its traffic is shown, so the story ends with the new leader.
            return _decode(folder, kept)


def _kill_leader(nodes: Quorum) -> None:
    leader = nodes.leader()
    nodes.kill(leader)
    killed = time.monotonic()
    successor = nodes.leader()
    took = time.monotonic() - killed
    print(f"Leader {leader} is killed (SIGKILL); {took:.1f} s later the leader is {successor}.\n")
    _sleep_until(killed + took + _SILENT_S)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _ask_as_python_client(servers: str) -> None:
    """Query the quorum with kafka-python, in a separate process."""
    print("kafka-python, a client from PyPI, asks who they are:\n", flush=True)
    command = [sys.executable, "-c", _CLIENT, servers]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    text = result.stdout if result.returncode == 0 else result.stderr
    print("".join(f"  {line}\n" for line in text.splitlines()), flush=True)


def _decode(folder: Path, kept: Path) -> int:
    """Decode the traffic that the nodes recorded."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    merge(sorted(folder.glob("*.pcapng")), kept)
    print("Each node recorded its traffic (kraftwire.capture.file). The packets say:\n")
    print(f"$ kraftwire story raft {kept}\n", flush=True)
    out = StringIO()
    with redirect_stdout(out):
        code = kraftwire(["story", "raft", str(kept), "--quiet"])
    story, _, rest = out.getvalue().partition(_REST)
    print(story.rstrip(), flush=True)
    print(f"\n(and {rest.count(chr(10))} lines on each replica's lag and the records of the log)")
    return code
