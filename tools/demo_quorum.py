"""The live half of the demo: a quorum, its clients, what it survives, and what the wire shows.

A leader is killed, a new controller takes its place among the voters, and a wiped one comes back
from a snapshot.

Owns the story; all that is printed comes from real clients of a real quorum on this machine, whose
files live in a temporary folder and go with it, except for a capture of its traffic.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from kraftwire.cli.main import main as kraftwire
from kraftwire.errors import KraftwireError
from kraftwire.testing import Quorum, quorum
from tools.merge_captures import merge

__all__ = ["show_quorum"]

_CATCH_UP_SECONDS_MAX = 30

# Asked of the quorum by an admin client that knows nothing of kraftwire.
_CLIENT = """
import sys
from kafka import KafkaAdminClient
client = KafkaAdminClient(bootstrap_servers=sys.argv[1].split(","))
cluster = client.describe_cluster()
print("cluster", cluster["cluster_id"], "with nodes",
      ", ".join(f"{n['broker_id']} at {n['host']}:{n['port']}" for n in cluster["brokers"]))
topic = client.describe_metadata_quorum()["topics"][0]["partitions"][0]
print("leader", topic["leader_id"], "of epoch", topic["leader_epoch"],
      "with high watermark", topic["high_watermark"])
for voter in topic["current_voters"]:
    print("  voter", voter["replica_id"], "has the log up to", voter["log_end_offset"])
