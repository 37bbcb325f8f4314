"""The nodes of a cluster: their files, their properties, and how each kind is started.

Controllers are kraftwire nodes and voters by the log (kraft.version 1); brokers are Kafka's. All
listeners are on loopback.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from kraftwire.errors import KraftwireError, UsageError
from kraftwire.log.features import parse_features
from kraftwire.log.files import LocalFiles
from kraftwire.log.format import FormatNode, FormatRequest, VotersFlag, format_directories
from kraftwire.log.uuids import random_uuid
from kraftwire.properties_file import escape_property
from kraftwire.small_files import check_own
from kraftwire.testing.cluster.kafka import java, java_options, release_in
from kraftwire.testing.cluster.log4j import logging_options, write_logging
from kraftwire.testing.cluster.processes import Process, start
from kraftwire.testing.ports import free_ports
from kraftwire.wire.json_form import uuid_to_text

HOST = "127.0.0.1"
_FIRST_BROKER = 101

_T = TypeVar("_T")
_ID_MAX, _PORT_MAX = 2**31 - 1, 2**16 - 1
_POLL_S = 0.05
_TAIL_LINES = 25
_STOP_S = 20.0
_REASON_MAX = 300

# A line of Kafka's log, and one that names an exception below it.
_LOGGED = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ (?P<level>[A-Z]+) (?P<text>.*)")
_THROWN = re.compile(r"(?:Caused by: )?(?:[\w$]+\.)+(?P<text>[\w$]+(?:Exception|Error)\b.*)")

# The line that a node prints once it serves.
_READY = {"controller": "ready node=", "broker": "Kafka Server started"}

_JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

# A broker that shares a machine with others.
_SMALL: Mapping[str, object] = {
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 2097152,
    "group.initial.rebalance.delay.ms": 0,
}
_INTERNAL_TOPICS = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
_INTERNAL_PARTITIONS = 4
_REPLICAS_MAX = 3


class ClusterError(KraftwireError):
    """A node ended or timed out; the text has the reason, and a note the end of its log."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its id, its role (``controller`` or ``broker``), its port, and its process if it
    was started. `ready_after` is how long its log was at the last start."""

    id: int
    role: str
    port: int
    process: Process | None = None
    ready_after: int = 0

    @property
    def is_running(self) -> bool:
        """Whether its process exists."""
        return self.process is not None and self.process.is_running

    @property
    def address(self) -> str:
        """Its listener."""
        return f"{HOST}:{self.port}"


@dataclass(slots=True)
class ClusterFiles:
    """A cluster in a folder: its nodes by id. `jars` is the folder with Kafka's, None
    without brokers."""

    folder: Path
    jars: Path | None
    cluster_id: str
    nodes: dict[int, Node]
    properties: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        folder: Path,
        jars: Path | None,
        counts: tuple[int, int],
        properties: Mapping[str, object] | None = None,
    ) -> ClusterFiles:
        """Choose ports and ids, and format the directories, as `choose` and `format`."""
        files = cls.choose(folder, jars, counts, properties)
        files.format()
        return files

    @classmethod
    def choose(
        cls,
        folder: Path,
        jars: Path | None,
        counts: tuple[int, int],
        properties: Mapping[str, object] | None = None,
    ) -> ClusterFiles:
        """Choose ports and ids of so many controllers and brokers, without writing anything.

        `properties` go into every node's file.
        """
        controllers, brokers = counts
        ports = free_ports(controllers + brokers)
        ids = [*range(1, controllers + 1), *range(_FIRST_BROKER, _FIRST_BROKER + brokers)]
        nodes = {
            id: Node(id, "controller" if id < _FIRST_BROKER else "broker", port)
            for id, port in zip(ids, ports, strict=True)
        }
        cluster_id = uuid_to_text(random_uuid())
        return cls(folder, jars, cluster_id, nodes, dict(properties or {}))

    def of_role(self, role: str) -> list[Node]:
        """Return the nodes of a role."""
        return [node for node in self.nodes.values() if node.role == role]

    def addresses(self, role: str) -> str:
        """Return the listeners of the nodes of a role, comma-separated."""
        return ",".join(node.address for node in self.of_role(role))

    def node(self, id: int) -> Node:
        """Return a node. Raises: UsageError for an unknown id."""
        if id not in self.nodes:
            raise UsageError(f"there is no node {id}, only {', '.join(map(str, self.nodes))}")
        return self.nodes[id]

    def place(self, id: int) -> Path:
        """Return the folder of a node: its properties file, its log and its data."""
        return self.folder / f"node-{id}"

    def config(self, id: int) -> Path:
        """Return a node's properties file."""
        return self.place(id) / "server.properties"

    def log(self, id: int) -> Path:
        """Return the file of what a node prints, over all its starts."""
        return self.place(id) / "node.log"

    def start(self, id: int) -> None:
        """Start a node that is not running, without waiting for it."""
        node, log = self.node(id), self.log(id)
        if node.is_running:
            raise UsageError(f"node {id} is already running")
        check_own(self.place(id))
        size = log.stat().st_size if log.exists() else 0
        process = start(self._command(node), log)
        self.nodes[id] = replace(node, process=process, ready_after=size)

    def stop(self, id: int) -> None:
        """Stop a node cleanly; no effect if it is not running."""
        process = self.node(id).process
        if process is not None:
            process.stop(_STOP_S)

    def kill(self, id: int) -> None:
        """End a node as a power cut does; no effect if it is not running."""
        process = self.node(id).process
        if process is not None:
            process.kill()

    def wait_ready(self, id: int, deadline: float) -> None:
        """Return once a node serves. Units: `deadline` is a time of `time.monotonic`.

        Raises: ClusterError if it ends first, or the deadline passes.
        """
        node = self.node(id)
        while _READY[node.role] not in self._printed(node):
            if not node.is_running:
                raise self.error(id, "ended during its start")
            if time.monotonic() > deadline:
                raise self.error(id, "was not ready in time")
            time.sleep(_POLL_S)

    def error(self, id: int, problem: str) -> ClusterError:
        """Return an error about a node, with the reason as its log has it."""
        log, printed = self.log(id), self._printed(self.node(id)).splitlines()
        reason = f": {found}" if (found := reason_of(printed)) else ""
        error = ClusterError(f"node {id} {problem}{reason} (its log is {log})")
        error.add_note("\n".join([f"the end of {log}:", *printed[-_TAIL_LINES:]]))
        return error

    def _printed(self, node: Node) -> str:
        with self.log(node.id).open("rb") as log:
            log.seek(node.ready_after)
            return log.read().decode(errors="replace")

    def _command(self, node: Node) -> list[str]:
        config = str(self.config(node.id))
        if node.role == "controller":
            return [sys.executable, "-m", "kraftwire", "node", "start", "--config", config]
        assert self.jars is not None
        place = self.place(node.id)
        return [
            java(), *java_options(), *_JAVA_OPTIONS, *logging_options(place),
            "-cp", str(self.jars / "*"), "kafka.Kafka", config,
        ]  # fmt: skip

    def format(self) -> None:
        """Write all properties files and format all directories."""
        ids = {node.id: random_uuid() for node in self.of_role("controller")}
        voters = ",".join(
            f"{id}@{self.nodes[id].address}:{uuid_to_text(directory)}"
            for id, directory in ids.items()
        )
        for node in self.nodes.values():
            place = self.place(node.id)
            place.mkdir(0o700, parents=True)
            write_logging(place)
            self._write_config(node)
            is_controller = node.role == "controller"
            data = str(place / "data")
            formatted = FormatNode(
                node_id=node.id,
                directories=(data,),
                metadata_directory=data,
                is_controller=is_controller,
                has_static_voters=False,
                endpoint=(HOST, node.port) if is_controller else None,
            )
            request = FormatRequest(
                cluster_id=self.cluster_id,
                voters_flag=VotersFlag.INITIAL_CONTROLLERS if is_controller else VotersFlag.UNSAID,
                voters=voters if is_controller else (),
                release=_known_release(self.jars),
            )
            list(format_directories(LocalFiles(), formatted, request))

    def _write_config(self, node: Node) -> None:
        lines = (
            f"{escape_property(key, is_key=True)}={escape_property(str(value))}\n"
            for key, value in (self._own_properties(node) | dict(self.properties)).items()
        )
        self.config(node.id).write_text("".join(lines), encoding="iso-8859-1")

    def _own_properties(self, node: Node) -> dict[str, object]:
        name = "CONTROLLER" if node.role == "controller" else "PLAINTEXT"
        found: dict[str, object] = {
            "process.roles": node.role,
            "node.id": node.id,
            "listeners": f"{name}://{node.address}",
            "advertised.listeners": f"{name}://{node.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "controller.quorum.bootstrap.servers": self.addresses("controller"),
            "log.dirs": self.place(node.id) / "data",
        }
        if node.role == "broker":
            found |= _SMALL
            replicas = min(_REPLICAS_MAX, len(self.of_role("broker")))
            for topic in _INTERNAL_TOPICS:
                found[f"{topic}.num.partitions"] = _INTERNAL_PARTITIONS
                found[f"{topic}.replication.factor"] = replicas
            for topic in _INTERNAL_TOPICS[1:]:
                found[f"{topic}.min.isr"] = min(2, replicas)
        return found


