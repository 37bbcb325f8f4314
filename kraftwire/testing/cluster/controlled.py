"""A cluster for tests: real brokers, and controllers in the test's process that obey the test.

Every answer of a controller can be held, delayed, refused or falsified, the clock of the
controllers be moved, brokers be fenced, and the leadership change, all from the test's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kraftwire.controller.image import MetadataImage
from kraftwire.errors import ApiError, UsageError
from kraftwire.faults.fault import Fault
from kraftwire.faults.rules import FaultRule
from kraftwire.faults.selectors import Selector
from kraftwire.faults.vocabulary import FaultVocabulary
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.node.config import load
from kraftwire.node.handlers.versions import CONTROLLER_VERSIONS
from kraftwire.testing.cluster.cluster import start_all, wait_serving
from kraftwire.testing.cluster.kafka import kafka_jars
from kraftwire.testing.cluster.nodes import ClusterError, ClusterFiles
from kraftwire.testing.fault_injector import FaultInjector
from kraftwire.testing.files import node_folder
from kraftwire.testing.nodes import opened
from kraftwire.testing.threaded_nodes import ThreadedNodes

if TYPE_CHECKING:
    from kraftwire.testing.threaded_proxy import ThreadedProxy

_START_S = 120.0
_WAIT_S = 60.0
_POLL_S = 0.02

# Sessions are shorter than Kafka's, so that a broker that was killed is soon fenced.
_PROPERTIES: Mapping[str, object] = {
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 6000,
    "controller.quorum.election.timeout.ms": 500,
}


class Controllers(FaultVocabulary):
    """The controllers of a cluster, and what they do to requests.

    Rules are about the requests of all brokers and clients, those that a broker forwards too, or
    with `broker` about those of one broker that names itself in them. Each is a context that
    removes it, and has `count`, `wait` and `remove`.
    """

    def __init__(self, files: ClusterFiles) -> None:
        self.node_ids = tuple(node.id for node in files.of_role("controller"))
        self._broker_ids = tuple(node.id for node in files.of_role("broker"))
        self._faults = FaultInjector(CONTROLLER_VERSIONS)
        configs = {id: load(str(files.config(id))) for id in self.node_ids}
        self._nodes = ThreadedNodes(configs, self._faults)

    def open(self) -> None:
        """Start all controllers, and return once they accept connections."""
        self._nodes.start()

    def close(self) -> None:
        """Remove all rules, and end all controllers."""
        self._faults.clear()
        self._nodes.close()

    def add_rule(self, row: Mapping[str, Any]) -> FaultRule:
        """Put the rule of a row in force, for the requests of all brokers and clients."""
        return self._faults.add_row(row)

    def fence(self, broker: int) -> FaultRule:
        """Fence a broker, and return once it is; it stays fenced until the rule is removed."""

        def want_fence(request: BrokerHeartbeatRequest) -> None:
            request.want_fence = True

        if broker not in self._image().brokers:
            _known_broker(broker, self._broker_ids)
        api = {BrokerHeartbeatRequest.API_KEY: range(BrokerHeartbeatRequest.VERSIONS.high + 1)}
        selector = Selector(versions=api, sender=broker)
        rule = self._faults.add(FaultRule(selector, Fault(change_request=want_fence)))
        self.wait_fenced(broker)
        return rule

    def wait_fenced(self, broker: int, is_fenced: bool = True) -> None:
        """Wait until a broker is fenced, or is not. Raises: ClusterError after a minute."""
        words = "not fenced" if is_fenced else "still fenced"
        _until(lambda: self.is_fenced(broker) is is_fenced, f"broker {broker} was {words}")

    def is_fenced(self, broker: int) -> bool:
        """Return whether a broker is fenced, or not registered, according to the active
        controller."""
        found = self._image().brokers.get(broker)
        return found is None or found.is_fenced

    def partitions(self, topic: str) -> list[PartitionRecord]:
        """Return the partitions of a topic according to the active controller, none if it does not
        exist: `leader`, `isr`, `replicas`, `leader_epoch` and so on."""
        topics = self._image().topics
        found = topics.partitions(topics.ids.get(topic, b""))
        return [found[index] for index in sorted(found)]

    def wait_in_sync(self, topic: str) -> None:
        """Wait until all replicas of a topic are in sync. Raises: ClusterError after a minute."""

        def look() -> bool:
            found = self.partitions(topic)
            return all(set(each.isr) == set(each.replicas) for each in found) and bool(found)

        _until(look, f"not all replicas of {topic} are in sync")

    def _image(self) -> MetadataImage:
        leader = self.leader()
        return self._nodes.thread.call(lambda: self._nodes.nodes[leader].context.image)

    def advance_clock(self, seconds: float) -> None:
        """Move the clock of all controllers forward: sessions of brokers expire, and other timers.

        By more than the time-outs of Raft it also ends the leadership, unless there is one
        controller, and a new active controller gives every broker a fresh session.
        """
        self._nodes.move_clock(_forward(seconds))

    def leader(self) -> int:
        """Return the id of the active controller; waits for one. Raises: ClusterError."""
        return self._leadership()[0]

    def change_leader(self) -> int:
        """Let the active controller resign; returns the id of the next one, which a lone controller
        is itself."""
        before = self._leadership()
        node = self._nodes.nodes[before[0]]
        self._nodes.thread.call(node.resign)
        _until(lambda: self._leadership()[1] != before[1], "the leadership did not change")
        return self.leader()

    def kill(self, id: int) -> None:
        """End a controller at once."""
        self._check(id, is_running=True)
        self._nodes.end_node(id)

    def start(self, id: int) -> None:
        """Start a controller that was killed."""
        self._check(id, is_running=False)
        self._nodes.start_node(id)

    def _check(self, id: int, *, is_running: bool) -> None:
        if id not in self.node_ids:
            known = ", ".join(map(str, self.node_ids))
            raise UsageError(f"there is no controller {id}, only {known}")
        if (id in self._nodes.nodes) != is_running:
            raise UsageError(f"controller {id} is {'not ' if is_running else ''}running")

    def _leadership(self) -> tuple[int, int]:
        """Return id and epoch of the active controller."""
        found: list[tuple[int, int]] = []

        def look() -> bool:
            try:
                found.append(self._nodes.leader())
            except ApiError:
                return False
            return True

        _until(look, "there is no active controller")
        return found[0]


class Cluster:
    """Controllers in this process, and brokers of Kafka as processes.

    Order: entering starts all of them and waits until every broker is unfenced; leaving ends them.
    Raises: ClusterError with the end of a broker's log if it fails; JavaMissingError.
    """

    controller: Controllers

    def __init__(
        self,
        controllers: int,
        brokers: int,
        folder: Path | None,
        properties: Mapping[str, object],
        kafka: Path | None,
        *,
        is_proxied: bool,
    ) -> None:
        if controllers < 1 or brokers < 0:
            raise UsageError("a cluster has one or more controllers, and brokers")
        self._counts = controllers, brokers
        self._given_folder = folder
        self._properties = {**_PROPERTIES, **properties}
        self._kafka = kafka
        self._is_proxied = is_proxied
        self._proxy: ThreadedProxy | None = None
        self.folder = Path()

    def __enter__(self) -> Self:
        jars = kafka_jars(self._kafka) if self._counts[1] else None
        with ExitStack() as stack:
            self.folder = stack.enter_context(node_folder(self._given_folder, "cluster"))
            self._files = ClusterFiles.create(self.folder, jars, self._counts, self._properties)
            self.controller = Controllers(self._files)
            stack.callback(self._end)
            self.controller.open()
            start_all(self._files, controllers=False)
            if self._is_proxied:
                from kraftwire.testing.threaded_proxy import proxy

                self._proxy = stack.enter_context(proxy(self._files.addresses("broker")))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.__exit__(*raised)

    def _end(self) -> None:
        try:
            for node in self._files.of_role("broker"):
                self._files.kill(node.id)
        finally:
            self.controller.close()

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._files.cluster_id

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ids of the brokers, running or not."""
        return tuple(node.id for node in self._files.of_role("broker"))

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the brokers, comma-separated; with `proxied` that of the proxy."""
        if self._proxy is not None:
            return self._proxy.bootstrap_servers
        return self._files.addresses("broker")

    @property
    def proxy(self) -> ThreadedProxy:
        """The proxy before the brokers. Raises: UsageError for a cluster that is not `proxied`."""
        return opened(self._proxy)

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of the controllers, comma-separated."""
        return self._files.addresses("controller")

    def kill(self, broker: int) -> None:
        """End a broker as a power cut does. Raises: UsageError for another id, like these below."""
        self._files.kill(self._broker(broker))

    def stop(self, broker: int) -> None:
        """Shut a broker down cleanly."""
        self._files.stop(self._broker(broker))

    def start(self, broker: int) -> None:
        """Start a broker that was killed or stopped, and wait until it is unfenced."""
        self._files.start(self._broker(broker))
        deadline = time.monotonic() + _START_S
        self._files.wait_ready(broker, deadline)
        wait_serving(self._files, deadline)

    def is_running(self, broker: int) -> bool:
        """Return whether a broker's process exists."""
        return self._files.node(self._broker(broker)).is_running

    def log(self, broker: int) -> str:
        """Return all that a broker has logged, over all its starts."""
        return self._files.log(self._broker(broker)).read_text(errors="replace")

    def _broker(self, id: int) -> int:
        return _known_broker(id, self.broker_ids)


