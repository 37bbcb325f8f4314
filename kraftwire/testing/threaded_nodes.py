"""Nodes of a quorum in a thread of this process, with a clock that can be moved."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import partial

import trio

from kraftwire.errors import ApiError, KraftwireError
from kraftwire.node.app import Node, first_error
from kraftwire.node.authorization import topic_name
from kraftwire.node.config import NodeConfig
from kraftwire.protocol.entities import TopicName
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.testing.fault_injector import FaultInjector
from kraftwire.testing.trio_thread import TrioThread


class _MovedClock(trio.abc.Clock):
    """The system's clock, ahead by as much as it was moved. Units: seconds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def start_clock(self) -> None:
        """Do nothing: the system's clock runs."""

    def current_time(self) -> float:
        return time.perf_counter() + self.ahead

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.current_time()


class ThreadedNodes:
    """Runs nodes, each of which can be ended and started again.

    Order: `start`, then everything else, `close` at the end; all of them in one other thread.
    """

    def __init__(self, configs: Mapping[int, NodeConfig], faults: FaultInjector) -> None:
        self.nodes: dict[int, Node] = {}
        self._configs = dict(configs)
        self._faults = faults
        self._clock = _MovedClock()
        self._scopes: dict[int, trio.CancelScope] = {}
        self._ended: dict[int, threading.Event] = {}
        self._failure: BaseException | None = None
        self.thread = TrioThread("kraftwire-nodes", self._clock)
        faults.run_soon = self.thread.run_soon

    def start(self) -> None:
        """Start all nodes, and return once they accept connections.

        Raises: KraftwireError, the one that ended a node.
        """
        self.thread.open()
        for id in self._configs:
            self.start_node(id)

    def close(self) -> None:
        """End all nodes at once."""
        self.thread.close()

    def start_node(self, id: int) -> None:
        """Start a node on its files, and return once it accepts connections. Raises: as `start`."""
        node = Node(
            self._configs[id],
            middleware=partial(self._faults.middleware, node=id, topic_name=self._topic_name(id)),
        )
        self._failure = None
        ended = self._ended[id] = threading.Event()
        ready = threading.Event()
        self.nodes[id] = node
        self.thread.call(lambda: self._spawn(id, node, ready, ended))
        ready.wait()
        if ended.is_set():
            raise self._failure or KraftwireError(f"node {id} has ended")

    def _topic_name(self, id: int) -> TopicName:
        """Return a function that names the topics that a node knows."""
        return lambda topic_id: topic_name(self.nodes[id].context, topic_id)

    def _spawn(
        self, id: int, node: Node, ready: threading.Event, ended: threading.Event
    ) -> None:
        scope = self._scopes[id] = trio.CancelScope()

        async def run() -> None:
            try:
                with scope:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(_forward, node.ready, ready)
                        await node.run(trio.Event())
            except BaseExceptionGroup as group:
                self._failure = first_error(group)
            finally:
                ended.set()
                ready.set()

        self.thread.nursery.start_soon(run)

    def end_node(self, id: int) -> None:
        """End a node at once, as if its process was killed, and wait for that."""
        self.thread.call(self._scopes[id].cancel)
        self._ended[id].wait()
        self.nodes.pop(id, None)

    def move_clock(self, seconds: float) -> None:
        """Move the clock of all timers of all nodes forward."""

        def move() -> None:
            self._clock.ahead += seconds

        self.thread.call(move)

    def leader(self) -> tuple[int, int]:
        """Return id and epoch of the leader that is the active controller.

        Raises: ApiError NOT_CONTROLLER if there is none; the error that has ended a node by itself.
        """

        def look() -> tuple[int, int]:
            if self._failure is not None:
                raise self._failure
            for id, node in self.nodes.items():
                if node.ready.is_set() and node.context.controller.is_active:
                    return id, node.context.raft.epoch
            raise ApiError(ErrorCode.NOT_CONTROLLER, "no node is the active controller")

        return self.thread.call(look)


async def _forward(event: trio.Event, other: threading.Event) -> None:
    """Set an event of threads once an event of trio is set."""
    await event.wait()
    other.set()