def reason_of(printed: Iterable[str]) -> str:
    """Return why a node ended, from what it has printed since its start.

    It is the last error of Kafka's log, with the innermost exception below it, or else the last
    line.
    """
    error = last = ""
    is_below = False
    for line in filter(None, map(str.rstrip, printed)):
        if begins := _LOGGED.match(line):
            is_below = begins["level"] in ("ERROR", "FATAL")
            error = begins["text"] if is_below else error
        elif is_below and (thrown := _THROWN.match(line)):
            error = thrown["text"]
        last = line.strip()
    return (error or last)[:_REASON_MAX]


def _known_release(jars: Path | None) -> str | None:
    """Return the release whose features the brokers know; None for one newer than this software."""
    release = None if jars is None else release_in(jars)
    try:
        parse_features(release, ())
    except UsageError:
        return None
    return release


def to_json(files: ClusterFiles) -> dict[str, Any]:
    """Return the state of a cluster as a JSON object."""
    nodes = [
        {
            "id": node.id,
            "role": node.role,
            "port": node.port,
            "pid": None if node.process is None else node.process.pid,
            "started": None if node.process is None else node.process.started,
        }
        for node in files.nodes.values()
    ]
    jars = None if files.jars is None else str(files.jars)
    return {"clusterId": files.cluster_id, "kafka": jars, "nodes": nodes}


