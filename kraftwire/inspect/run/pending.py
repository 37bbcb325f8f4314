"""Outputs of a filter that depends on both frames of an exchange: requests wait for responses.

Owns when frames are shown then: with the response, or, for sinks that take frames in order, where
they stood.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kraftwire.capture.framing.frames import Ending
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.filters.frames import FrameFilter
from kraftwire.decode.limits import PENDING_BYTES_MAX
from kraftwire.decode.sinks import DecodedExchangeSink, Sink

# The memory of something that waits besides its bytes.
_OBJECT_BYTES = 2000

_Show = Callable[[Frame], None]


class PendingExchanges(DecodedExchangeSink):
    """Holds each request until its response, and shows both together."""

    def __init__(self, filter: FrameFilter, show: _Show) -> None:
        super().__init__()
        self._filter = filter
        self._show = show

    def exchange(
        self, request: Frame | None, response: Frame | None, _is_awaited: bool, /
    ) -> None:
        """Show a request and its response, or one of them alone, if they pass."""
        if _passes(self._filter, request, response):
            for each in (request, response):
                if each is not None:
                    self._show(each)


@dataclass(slots=True, eq=False)
class _Place:
    """A frame, or the end of a connection, in its place; `is_shown` is None until decided."""

    what: Frame | Ending
    size: int
    is_shown: bool | None = None


class PendingInOrder(DecodedExchangeSink):
    """Holds frames and ends of connections, and passes them on in their order.

    What follows a request waits with it. If too much waits, the first frame is judged alone.
    """

    def __init__(self, filter: FrameFilter, show: _Show, sink: Sink) -> None:
        super().__init__()
        self._filter = filter
        self._show = show
        self._sink = sink
        self._queue: deque[_Place] = deque()
        self._undecided: dict[int, _Place] = {}
        self._bytes = 0

    def frame(self, decoded: Frame) -> None:
        """Take the next frame."""
        place = _Place(decoded, decoded.size + _OBJECT_BYTES)
        self._undecided[decoded.frame] = place
        self._append(place)
        super().frame(decoded)
        self._release()
        if self._queue:
            # Whatever waits keeps only its bytes.
            decoded.release_objects()

    def ending(self, ending: Ending) -> None:
        """Take the end of a connection."""
        self._append(_Place(ending, _OBJECT_BYTES, is_shown=True))
        self._release()

    def exchange(
        self, request: Frame | None, response: Frame | None, _is_awaited: bool, /
    ) -> None:
        """Decide about a request and its response, or one of them alone."""
        is_shown = _passes(self._filter, request, response)
        for each in (request, response):
            place = None if each is None else self._undecided.pop(each.frame, None)
            if place is not None:
                place.is_shown = is_shown
        if request is not None and self._queue and request is not self._queue[0].what:
            request.release_objects()

    def finish(self) -> None:
        """Show the rest: no more responses come."""
        super().finish()
        for place in self._queue:
            self._judge_alone(place)
        self._release()

    def _append(self, place: _Place) -> None:
        self._queue.append(place)
        self._bytes += place.size

    def _release(self) -> None:
        """Pass on what no longer waits for anything before it."""
        queue = self._queue
        while queue and (queue[0].is_shown is not None or self._bytes > PENDING_BYTES_MAX):
            place = queue.popleft()
            self._bytes -= place.size
            self._judge_alone(place)
            self._pass_on(place)

    def _judge_alone(self, place: _Place) -> None:
        what = place.what
        if place.is_shown is None and isinstance(what, Frame):
            self._undecided.pop(what.frame, None)
            place.is_shown = self._filter.passes(what)

    def _pass_on(self, place: _Place) -> None:
        what, sink = place.what, self._sink
        if isinstance(what, Ending):
            sink.ending(what)
        elif place.is_shown:
            self._show(what)
        elif self._filter.is_in_time(what):
            sink.unwanted(what)


def _passes(
    filter: FrameFilter, request: Frame | None, response: Frame | None
) -> bool:
    """Whether a request and its response are wanted together, or one of them alone."""
    if request is not None and response is not None:
        return filter.passes_exchange(request, response)
    one = request or response
    return one is not None and filter.passes(one)
