"""A node from its lock file to its last flush: assembles its parts, starts and stops them.

Storage is opened first, then the sockets, and the core starts last: a node that fails to open
either must not have voted. On shutdown the core leaves the quorum before the sockets close.

Source: Kafka's `KafkaRaftServer` and `ControllerServer`.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import trio

from kraftwire import __version__
from kraftwire.errors import KraftwireError, UsageError, check
from kraftwire.log.files import Files, LocalFiles
from kraftwire.node.admission import (
    OPEN_CONNECTION_BYTES,
    TLS_CONNECTION_BYTES,
    Admission,
)
from kraftwire.node.assembly import Assembly, Metadata, assemble
from kraftwire.node.capture import CaptureFile
from kraftwire.node.collector import Collector
from kraftwire.node.config import ConnectionLimits, NodeConfig
from kraftwire.node.config_listeners import Listener
from kraftwire.node.connection import AcceptedConnection, Service
from kraftwire.node.connection_end import ConnectionStats
from kraftwire.node.context import Context, Middleware
from kraftwire.node.controller_metrics import snapshot_samples
from kraftwire.node.directories import directories_of
from kraftwire.node.driver import Driver
from kraftwire.node.guard import Guard
from kraftwire.node.handlers.versions import offered
from kraftwire.node.link import Link, LinkStats
from kraftwire.node.listener import Acceptor, bind, connections_max, raise_descriptor_limit
from kraftwire.node.logins import (
    client_security,
    follow_stores,
    guards_of,
    store_warnings,
    stores_of,
)
from kraftwire.node.logs import RateLimit, log, set_up
from kraftwire.node.metrics import (
    Sample,
    connection_samples,
    contradiction_sample,
    counter,
    link_samples,
    raft_samples,
    render,
)
from kraftwire.node.scram_quorum import users_before_leader
from kraftwire.printable import printable
from kraftwire.protocol.config_resources import BROKER_RESOURCE
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.events import ShutdownRequested
from kraftwire.replica import StateMachine
from kraftwire.replica.storage import Storage

if TYPE_CHECKING:
    from kraftwire.security.reloading import ReloadedTls
    from kraftwire.transport.client_security import ClientSecurity

__all__ = ["Node", "first_error", "run", "run_node"]

# A core that takes longer than its own shutdown timeout plus this is stuck.
SHUTDOWN_GRACE_SECONDS = 5.0


def run(config: NodeConfig) -> int:
    """Run a node until SIGTERM or SIGINT; returns the exit code. SIGUSR1 makes a leader resign.

    Raises: UsageError and StorageError, if the node cannot start or has to stop.
    """
    return run_node(Node(config))


def run_node(node: Node, alongside: Callable[[trio.Event], Awaitable[None]] | None = None) -> int:
    """Run a node and a second task until a signal arrives or that task sets its event.

    Raises: as `run`.
    """
    config = node.config
    set_up(config.log_level, config.node_id)
    for warning in config.warnings:
        log("warning", "config", text=warning)
    try:
        trio.run(_run_until_stopped, node, alongside)
    except BaseExceptionGroup as group:
        raise first_error(group) from group
    return 0


async def _run_until_stopped(
    node: Node, alongside: Callable[[trio.Event], Awaitable[None]] | None
) -> None:
    stop = trio.Event()
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_follow_signals, signals, node, stop, nursery.cancel_scope)
            if alongside is not None:
                nursery.start_soon(alongside, stop)
            nursery.start_soon(node.collector().run)
            await node.run(stop)
            nursery.cancel_scope.cancel()


def _configuration(context: Context) -> Mapping[str, str]:
    """Return the committed configuration of a node."""
    return context.image.configs.get((BROKER_RESOURCE, str(context.key.id)), {})


async def _follow_signals(
    signals: AsyncIterator[int], node: Node, stop: trio.Event, scope: trio.CancelScope
) -> None:
    """Shut the node down cleanly on the first signal, and at once on the second.

    SIGUSR1 only makes a leader hand over.
    """
    async for number in signals:
        name = signal.Signals(number).name
        if number == signal.SIGUSR1:
            leads = node.ready.is_set() and node.context.raft.role == "leader"
            log("info", "resigning" if leads else "does-not-lead", signal=name)
            if leads:
                node.resign()
            continue
        if stop.is_set():
            log("warning", "stopped-at-once", signal=name)
            scope.cancel()
        log("info", "stopping", signal=name)
        stop.set()


class Node:
    """One node. Order: call `run` once.

    With a `state_machine` the log belongs to that state machine alone: there is no controller, and
    nothing else is written. Its state is written to snapshots unless `writes_snapshots` is False.
    `middleware` stands before the answers to all requests, for tests.
    `ready` is set once all listeners accept connections.
    """

    def __init__(
        self,
        config: NodeConfig,
        *,
        files: Files | None = None,
        state_machine: StateMachine | None = None,
        writes_snapshots: bool = True,
        middleware: Middleware | None = None,
    ) -> None:
        self.config = config
        self._middleware = middleware
        self.ready = trio.Event()
        self._parts: Assembly | None = None
        self._machine_number = -1
        self._files = files or LocalFiles()
        self._state_machine = state_machine
        self._writes_snapshots = writes_snapshots
        self._connection_stats = ConnectionStats()
        self._link_stats = LinkStats()
        self._capture: CaptureFile | None = None
        self._client_security: ClientSecurity | None = None
        self._stores: list[ReloadedTls] = []
        self._open_bytes = _open_bytes(config)
        self._admission = Admission(open_bytes=self._open_bytes)

    @property
    def driver(self) -> Driver:
        """The task that owns the core. Order: once `ready` is set."""
        return self._running.driver

    @property
    def context(self) -> Context:
        """The node as its handlers see it. Order: once `ready` is set."""
        return self._running.context

    def resign(self) -> None:
        """Give up the leadership, if this node leads."""
        self._running.quorum.resign(self.context.raft.epoch)

    def collector(self) -> Collector:
        """The garbage collector of a process that runs this node alone."""
        return Collector(lambda: self._connection_stats.open, lambda: self._admission.memory.used)

    @property
    def _running(self) -> Assembly:
        check(self._parts is not None, "the node is not running yet")
        return cast("Assembly", self._parts)

    async def append(
        self, values: Sequence[bytes], *, epoch: int, expected_end_offset: int | None = None
    ) -> int:
        """Append records as the leader of an epoch; returns the last one's offset.

        With `expected_end_offset` nothing is appended unless the first record gets exactly that
        offset; if the log ends elsewhere, this node resigns. Order: once `ready` is set. Raises:
        ApiError NOT_CONTROLLER if this node does not lead that epoch or its log ends elsewhere,
        MESSAGE_TOO_LARGE, THROTTLING_QUOTA_EXCEEDED; UsageError without values, or for a value that
        is empty or not bytes.
        """
        return await self._running.quorum.append(
            values, epoch=epoch, expected_end_offset=expected_end_offset
        )

    async def committed(self, offset: int, *, epoch: int) -> None:
        """Wait until the record at an offset, appended in an epoch, is committed.

        Raises: ApiError NOT_CONTROLLER if the leadership ends first; it is then unknown whether the
        record will be committed.
        """
        await self._running.quorum.committed(offset, epoch=epoch)

    def write_snapshot(self) -> None:
        """Request a snapshot of the state machine; it is written soon."""
        self.driver.write_snapshot(self._machine_number)

    async def run(self, stop: trio.Event) -> None:
        """Run the node until `stop` is set. Raises: UsageError, StorageError, InvariantError."""
        config = self.config
        mode = "raft-readme" if config.is_raft_readme else "kafka"
        log("info", "starting", version=__version__, mode=mode, config=config.path)
        self._refusals = RateLimit(trio.current_time)
        self._client_security = client_security(config)
        stores = stores_of(config)
        self._stores = [*stores.values()]
        if self._client_security is not None and self._client_security.stores is not None:
            self._stores.append(self._client_security.stores)
        for warning in store_warnings(self._stores):
            log("warning", "config", text=warning)
        if config.capture_file:
            self._capture = CaptureFile(config.capture_file)
        storage = Storage.open(directories_of(config), self._files)
        try:
            sockets = [
                (listener, await bind(listener, config.limits.backlog))
                for listener in config.listeners
            ]
            endpoints = _bound(config, sockets)
            parts = self._parts = assemble(
                config,
                storage,
                endpoints,
                self._make_link,
                self._link_stats,
                refusals=self._refusals,
                middleware=self._middleware,
            )
            users = users_before_leader(config, storage, len(parts.core.voters))
            guards = guards_of(config, parts.context, stores, users)
            machine = self._state_machine or Metadata(parts.controller, parts.driver, storage)
            self._machine_number = parts.driver.add_state_machine(
                machine, writes_snapshots=self._writes_snapshots
            )
            try:
                await self._serve(sockets, parts, guards, stop)
            finally:
                parts.context.close()
                self._admission.readiness.close()
            parts.driver.close()
        finally:
            storage.close()
            if self._capture:
                self._capture.close()
        log("info", "stopped", graceful=parts.driver.was_graceful)

    def _make_link(self, client_id: str) -> Link:
        return Link(
            client_id,
            stats=self._link_stats,
            refusals=self._refusals,
            make_tap=self._capture.tap if self._capture else None,
            security=self._client_security,
        )

    async def _serve(
        self,
        sockets: list[tuple[Listener, list[trio.SocketListener]]],
        parts: Assembly,
        guards: Mapping[str, Guard],
        stop: trio.Event,
    ) -> None:
        """Run all tasks until the node has left the quorum."""
        config = self.config
        acceptor = self._acceptor(config.limits)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(parts.peers.run)
            nursery.start_soon(parts.driver.run)
            if self._state_machine is None:
                nursery.start_soon(parts.controller.run)
                nursery.start_soon(parts.registration.run)
            for listener, listening in sockets:
                versions = offered(
                    is_controller=listener.is_controller, is_client=listener.is_client
                )
                guard = guards.get(listener.name)
                service = Service(listener, versions, parts.context.answer, guard)
                nursery.start_soon(acceptor.run, listening, self._server_of(service))
            if self._stores:
                nursery.start_soon(
                    follow_stores, self._stores, partial(_configuration, parts.context)
                )
            if config.prometheus is not None:
                await self._start_metrics(nursery, parts, *config.prometheus)
            self._announce(parts.context.endpoints)
            await stop.wait()
            await self._leave(parts)
            nursery.cancel_scope.cancel()

    def _acceptor(self, limits: ConnectionLimits) -> Acceptor:
        def count() -> None:
            self._connection_stats.refused += 1

        most = min(limits.connections, connections_max(raise_descriptor_limit(), self._open_bytes))
        limits = replace(limits, connections=most)
        return Acceptor(limits, on_refused=count, refusals=self._refusals)

    def _server_of(self, service: Service) -> Callable[[trio.SocketStream, str], Awaitable[None]]:
        stats = self._connection_stats

        async def serve(stream: trio.SocketStream, peer: str) -> None:
            tap = self._capture.tap(stream, True) if self._capture else None
            connection = AcceptedConnection(
                stream,
                service,
                self.config.limits,
                stats=stats,
                refusals=self._refusals,
                peer=peer,
                tap=tap,
                admission=self._admission,
            )
            stats.accepted += 1
            stats.open += 1
            try:
                await connection.serve()
            finally:
                stats.open -= 1

        return serve

    def _announce(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Print one line per listener once it accepts connections."""
        for endpoint in endpoints:
            address = f"{endpoint.host}:{endpoint.port}"
            text = f"ready node={self.config.node_id} listener={endpoint.listener}"
            print(printable(f"{text} address={address}"), file=sys.stderr, flush=True)
        self.ready.set()

    async def _leave(self, parts: Assembly) -> None:
        """Make the core leave the quorum, within its shutdown timeout."""
        await parts.registration.leave()
        driver = parts.driver
        driver.submit(ShutdownRequested())
        patience = self.config.timers.shutdown_timeout_ms / 1000 + SHUTDOWN_GRACE_SECONDS
        with trio.move_on_after(patience) as scope:
            await driver.has_left.wait()
        if scope.cancelled_caught:
            driver.was_graceful = False

    async def _start_metrics(
        self, nursery: trio.Nursery, parts: Assembly, host: str, port: int
    ) -> None:
        # Few nodes have the endpoint; the others need not load an HTTP library.
        from kraftwire.node.metrics_http import scrapes
        from kraftwire.transport.http_server import HttpServer

        place = Listener("kraftwire.prometheus.listener", host, port, False, False)
        server = HttpServer(scrapes(lambda: render(self._samples(parts))))
        for listening in await bind(place, self.config.limits.backlog):
            nursery.start_soon(trio.serve_listeners, server.accept, [listening])
        log("info", "metrics", address=f"{host}:{port}")

    def _samples(self, parts: Assembly) -> Iterator[Sample]:
        """Return the current counters and gauges."""
        yield from raft_samples(parts.core.metrics())
        yield from connection_samples(self._connection_stats, self._admission.memory.used)
        yield from link_samples(self._link_stats)
        yield counter("log_flushes", "Flushes of the log", parts.driver.flush_count)
        yield contradiction_sample(parts.controller.image.contradiction)
        if self._state_machine is None:
            yield from parts.controller.samples()
        yield from snapshot_samples(parts.driver.snapshot_written, parts.driver.now_ms())


def _open_bytes(config: NodeConfig) -> int:
    """Return the bytes of an open connection: more if any listener has TLS."""
    has_tls = any(one.settings.is_tls for one in config.security.listeners.values())
    return OPEN_CONNECTION_BYTES + (TLS_CONNECTION_BYTES if has_tls else 0)


def _bound(
    config: NodeConfig, sockets: list[tuple[Listener, list[trio.SocketListener]]]
) -> tuple[Endpoint, ...]:
    """Return the advertised endpoints, with the actual port in place of each port 0."""
    endpoints = []
    for listener, listening in sockets:
        endpoint = config.endpoint(listener.name)
        assert endpoint is not None
        port = endpoint.port or listening[0].socket.getsockname()[1]
        endpoints.append(Endpoint(endpoint.listener, endpoint.host, port))
    return tuple(endpoints)


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error to report: a deliberate shutdown takes precedence over all others."""
    leaves = list(_leaves(group))
    ours = [error for error in leaves if isinstance(error, KraftwireError)]
    return next(iter([e for e in ours if not isinstance(e, UsageError)] or ours or leaves))


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