def from_json(folder: Path, state: dict[str, Any]) -> ClusterFiles:
    """Return the cluster of a JSON object. Raises: KeyError, TypeError, ValueError for anything
    that `to_json` does not return."""
    jars = None if state["kafka"] is None else Path(_checked(state, "kafka", str))
    files = ClusterFiles(folder, jars, _checked(state, "clusterId", str), {})
    for each in _checked(state, "nodes", list):
        id, role = _number(each, "id", _ID_MAX), _checked(each, "role", str)
        if id in files.nodes or role not in _READY:
            raise ValueError(f"node {id} is there twice, or no {' or '.join(_READY)}")
        if role == "broker" and jars is None:
            raise ValueError(f"node {id} is a broker, and kafka is null")
        process = None
        if each["pid"] is not None:
            started = _checked(each, "started", str)
            process = Process(_number(each, "pid", _ID_MAX), started, str(files.config(id)))
        files.nodes[id] = Node(id, role, _number(each, "port", _PORT_MAX), process)
    if not files.of_role("controller"):
        raise ValueError("there is no controller")
    return files


def _checked(state: Any, key: str, kind: type[_T]) -> _T:
    found = state[key]
    # True and false are numbers to Python.
    if type(found) is not kind or (isinstance(found, str) and not found.isprintable()):
        raise TypeError(f"{key} is {found!r:.100}")
    return found


def _number(state: Any, key: str, high: int) -> int:
    number = _checked(state, key, int)
    if not 0 < number <= high:
        raise ValueError(f"{key} is not from 1 to {high}")
    return number
