"""Real Kafka nodes on loopback for tests: formatted, started, killed and stopped by process id.

Owns the configuration and the lifetime of the processes. The jars come from `maven`; a node's log
directory, configuration and console output stay in the folder that the test gives.
"""

from __future__ import annotations

import base64
import socket
import subprocess
import threading
import uuid
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from kraftwire.testing.cluster.log4j import logging_options, write_logging
from kraftwire.testing.ports import free_ports
from tests.support.kafka.class_archive import archive_options
from tests.support.kafka.java import run_kafka_tool, shared_tools
from tests.support.kafka.maven import KAFKA, Release, kafka_classpath

# A node is ready in 3 to 6 seconds on an idle machine; many run alongside other tests.
READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 30

_HOST = "127.0.0.1"
_READY_LINE = "Kafka Server started"  # the last line of the start, logged with every role

# Internal topics of one partition, which need no second replica, and groups that do not wait.
QUICK_GROUPS = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}

# One of everything, so that a node fits next to a test run.
_SMALL = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.network.threads": 1,
    "num.io.threads": 2,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 2097152,
    **QUICK_GROUPS,
}


def kafka_uuid() -> str:
    """A random uuid in Kafka's base64 form; never one that looks like an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]).startswith("-"):
        pass
    return text


class KafkaNode:
    """One node: a folder with its files, and its process while it runs.

    Listeners maps the listener names PLAINTEXT and CONTROLLER to ports; a node has the
    roles of the listeners that it has. `release` may change between two starts, as in an upgrade;
    `jvm_options` are for a small node that starts soon.
    """

    release: Release = KAFKA
    jvm_options: tuple[str, ...] = (
        "-Xmx256m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"
    )  # fmt: skip

    def __init__(
        self,
        node_id: int,
        folder: Path,
        listeners: Mapping[str, int],
        properties: Mapping[str, object],
    ) -> None:
        self.node_id = node_id
        self.folder = folder
        self.listeners = dict(listeners)
        self.properties = {**_SMALL, **self._own_properties(), **properties}
        self.directory_id = kafka_uuid()
        self.process: subprocess.Popen[str] | None = None
        self._events: tuple[threading.Event, threading.Thread] | None = None

    def _own_properties(self) -> dict[str, object]:
        roles = {"CONTROLLER": "controller", "PLAINTEXT": "broker"}
        addresses = ",".join(f"{name}://{_HOST}:{port}" for name, port in self.listeners.items())
        return {
            "node.id": self.node_id,
            "process.roles": ",".join(roles[name] for name in self.listeners),
            "listeners": addresses,
            "advertised.listeners": addresses,
            "log.dirs": self.log_dir,
        }

    @property
    def log_dir(self) -> Path:
        """The node's only log directory, in Kafka's format once `format` has run."""
        return self.folder / "data"

    @property
    def console(self) -> Path:
        """Everything that the node has printed, over all its starts."""
        return self.folder / "console.log"

    def write_config(self) -> Path:
        """Write the properties file and the logging configuration; returns the former."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}={value}\n" for key, value in self.properties.items()]
        config = self.folder / "server.properties"
        config.write_text("".join(lines))
        write_logging(self.folder, "%d{HH:mm:ss.SSS}")
        return config

    def format(self, cluster_id: str, *options: str) -> None:
        """Write the configuration and run kafka-storage format with it."""
        config = self.write_config()
        words = ("format", "-t", cluster_id, "-c", config, *options)
        if self.release == KAFKA:
            result = shared_tools().run("storage", *words)
            assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
        else:
            run_kafka_tool("kafka.tools.StorageTool", *words, release=self.release)

    def start(self) -> None:
        """Start the process without waiting for it. Order: after `format`; also a restart."""
        assert self.process is None, f"node {self.node_id} runs already"
        command = [
            *("java", *self.jvm_options),
            *archive_options(self.release),
            *logging_options(self.folder),
            *("-cp", kafka_classpath(self.release)),
            *("kafka.Kafka", str(self.folder / "server.properties")),
        ]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=self.folder,
        )
        is_decided = threading.Event()
        reader = threading.Thread(
            target=self._copy_output, args=(self.process, is_decided), daemon=True
        )
        self._events = (is_decided, reader)
        reader.start()

    def _copy_output(
        self, process: subprocess.Popen[str], is_decided: threading.Event
    ) -> None:
        assert process.stdout is not None
        # Line by line, as tests look for lines of a node that runs.
        with process.stdout as lines, self.console.open("a", buffering=1) as console:
            for line in lines:
                console.write(line)
                if _READY_LINE in line:
                    is_decided.set()
        is_decided.set()

    def wait_ready(self) -> Self:
        """Return once the node accepts connections.

        Raises: AssertionError with the last lines it printed if it ends or takes too long.
        """
        assert self.process is not None, "start the node first"
        assert self._events is not None
        is_decided, _ = self._events
        in_time = is_decided.wait(READY_SECONDS_MAX)
        assert in_time, f"node {self.node_id} is not ready in time\n{self.last_lines()}"
        assert self.process.poll() is None, f"node {self.node_id} ended\n{self.last_lines()}"
        for port in self.listeners.values():
            socket.create_connection((_HOST, port), READY_SECONDS_MAX).close()
        return self

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for a node that ignores it; no effect if it is not running."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._reap()

    def kill(self) -> None:
        """SIGKILL: the node cannot notify its peers or flush its disk."""
        if self.process is not None:
            self.process.kill()
            self._reap()

    def _reap(self) -> None:
        assert self.process is not None
        assert self._events is not None
        self.process.wait()
        self._events[1].join()
        self.process = None

    def last_lines(self, count: int = 40) -> str:
        """The end of what the node printed."""
        with self.console.open(errors="replace") as console:
            return "".join(deque(console, count))