def kafka_cluster(
    controllers: int = 3,
    brokers: int = 2,
    *,
    folder: Path | str | None = None,
    properties: Mapping[str, object] | None = None,
    kafka: Path | str | None = None,
    proxied: bool = False,
) -> Cluster:
    """Return brokers of Kafka on kraftwire controllers, for use as a context manager.

    `folder` gets the files of all nodes; a temporary one is removed at the end unless the block
    fails. `properties` go into every node's file. `kafka` is an installation of Kafka; without it
    the environment's KRAFTWIRE_KAFKA counts, or else Maven fetches Kafka into the user's cache.
    With `proxied`, `bootstrap_servers` is the address of a proxy before the brokers, which is
    `proxy`.
    """
    given = Path(folder).absolute() if folder is not None else None
    jars = Path(kafka) if kafka is not None else None
    return Cluster(controllers, brokers, given, properties or {}, jars, is_proxied=proxied)


def _known_broker(id: int, ids: tuple[int, ...]) -> int:
    """Return the id of a broker. Raises: UsageError for another one."""
    if id not in ids:
        known = f"only {', '.join(map(str, ids))}" if ids else "none"
        raise UsageError(f"there is no broker {id}, {known}")
    return id


def _forward(seconds: float) -> float:
    """Return a time that passes. Raises: UsageError for a negative one."""
    if not seconds >= 0:
        raise UsageError(f"time goes forward only, not by {seconds:g} s")
    return seconds


def _until(look: Callable[[], bool], problem: str) -> None:
    """Wait until something is so. Raises: ClusterError with the problem after a while."""
    deadline = time.monotonic() + _WAIT_S
    while not look():
        if time.monotonic() > deadline:
            raise ClusterError(f"{problem} in {_WAIT_S:g} s")
        time.sleep(_POLL_S)
