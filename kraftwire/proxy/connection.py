"""One client's connection on trio: reads both sides and carries out what its layer wants."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from kraftwire.errors import ApiError, SecurityError
from kraftwire.proxy.events import (
    Broken,
    Close,
    End,
    Ended,
    Event,
    Received,
    Record,
    Resumed,
    Say,
    Send,
    Side,
    WakeAt,
)
from kraftwire.proxy.layer import ProxyLayer
from kraftwire.proxy.outlet import Outlet
from kraftwire.transport.secured_stream import SecuredStream
from kraftwire.transport.streams import Stream, Tap, close_now

_READ_BYTES = 256 * 1024
# What was to be sent before a connection ends may take so long.
_LINGER_S = 10.0


class ProxiedConnection:
    """A client's stream and the one to its node. Order: call `run` once."""

    def __init__(
        self,
        layer: ProxyLayer,
        streams: dict[Side, Stream],
        *,
        say: Callable[[str], None],
        taps: dict[Side, Tap] | None = None,
    ) -> None:
        self._layer = layer
        self._streams = streams
        self._say = say
        self._taps = taps or {}
        self._outlets = {side: Outlet(stream) for side, stream in streams.items()}
        self._ending: set[Side] = set()
        self._is_closing = False
        # Those that have ended by themselves.
        self._gone: set[Side] = set()
        # Set when a side may be read again.
        self._may_read = {side: trio.Event() for side in Side}
        # The wait for a time that the layer has asked for.
        self._wake_at = math.inf
        self._alarm = trio.CancelScope()
        self._scope = trio.CancelScope()
        self._login = Renewal(streams[Side.UPSTREAM])

    async def run(self) -> None:
        """Pass everything on until a side ends the connection; closes both streams."""
        try:
            async with trio.open_nursery() as nursery:
                self._scope = nursery.cancel_scope
                nursery.start_soon(self._follow_clock)
                for side in Side:
                    nursery.start_soon(self._read, side)
        finally:
            for side, stream in self._streams.items():
                close_now(stream)
                if side in self._taps:
                    self._taps[side].closed(by_peer=side in self._gone)

    def resume(self) -> None:
        """Look at the rules again; called in trio's thread."""
        self._wake_at = trio.current_time()
        self._alarm.cancel()

    async def _read(self, side: Side) -> None:
        """Pass on what a side sends, until it ends."""
        stream: Renewal | Stream = self._login if side is Side.UPSTREAM else self._streams[side]
        event: Event = Resumed()
        while not isinstance(event, Ended | Broken):
            while not self._layer.takes(side):
                await self._may_read[side].wait()
            try:
                data = await stream.receive_some(_READ_BYTES)
                event = Received(side, bytes(data)) if data else Ended(side)
                if self._login.is_due and side is Side.CLIENT and self._layer.is_idle:
                    await self._login.renew()
            except (trio.BrokenResourceError, SecurityError, ApiError):
                event = Broken(side)
            if isinstance(event, Ended | Broken):
                self._gone.add(side)
                if side in self._taps:
                    self._taps[side].ended(by_peer=True)
            self._handle(event)
            await self._flush()

    async def _follow_clock(self) -> None:
        """Pass on the times that the layer has asked for."""
        while True:
            with trio.CancelScope(deadline=self._wake_at) as self._alarm:
                await trio.sleep_forever()
            if trio.current_time() >= self._wake_at:
                self._wake_at = math.inf
                self._handle(Resumed())
                await self._flush()

    def _handle(self, event: Event) -> None:
        for command in self._layer.handle(event, trio.current_time()):
            match command:
                case Send(side, data, recorded):
                    self._outlets[side].add(data)
                    if side in self._taps:
                        self._taps[side].sent(bytes(data) if recorded is None else recorded)
                case Record(side, data):
                    if side in self._taps:
                        self._taps[side].received(bytes(data))
                case WakeAt(time):
                    if time < self._wake_at:
                        self._wake_at = time
                        self._alarm.cancel()
                case End(side):
                    self._ending.add(side)
                case Close():
                    self._is_closing = True
                case Say(text):
                    self._say(text)
        for side in Side:
            if self._layer.takes(side):
                self._may_read[side].set()
                self._may_read[side] = trio.Event()

    async def _flush(self) -> None:
        """Send what is to be sent; what cannot be sent ends the connection."""
        limit_s = _LINGER_S if self._is_closing else math.inf
        try:
            with trio.move_on_after(limit_s):
                for side, outlet in self._outlets.items():
                    await outlet.flush()
                    if side in self._ending:
                        self._ending.discard(side)
                        await _end(self._streams[side])
                        if side in self._taps:
                            self._taps[side].ended()
        except (trio.BrokenResourceError, trio.ClosedResourceError, SecurityError, ApiError):
            self._is_closing = True
        if self._is_closing:
            self._scope.cancel()


async def _end(stream: Stream) -> None:
    """End what is sent, where a stream can do that; TLS cannot."""
    if isinstance(stream, trio.SocketStream | trio.StapledStream):
        await stream.send_eof()


class Renewal:
    """Reads a node's stream, and renews the proxy's own login on it if it has one."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._secured = stream if isinstance(stream, SecuredStream) else None
        self._scope = trio.CancelScope()
        self._is_parked, self._is_done = trio.Event(), trio.Event()

    @property
    def is_due(self) -> bool:
        """Whether the session ends soon."""
        return self._secured is not None and self._secured.is_renewal_due

    async def renew(self) -> None:
        """Log in again, while nobody reads. Raises: as `SecuredStream.renew`."""
        assert self._secured is not None
        self._is_parked, self._is_done = trio.Event(), trio.Event()
        self._scope.cancel()
        await self._is_parked.wait()
        await self._secured.renew()
        self._is_done.set()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Read at least one byte; nothing at the end."""
        while True:
            with trio.CancelScope() as self._scope:
                return await self._stream.receive_some(max_bytes)
            self._is_parked.set()
            await self._is_done.wait()