class KafkaCluster:
    """Nodes that belong together.

    Order: entering formats and starts all nodes and waits until they are ready; leaving stops
    them, brokers first.
    """

    def __init__(self, nodes: list[KafkaNode], *, is_dynamic: bool) -> None:
        self.nodes = nodes
        self.cluster_id = kafka_uuid()
        self._is_dynamic = is_dynamic
        quorum_property = _bootstrap_property if is_dynamic else _voters_property
        for node in nodes:
            node.properties.update(quorum_property(self.controllers))

    @property
    def controllers(self) -> list[KafkaNode]:
        """The nodes with a controller listener."""
        return [node for node in self.nodes if "CONTROLLER" in node.listeners]

    @property
    def bootstrap_controllers(self) -> str:
        """The value of ``--bootstrap-controller``."""
        return _addresses(self.nodes, "CONTROLLER")

    @property
    def bootstrap_servers(self) -> str:
        """The value of ``--bootstrap-server``; empty in a cluster without brokers."""
        return _addresses(self.nodes, "PLAINTEXT")

    def format(self) -> None:
        """Format the log directories of all nodes with the same voters."""
        voters = ",".join(
            f"{node.node_id}@{_HOST}:{node.listeners['CONTROLLER']}:{node.directory_id}"
            for node in self.controllers
        )

        def format_one(node: KafkaNode) -> None:
            is_voter = self._is_dynamic and node in self.controllers
            node.format(self.cluster_id, *(("--initial-controllers", voters) if is_voter else ()))

        with ThreadPoolExecutor() as pool:
            list(pool.map(format_one, self.nodes))

    def __enter__(self) -> Self:
        self.format()
        try:
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                node.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in sorted(self.nodes, key=lambda node: "CONTROLLER" in node.listeners):
            running = sum(node.process is not None for node in self.controllers)
            if 2 * running > len(self.controllers):
                node.stop()
            else:
                # Without a quorum a leader waits five seconds for a successor that cannot come.
                node.kill()


def combined_node(folder: Path, properties: Mapping[str, object] | None = None) -> KafkaCluster:
    """A cluster of one node that is broker and controller."""
    broker_port, controller_port = free_ports(2)
    listeners = {"PLAINTEXT": broker_port, "CONTROLLER": controller_port}
    return KafkaCluster([KafkaNode(1, folder, listeners, properties or {})], is_dynamic=True)


def quorum(
    folder: Path,
    count: int = 3,
    *,
    is_dynamic: bool = True,
    properties: Mapping[str, object] | None = None,
) -> KafkaCluster:
    """Controllers with the ids 1 to `count` and nothing else.

    A dynamic quorum keeps its voters in the log (kraft.version 1), a static one in the
    property controller.quorum.voters (kraft.version 0).
    """
    nodes = [
        KafkaNode(node_id, folder / f"node-{node_id}", {"CONTROLLER": port}, properties or {})
        for node_id, port in enumerate(free_ports(count), start=1)
    ]
    return KafkaCluster(nodes, is_dynamic=is_dynamic)


def _addresses(nodes: list[KafkaNode], listener: str) -> str:
    ports = [node.listeners[listener] for node in nodes if listener in node.listeners]
    return ",".join(f"{_HOST}:{port}" for port in ports)


def _bootstrap_property(controllers: list[KafkaNode]) -> dict[str, object]:
    return {"controller.quorum.bootstrap.servers": _addresses(controllers, "CONTROLLER")}


def _voters_property(controllers: list[KafkaNode]) -> dict[str, object]:
    voters = [
        f"{node.node_id}@{_HOST}:{node.listeners['CONTROLLER']}" for node in controllers
    ]
    return {"controller.quorum.voters": ",".join(voters)}
