"""The live half of the demo: three nodes, their clients, a killed leader, and what the wire shows.

Owns the story; all that is printed comes from real clients of a real quorum on this machine, whose
files live in a temporary folder and go with it.
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
from kraftwire.testing import Quorum, quorum
from tools.merge_captures import merge

__all__ = ["show_quorum"]

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


def show_quorum() -> int:
    """Start, describe, kill, describe, stop, decode; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="kraftwire-demo-") as name:
        folder = Path(name)
        capture = {"kraftwire.capture.file": folder / "node{node}.pcapng"}
        print("Three nodes start on free ports of this machine, with Kafka's own properties ...")
        started = time.monotonic()
        with quorum(nodes=3, folder=folder, properties=capture) as nodes:
            print(f"... and are ready after {time.monotonic() - started:.1f} s.\n", flush=True)
            code = _tell(nodes)
        return code or _decode(folder)


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
    awake = ",".join(
        address
        for node_id, address in zip(nodes.node_ids, controllers.split(","), strict=True)
        if node_id != leader
    )
    code = _own_command(awake)
    _kafkas_tool(awake)
    for node_id in nodes.node_ids:
        if nodes.is_running(node_id):
            nodes.stop(node_id)
    print("The other two stop in good order.\n", flush=True)
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


def _decode(folder: Path) -> int:
    """Decode what the nodes recorded of each other."""
    captures = sorted(folder.glob("*.pcapng"))
    whole = folder / "quorum.pcap"
    merge(captures, whole)
    print("All of it was recorded by the nodes themselves (kraftwire.capture.file):\n")
    print("$ kraftwire decode quorum.pcap --raft\n", flush=True)
    out = StringIO()
    with redirect_stdout(out):
        code = kraftwire(["decode", str(whole), "--raft", "--quiet"])
    print(out.getvalue(), end="", flush=True)
    return code


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())