client.close()
"""


def show_quorum(kept: Path) -> int:
    """Start, describe, kill, replace, wipe, stop, decode; returns the exit code.

    `kept` becomes the capture of all traffic.
    """
    with tempfile.TemporaryDirectory(prefix="kraftwire-demo-") as name:
        folder = Path(name)
        properties = {
            "kraftwire.capture.file": folder / "node{node}.pcapng",
            # Snapshots as often as a demo wants them, fetched in parts that show.
            "metadata.log.max.snapshot.interval.ms": 2000,
            "controller.quorum.fetch.snapshot.max.bytes": 1024,
            "controller.quorum.fetch.timeout.ms": 1000,
        }
        print("Three nodes start on free ports of this machine, with Kafka's own properties ...")
        started = time.monotonic()
        with quorum(nodes=3, folder=folder, properties=properties, dynamic=True) as nodes:
            print(f"... and are ready after {time.monotonic() - started:.1f} s.\n", flush=True)
            code = _tell(nodes)
        return code or _decode(folder, kept)


def _tell(nodes: Quorum) -> int:
    """Describe the quorum in three ways around the loss of its leader."""
    servers, controllers = nodes.bootstrap_servers, nodes.bootstrap_controllers
    _python_client(servers)
    code = _own_command(controllers)
    if code:
        return code
    leader = nodes.leader()
    nodes.kill(leader)
    killed = time.monotonic()
    successor = nodes.leader()
    took = time.monotonic() - killed
    print(f"Leader {leader} is killed (SIGKILL); {took:.1f} s later the leader is {successor}.\n")
    code = _own_command(_awake(nodes)) or _replace(nodes, leader) or _wipe(nodes)
    _kafkas_tool(_awake(nodes))
    for node_id in nodes.node_ids:
        if nodes.is_running(node_id):
            nodes.stop(node_id)
    print("All stop in good order.\n", flush=True)
    return code


def _replace(nodes: Quorum, dead: int) -> int:
    """Put a new controller in the place of a dead one."""
    old = next(one for one in nodes.admin().describe_quorum().voters if one.id == dead)
    new = nodes.add_node()
    _wait_caught_up(nodes, new)
    print(f"Controller {new} is new, has fetched the log, and takes the place of {dead}:\n")
    config = ("--command-config", str(nodes.config_file(new)))
    key = ("--controller-id", str(dead), "--controller-directory-id", old.directory_id)
    return _change(nodes, *config, "add-controller") or _change(nodes, "remove-controller", *key)


def _wipe(nodes: Quorum) -> int:
    """Let a controller lose its disk, and come back from a snapshot."""
    leader = nodes.leader()
    info = nodes.admin().describe_quorum()
    lost = next(one for one in info.voters if one.id != leader and nodes.is_running(one.id))
    nodes.kill(lost.id)
    nodes.wipe(lost.id)
    nodes.start(lost.id)
    _wait_caught_up(nodes, lost.id)
    folder = nodes.data_folder(lost.id) / "__cluster_metadata-0"
    snapshot = min(path.name for path in folder.glob("*.checkpoint"))
    print(f"Controller {lost.id} has lost its disk. It came back from the leader's snapshot")
    print(f"{snapshot}, as another replica of the same id:\n", flush=True)
    config = ("--command-config", str(nodes.config_file(lost.id)))
    key = ("--controller-id", str(lost.id), "--controller-directory-id", lost.directory_id)
    return _change(nodes, "remove-controller", *key) or _change(nodes, *config, "add-controller")


def _awake(nodes: Quorum) -> str:
    """The controller listeners of the nodes that run."""
    addresses = zip(nodes.node_ids, nodes.bootstrap_controllers.split(","), strict=True)
    return ",".join(address for node_id, address in addresses if nodes.is_running(node_id))


def _wait_caught_up(nodes: Quorum, node_id: int) -> None:
    """Return once an observer has all that is committed."""
    until = time.monotonic() + _CATCH_UP_SECONDS_MAX
    while time.monotonic() < until:
        info = nodes.admin().describe_quorum()
        ends = [one.log_end_offset for one in info.observers if one.id == node_id]
        if ends and max(ends) >= info.high_watermark > 0:
            return
        time.sleep(0.05)
    raise KraftwireError(f"node {node_id} does not catch up:\n{nodes.log(node_id)}")


def _change(nodes: Quorum, *arguments: str) -> int:
    """Run a voter change of the command line."""
    shown = [Path(each).name if each.endswith(".properties") else each for each in arguments]
    print(f"$ kraftwire quorum --bootstrap-controller ... {' '.join(shown)}\n", flush=True)
    code = kraftwire(["quorum", "--bootstrap-controller", _awake(nodes), *arguments])
    print(flush=True)
    return code


def _python_client(servers: str) -> None:
    """Ask with kafka-python, in a process of its own."""
    print("kafka-python, a client from PyPI, asks who they are:\n", flush=True)
    command = [sys.executable, "-c", _CLIENT, servers]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    print(_indented(result.stdout if result.returncode == 0 else result.stderr), flush=True)


def _own_command(controllers: str) -> int:
    arguments = ["quorum", "describe", "--status", "--bootstrap-controller", controllers]
    print(f"$ kraftwire {' '.join(arguments)}\n", flush=True)
    code = kraftwire(arguments)
    print(flush=True)
    return code


def _kafkas_tool(controllers: str) -> None:
    """Ask with kafka-metadata-quorum, where Java and Maven are there to fetch and run it."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        print("(Kafka's own tool is left out: it needs Java and Maven.)\n")
        return
    from tests.support.java import run_kafka_tool

    print("$ kafka-metadata-quorum --bootstrap-controller ... describe --replication\n", flush=True)
    main_class = "org.apache.kafka.tools.MetadataQuorumCommand"
    result = run_kafka_tool(
        main_class, "--bootstrap-controller", controllers, "describe", "--replication", check=False
    )
    print(_indented(result.stdout or result.stderr), flush=True)


def _decode(folder: Path, kept: Path) -> int:
    """Decode what the nodes recorded of each other."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    merge(sorted(folder.glob("*.pcapng")), kept)
    print("All of it was recorded by the nodes themselves (kraftwire.capture.file):\n")
    print(f"$ kraftwire decode {kept} --raft\n", flush=True)
    out = StringIO()
    with redirect_stdout(out):
        code = kraftwire(["decode", str(kept), "--raft", "--quiet"])
    print(out.getvalue(), end="", flush=True)
    return code


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())
