"""Tests of a proxied connection that read as a dialogue: events go in, commands have to come out.

    assert Playbook(layer) >> client(b"...") << to_upstream(b"...")

The model is the `Playbook` of mitmproxy's tests.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from kraftwire.proxy.events import (
    Broken,
    Command,
    Data,
    Ended,
    Event,
    Received,
    Record,
    Resumed,
    Send,
    Side,
)
from kraftwire.proxy.layer import ProxyLayer


class At(NamedTuple):
    """`Resumed` at a time."""

    time: float


class Playbook:
    """A dialogue with a layer. It is true if every command came in its turn, and no other."""

    def __init__(self, layer: ProxyLayer) -> None:
        self.layer = layer
        self._now = 0.0
        self._pending: list[Command] = []
        self._lines: list[str] = []
        self._is_wrong = False

    def __rshift__(self, event: Event | At) -> Self:
        self._check_nothing_pending()
        if isinstance(event, At):
            self._now, event = event.time, Resumed()
        self._lines.append(f">> {event!r:.400}")
        self._pending = self.layer.handle(event, self._now)
        return self

    def __lshift__(self, expected: Command) -> Self:
        found = self._pending.pop(0) if self._pending else None
        self._lines.append(f"<< {expected!r:.400}")
        if found != expected:
            self._is_wrong = True
            self._lines.append(f"   FOUND {found!r:.400}")
        return self

    def __bool__(self) -> bool:
        self._check_nothing_pending()
        return not self._is_wrong

    def __repr__(self) -> str:
        return "\n" + "\n".join(self._lines)

    def _check_nothing_pending(self) -> None:
        for command in self._pending:
            self._is_wrong = True
            self._lines.append(f"   NOT EXPECTED {command!r:.400}")
        self._pending = []


def client(data: bytes) -> Received:
    """Bytes of the client."""
    return Received(Side.CLIENT, data)


def upstream(data: bytes) -> Received:
    """Bytes of the node."""
    return Received(Side.UPSTREAM, data)


def to_client(data: Data, recorded: bytes | None = None) -> Send:
    """Bytes for the client."""
    return Send(Side.CLIENT, data, recorded)


def to_upstream(data: Data, recorded: bytes | None = None) -> Send:
    """Bytes for the node."""
    return Send(Side.UPSTREAM, data, recorded)


def of_client(data: Data) -> Record:
    """What a capture gets of the client."""
    return Record(Side.CLIENT, data)


def of_upstream(data: Data) -> Record:
    """What a capture gets of the node."""
    return Record(Side.UPSTREAM, data)


CLIENT_ENDED, UPSTREAM_ENDED = Ended(Side.CLIENT), Ended(Side.UPSTREAM)
CLIENT_BROKEN = Broken(Side.CLIENT)
