"""The proxy as a process or a task: its listeners, its connections, what it says.

There is one listener for the bootstrap addresses, and one for each node that an answer has named.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter

import trio

from kraftwire.control.request_log import RequestLog
from kraftwire.errors import FAULTS, ApiError, SecurityError, UsageError, WireError
from kraftwire.faults.rows import shown_row
from kraftwire.faults.rules import FaultRule, FaultRules
from kraftwire.node.capture import CaptureFile
from kraftwire.node.listener import connections_max, probe_peer, raise_descriptor_limit
from kraftwire.protocol.endpoint import Address, address_text
from kraftwire.proxy.addresses import Node, rewrite_response
from kraftwire.proxy.connection import ProxiedConnection
from kraftwire.proxy.events import Side
from kraftwire.proxy.layer import ProxyLayer
from kraftwire.proxy.nodes import NodeTable
from kraftwire.proxy.settings import WILDCARDS, ProxySettings
from kraftwire.proxy.state import ConnectionState, Shared
from kraftwire.proxy.upstream import TIMEOUT_S, Upstream
from kraftwire.transport.listening import Interface, interfaces, listen
from kraftwire.transport.streams import Stream, Tap, close_now
from kraftwire.wire.message import Message

_BACKLOG = 1024
_PORT_MAX = 0xFFFF
# The same line is said again after this time, in seconds; so many different ones are remembered.
_QUIET_S = 10.0
_LINES_MAX = 1000
# So many of the rules that have ended are in the summary.
_ENDED_RULES_MAX = 1000
# A rule in the summary has so many characters.
_RULE_TEXT_MAX = 500

_WANTS_LOGIN = (
    "the cluster wants a login: brokers are listed once a client has logged in and asked for them"
)
_TOO_MANY = "a connection is refused: {} are open, as many as there may be"

Accept = Callable[[trio.SocketStream], Awaitable[None]]


class Proxy:
    """A proxy. Order: `run` once; all other calls from its trio thread, once `bootstrap` is set.

    `announce` gets the lines for programs (``bootstrap HOST:PORT``, ``broker ID HOST:PORT``), `say`
    those for people.
    """

    def __init__(
        self,
        settings: ProxySettings,
        *,
        announce: Callable[[str], object],
        say: Callable[[str], object],
    ) -> None:
        self.bootstrap: Address | None = None
        self.rules = FaultRules(on_remove=self._on_remove)
        self._settings = settings
        self._announce = announce
        self._say_line = say
        self._upstream = Upstream(settings.upstream, settings.upstream_security)
        self._table = NodeTable(self._open_listener)
        self._capture: CaptureFile | None = None
        if settings.capture is not None:
            self._capture = CaptureFile(
                settings.capture, option="--capture", is_new=True, say=self._say
            )
        self._shared = Shared(
            find_here=self._table.find_here,
            rules=self.rules,
            records=self._capture is not None,
            requests=RequestLog() if settings.control is not None else None,
        )
        self._interfaces: tuple[Interface, ...] = ()
        self._next_port = 0
        self._connections: set[ProxiedConnection] = set()
        # Also those that are not yet connected to a node.
        self._accepted = 0
        self._accepted_max = 0
        self._nursery: trio.Nursery | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._said: dict[str, float] = {}
        self._ended_rules: deque[FaultRule] = deque(maxlen=_ENDED_RULES_MAX)

    async def run(
        self, *, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until cancelled; the status is the bootstrap address.

        Raises: OSError if the port is taken, ApiError, SecurityError or WireError if the cluster
        does not answer.
        """
        self._accepted_max = connections_max(raise_descriptor_limit(), sockets=2)
        self._token = trio.lowlevel.current_trio_token()
        try:
            sockets, nodes = await self._prepare()
            async with trio.open_nursery() as self._nursery:
                task_status.started(self._start(sockets, nodes))
        finally:
            if self._capture is not None:
                self._capture.close()

    def add_rule(self, rule: FaultRule) -> FaultRule:
        """Put a rule in force."""
        return self.rules.add(rule, trio.current_time())

    def summary(self) -> Iterator[str]:
        """Yield lines that say what was requested, by client, and what each rule did."""
        for client, requests in groupby(self._shared.traffic.rows(), key=itemgetter(0)):
            apis = ", ".join(f"{api} {count}" for _, api, count in requests)
            yield f"{'no client id' if client is None else client}: {apis}"
        for rule in sorted((*tuple(self._ended_rules), *self.rules), key=attrgetter("id")):
            keys = ", ".join(f"{key} {value}" for key, value in shown_row(rule).items())
            missed = ", ".join(f"{api} {count}" for api, count in rule.not_carried.items())
            note = f"; passed without a place for the error: {missed}" if missed else ""
            yield f"rule {rule.id} ({keys:.{_RULE_TEXT_MAX}}): {rule.count} requests{note}"

    async def _prepare(self) -> tuple[list[list[socket.socket]], Message | None]:
        """Take the ports, and ask the cluster for its nodes; None if it wants a login first."""
        found = []
        with ExitStack() as stack:
            for address in (self._settings.listen, self._settings.control):
                if address is None:
                    continue
                addresses, sockets = await _bind(address)
                self._interfaces = self._interfaces or addresses
                found.append(sockets)
                for one in sockets:
                    stack.callback(one.close)
            self._next_port = self._settings.listen[1] and self._settings.listen[1] + 1
            nodes = await self._upstream.nodes()
            stack.pop_all()
            return found, nodes

    def _start(self, sockets: list[list[socket.socket]], nodes: Message | None) -> Address:
        bootstrap, *control = sockets
        self.bootstrap = self._advertised(bootstrap)
        self._announce(f"bootstrap {address_text(self.bootstrap)}")
        self._accept(bootstrap, partial(self._serve, None))
        for each in control:
            self._start_control(each)
        if nodes is None:
            self._say(_WANTS_LOGIN)
        else:
            rewrite_response(nodes, self._upstream.role, self._table.find_here)
        return self.bootstrap

    def _start_control(self, sockets: list[socket.socket]) -> None:
        # Few proxies have the interface; the others need not load an HTTP library.
        from kraftwire.control.access import Access
        from kraftwire.control.interface import BODY_BYTES_MAX, ControlInterface
        from kraftwire.transport.http_server import HttpServer

        settings = self._settings
        assert settings.control is not None
        assert self._shared.requests is not None
        interface = ControlInterface(
            Access(settings.control_token),
            rules=self.rules,
            add_rule=self.add_rule,
            requests=self._shared.requests,
            capture=settings.capture,
        )
        tls = None if settings.listener_tls is None else settings.listener_tls.context
        server = HttpServer(interface.answer, body_max=BODY_BYTES_MAX, tls=tls)
        host = settings.control[0]
        if host in WILDCARDS and settings.advertised_host:
            host = settings.advertised_host
        address = address_text((host, sockets[0].getsockname()[1]))
        self._announce(f"control {'http' if tls is None else 'https'}://{address}")
        self._accept(sockets, partial(self._serve_control, server.accept))

    async def _serve_control(self, accept: Accept, accepted: trio.SocketStream) -> None:
        """Serve a connection to the control interface, whatever happens."""
        try:
            await accept(accepted)
        except (ExceptionGroup, *FAULTS) as fault:
            self._say(f"a control connection is ended by a bug: {fault!r}")

    def _open_listener(self, node: Node) -> Address:
        """Open the listener of a node that is new. Raises: UsageError."""
        try:
            sockets = self._listen_near(self._next_port)
        except OSError as error:
            raise UsageError(f"no listener for {node.role} {node.id}: {error.strerror}") from None
        if self._next_port:
            self._next_port += 1
        address = self._advertised(sockets)
        self._announce(f"{node.role} {node.id} {address_text(address)}")
        self._accept(sockets, partial(self._serve, node))
        return address

    def _listen_near(self, port: int) -> list[socket.socket]:
        """Listen on a port, or on a free one if that is taken or is none. Raises: OSError."""
        if 0 < port <= _PORT_MAX:
            try:
                return listen(self._interfaces, port, _BACKLOG)
            except OSError:
                pass
        return listen(self._interfaces, 0, _BACKLOG)

    def _advertised(self, sockets: list[socket.socket]) -> Address:
        host = self._settings.advertised_host or self._settings.listen[0]
        return host, sockets[0].getsockname()[1]

    def _accept(self, sockets: list[socket.socket], accept: Accept) -> None:
        assert self._nursery is not None
        listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in sockets]
        serve = partial(trio.serve_listeners, handler_nursery=self._nursery)
        self._nursery.start_soon(serve, accept, listeners)

    async def _serve(self, node: Node | None, accepted: trio.SocketStream) -> None:
        """Serve one client, whatever happens."""
        self._accepted += 1
        try:
            if self._accepted > self._accepted_max:
                self._say(_TOO_MANY.format(self._accepted_max))
                return
            probe_peer(accepted.socket)
            await self._pass_on(node, accepted)
        except ApiError as error:
            self._say(error.detail)
        except (SecurityError, WireError) as error:
            self._say(str(error))
        except (OSError, trio.BrokenResourceError):
            pass
        except (ExceptionGroup, *FAULTS) as fault:
            self._say(f"a connection is ended by a bug: {fault!r}")
        finally:
            self._accepted -= 1
            close_now(accepted)

    async def _pass_on(self, node: Node | None, accepted: trio.SocketStream) -> None:
        client = await self._secured(accepted)
        address = None if node is None else self._table.upstream(node)
        opened, stream = await self._upstream.connect(address)
        state = ConnectionState(
            shared=self._shared,
            role=self._upstream.role if node is None else node.role,
            node=None if node is None else node.id,
        )
        connection = ProxiedConnection(
            ProxyLayer(state),
            {Side.CLIENT: client, Side.UPSTREAM: stream},
            say=self._say,
            taps=self._taps(accepted, opened),
        )
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    async def _secured(self, accepted: trio.SocketStream) -> Stream:
        """Do the handshake of a client. Raises: trio.BrokenResourceError."""
        tls = self._settings.listener_tls
        if tls is None:
            return accepted
        stream = trio.SSLStream(accepted, tls.context, server_side=True, https_compatible=True)
        with trio.move_on_after(TIMEOUT_S):
            await stream.do_handshake()
            return stream
        raise trio.BrokenResourceError

    def _taps(self, accepted: trio.SocketStream, opened: trio.SocketStream) -> dict[Side, Tap]:
        if self._capture is None:
            return {}
        came = self._capture.tap(accepted, True)
        found = {Side.CLIENT: came, Side.UPSTREAM: self._capture.tap(opened, False, came)}
        return {side: tap for side, tap in found.items() if tap is not None}

    def _on_remove(self, rule: FaultRule) -> None:
        """Let go what a rule has held; called in any thread, also after the end."""
        self._ended_rules.append(rule)
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._resume)

    def _resume(self) -> None:
        for connection in self._connections:
            connection.resume()

    def _say(self, text: str) -> None:
        """Say something to people, not the same all the time.

        What was found stands in brackets: whoever sends garbage finds something new each time.
        """
        now = time.monotonic()
        kind = text.partition(" (")[0]
        if now - self._said.get(kind, -_QUIET_S) < _QUIET_S:
            return
        if len(self._said) >= _LINES_MAX:
            self._said.clear()
        self._said[kind] = now
        self._say_line(text)


async def _bind(address: Address) -> tuple[tuple[Interface, ...], list[socket.socket]]:
    """Listen where a proxy was told to. Raises: OSError with the address."""
    host, port = address
    try:
        addresses = await interfaces(host)
        return addresses, listen(addresses, port, _BACKLOG)
    except OSError as error:
        text = error.strerror or str(error)
        raise OSError(error.errno, text, address_text(address)) from None
