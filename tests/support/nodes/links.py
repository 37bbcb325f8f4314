"""Loopback relays in front of nodes, whose links can be cut, each direction by itself.

Owns a listening socket for each node: peers know a node by its relay's port, so everything that
they send to it passes here. The sender is read from the client id of the first
request (``raft-client-<id>``, or the bare id). Data held back by a cut arrives when the cut ends,
as after a network failure: TCP loses nothing.
"""

from __future__ import annotations

import contextlib
import re
import struct
import threading
from collections.abc import Iterable
from typing import Self

import trio

_HOST = "127.0.0.1"
_CHUNK = 65536
_CLIENT_ID = re.compile(rb"(?:raft-client-)?(\d+)")

# Size, API key, version, correlation id, then the length of the client id.
_FIRST = struct.Struct(">ihhih")

_UNKNOWN = 0
_GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


class Links:
    """A relay for each node id; use it as a context manager.

    `ports` are those that the nodes have to advertise. Order: `aim` each relay before a peer
    connects to its node. Cuts may be made from any thread.
    """

    def __init__(self, node_ids: Iterable[int]) -> None:
        self._targets: dict[int, int] = {}
        self._cuts: frozenset[tuple[int, int]] = frozenset()
        self._sockets: dict[int, trio.socket.SocketType] = {}
        self._ids = tuple(node_ids)
        self.ports: dict[int, int] = {}
        self._changed = trio.Event()
        self._is_open = threading.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope = trio.CancelScope()
        self._thread = threading.Thread(target=trio.run, args=(self._main,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_open.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        self._token.run_sync_soon(self._scope.cancel)
        self._thread.join()

    def aim(self, node_id: int, port: int) -> None:
        """Set where a node listens."""
        self._targets[node_id] = port

    def cut(self, *pairs: tuple[int, int]) -> None:
        """Let nothing pass from the first node of a pair to the second."""
        self._set(self._cuts | frozenset(pairs))

    def heal(self, *pairs: tuple[int, int]) -> None:
        """Let everything pass again; what was held back first."""
        self._set(self._cuts - frozenset(pairs))

    def heal_all(self) -> None:
        """End all cuts."""
        self._set(frozenset())

    def _set(self, cuts: frozenset[tuple[int, int]]) -> None:
        assert self._token is not None
        self._cuts = cuts
        self._token.run_sync_soon(self._wake)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with self._scope:
            async with trio.open_nursery() as nursery:
                for node_id in self._ids:
                    (listener,) = await trio.open_tcp_listeners(0, host=_HOST)
                    self.ports[node_id] = listener.socket.getsockname()[1]
                    nursery.start_soon(self._listen, node_id, listener)
                self._is_open.set()

    async def _listen(self, node_id: int, listener: trio.SocketListener) -> None:
        async def serve(caller: trio.SocketStream) -> None:
            # If one side is gone, the other notices by the end of its stream.
            with contextlib.suppress(*_GONE):
                await self._relay(node_id, caller)

        await trio.serve_listeners(serve, [listener])

    async def _relay(self, node_id: int, caller: trio.SocketStream) -> None:
        """Relay one connection. It is opened only when the first bytes may pass."""
        async with caller:
            first = await caller.receive_some(_CHUNK)
            source = _node_of(first)
            await self._passage(source, node_id)
            if not first:
                return
            callee = await trio.open_tcp_stream(_HOST, self._targets[node_id])
            async with callee, trio.open_nursery() as nursery:
                with contextlib.suppress(*_GONE):
                    await callee.send_all(first)
                nursery.start_soon(self._pump, caller, callee, source, node_id)
                await self._pump(callee, caller, node_id, source)
                nursery.cancel_scope.cancel()

    async def _pump(
        self, giver: trio.SocketStream, taker: trio.SocketStream, source: int, target: int
    ) -> None:
        """Relay one direction to its end."""
        with contextlib.suppress(*_GONE):
            while data := await giver.receive_some(_CHUNK):
                await self._passage(source, target)
                await taker.send_all(data)
            await self._passage(source, target)
            await taker.send_eof()

    async def _passage(self, source: int, target: int) -> None:
        while (source, target) in self._cuts:
            await self._changed.wait()


def _node_of(first: bytes) -> int:
    """The node id in the client id of a request; 0 if the client is not a node."""
    if len(first) < _FIRST.size:
        return _UNKNOWN
    length = _FIRST.unpack_from(first)[4]
    name = first[_FIRST.size : _FIRST.size + max(length, 0)]
    match = _CLIENT_ID.fullmatch(name)
    return int(match[1]) if match is not None else _UNKNOWN
