"""A proxied connection without its sockets: events in, commands out.

Whoever owns the two sockets passes on what they read, reads a side only while `takes` says so, and
carries the commands out in their order. Nothing here waits, and nothing is kept but the frame that
has to be understood and the bytes that came with it.

The model is mitmproxy's `Layer`.
"""

from __future__ import annotations

from kraftwire.errors import FAULTS, KraftwireError
from kraftwire.proxy.events import (
    Broken,
    Command,
    End,
    Ended,
    Event,
    Received,
    Resumed,
    Say,
    Side,
)
from kraftwire.proxy.requests import RequestFlow
from kraftwire.proxy.responses import ResponseFlow
from kraftwire.proxy.state import ConnectionState

# A client with more requests without answer is not read.
_IN_FLIGHT_MAX = 1000


class ProxyLayer:
    """A client's connection through the proxy to one node."""

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._responses = ResponseFlow(state)
        self._requests = RequestFlow(state, self._responses)
        self._ended: set[Side] = set()
        self._is_end_passed = False

    def handle(self, event: Event, now: float) -> list[Command]:
        """Return what is to be done after an event. Units: `now` is in seconds."""
        state = self._state
        if state.is_closed:
            return []
        state.now = now
        try:
            match event:
                case Received(Side.CLIENT, data):
                    self._requests.feed(data)
                case Received(Side.UPSTREAM, data):
                    self._responses.feed(data)
                case Resumed():
                    self._responses.resume()
                    self._requests.resume()
                case Ended(side):
                    self._ended.add(side)
                case Broken():
                    state.is_closed = True
        except (KraftwireError, *FAULTS) as error:
            # Bytes that are no frames, or what a rule's function raises.
            text = str(error) if isinstance(error, KraftwireError) else repr(error)
            state.commands.append(Say(f"a connection is ended: {text}"))
            state.is_closed = True
        if self._ended:
            self._pass_end()
        return state.take_commands()

    def takes(self, side: Side) -> bool:
        """Return whether bytes of a side can be handled now."""
        if side is Side.UPSTREAM:
            return not self._responses.is_waiting
        return not self._requests.is_waiting and len(self._state.in_flight) < _IN_FLIGHT_MAX

    @property
    def is_idle(self) -> bool:
        """Whether no request is on its way."""
        is_between = self._requests.is_between_frames and self._responses.is_between_frames
        return is_between and not self._state.in_flight

    def _pass_end(self) -> None:
        """Pass the end of a side on, once what it sent has been."""
        if Side.UPSTREAM in self._ended and not self._responses.is_waiting:
            self._state.is_closed = True
        elif Side.CLIENT in self._ended and not self._requests.is_waiting:
            is_answered = not self._state.in_flight and self._responses.is_between_frames
            if is_answered or self._responses.is_mute:
                self._state.is_closed = True
            elif not self._is_end_passed:
                self._is_end_passed = True
                self._state.commands.append(End(Side.UPSTREAM))
