"""What outputs of a run are made of: taking frames and lines of files, and exchanges of frames.

A request waits for its response, in bounded memory. Each output, and each connection of Spark's
tables, has one table of the requests in flight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import ClassVar, Generic, TypeVar

from kraftwire.capture.framing.frames import Ending, RawFrame, Request
from kraftwire.capture.framing.health import Health
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileFinding, FileLine
from kraftwire.decode.limits import PENDING_BYTES_MAX
from kraftwire.limits import RENDER_PENDING_COUNT_MAX

T = TypeVar("T")

# The memory of a decoded request besides its bytes.
_OBJECT_BYTES = 2000
# The most that the objects of a request may take for each of its bytes, before they are measured.
_OBJECTS_RATIO = 24
# The objects of decoded requests that wait; with more, the oldest requests keep only their bytes.
_OBJECTS_BYTES_MAX = 8 * 1024 * 1024


class Enough(Exception):
    """Ends a run whose output has shown as much as was wanted."""


class Sink:
    """Shows frames and lines of files: one kind of output. A method that is not overridden does
    nothing.

    Order: `begin` before the first frame; `frame`, `file_line` and the others as they come; then
    `finish` once, also after a run that was interrupted.
    """

    # Whether a request passes the filters if its response does, and the reverse.
    takes_exchanges: ClassVar[bool] = False
    # Whether ordinary frames may come with their bodies alone: see `decode.body.ordinary`.
    takes_bodies: ClassVar[bool] = False
    # Whether filters must keep the order of frames: no request waits for its response.
    needs_order: ClassVar[bool] = False
    # Whether log directories have something to show.
    takes_files: ClassVar[bool] = True

    # How many exchanges, frames, lines of files or records, whatever this output shows one by one,
    # are still wanted. At 0 the run ends.
    left: float = math.inf

    def begin(self, time_ns: int, /) -> None:
        """Learn the time of the run's first frame, shown or not."""

    def frame(self, frame: Frame, /) -> None:
        """Show a frame that passed the filters."""

    def take_ordinary(self, frames: Sequence[RawFrame], number: int = 0, /) -> Iterator[bool]:
        """Show ordinary frames before they are decoded; yields for each whether it was shown.

        `number` is that of the first of them in the run. Frames that were not shown have to come
        again through `frame`.
        """
        del frames, number
        return repeat(False)

    def unwanted(self, frame: Frame, /) -> None:
        """Learn of a frame of the wanted times that did not pass the filters; see `needs_order`."""

    def ending(self, ending: Ending, /) -> None:
        """Learn that a connection ends."""

    def begin_capture(self, health: Health, /) -> None:
        """Learn that a capture is read, whose totals are complete when the run ends."""

    def begin_file(self, file: str, kind: FileKind, /) -> None:
        """Learn that a file of a log directory is read, which may have no lines."""

    def file_line(self, line: FileLine, /) -> None:
        """Show a batch, an index entry or a state file."""

    def file_finding(self, finding: FileFinding, /) -> None:
        """Learn what is wrong with a file. Order: among its lines."""

    def refused_directory(self, folder: str, reason: str, /) -> None:
        """Learn why a node would not start on a log directory. Order: after its files."""

    def finish(self) -> None:
        """Show the rest, such as statistics, and flush."""


def no_response_text(request: Request | None) -> str:
    """Say why there is no response: the capture lost it, the server sent none, or none was wanted.
    """
    if request is None or not request.has_response:
        return "wants no response"
    if request.lost is None:
        return "no response"
    count, size = request.lost
    text = "response not captured"
    if count > 1:
        text += f", one of {count:,}"
    if size:
        text += f"{' in' if count > 1 else ','} {size:,} bytes"
    return text


class PendingRequests(Generic[T]):
    """A table of the requests in flight: a value for each, until its response comes.

    The total weight is limited; the requests that wait longest are dropped. `dropped` holds their
    values, and those of requests that a response has passed over, until they are taken.
    """

    def __init__(self, weight_max: int = RENDER_PENDING_COUNT_MAX) -> None:
        # Request -> its value and weight, in the order of the requests.
        self._waiting: dict[Request, tuple[T, int]] = {}
        self._weight = 0
        self._weight_max = weight_max
        self.dropped: list[T] = []

    def add(self, request: Request, value: T, weight: int = 1) -> None:
        """Enter a request; values may have to be `dropped` for it."""
        self._waiting[request] = value, weight
        self._weight += weight
        while self._weight > self._weight_max:
            self._drop(next(iter(self._waiting)))

    def get(self, request: Request) -> T | None:
        """Return the value of a request, which stays in the table; None if it is not there."""
        entry = self._waiting.get(request)
        return None if entry is None else entry[0]

    def take(self, request: Request) -> T | None:
        """Remove a request, and return its value; those that it has `skipped` are `dropped`."""
        for each in request.skipped:
            if each in self._waiting:
                self._drop(each)
        entry = self._waiting.pop(request, None)
        if entry is None:
            return None
        value, weight = entry
        self._weight -= weight
        return value

    def take_dropped(self) -> Iterator[T]:
        """Yield the values that are `dropped`, each once."""
        # A reported request is no longer held: the receiver may decode it.
        found, self.dropped = self.dropped[::-1], []
        while found:
            value = found.pop()
            yield value
            del value

    def drain(self) -> Iterator[T]:
        """Remove all requests, and yield their values in order of the requests."""
        everything = list(self._waiting.values())[::-1]
        self._waiting.clear()
        self._weight = 0
        while everything:
            value, _ = everything.pop()
            yield value
            del value

    def replace(self, change: Callable[[T], T]) -> None:
        """Replace the value of each request by one of the same weight."""
        for request, (value, weight) in self._waiting.items():
            self._waiting[request] = change(value), weight

    def _drop(self, request: Request) -> None:
        value, weight = self._waiting.pop(request)
        self._weight -= weight
        self.dropped.append(value)


class ExchangeSink(Sink, Generic[T]):
    """Reports each response with what was kept of its request, and requests without a response.

    What is kept of requests is bounded in number; if they are `kept_whole`, in bytes, which
    `weight` estimates.
    """

    takes_exchanges = True

    def __init__(self, *, kept_whole: bool = False) -> None:
        self._is_weighed = kept_whole
        limit = PENDING_BYTES_MAX if kept_whole else RENDER_PENDING_COUNT_MAX
        self._pending: PendingRequests[T] = PendingRequests(limit)

    def frame(self, frame: Frame) -> None:
        """Take the next frame."""
        request, pending = frame.request, self._pending
        if frame.direction != "request":
            found = None if request is None else pending.take(request)
            if pending.dropped:
                self._take_unanswered(pending.take_dropped())
            self.take_response(found, frame)
            return
        kept = self.keep_request(frame)
        if kept is None:
            return
        if request is None or not request.has_response:
            self.take_unanswered(kept, False)
            return
        pending.add(request, kept, self.weight(frame, kept) if self._is_weighed else 1)
        if pending.dropped:
            self._take_unanswered(pending.take_dropped())

    def _take_unanswered(self, requests: Iterable[T]) -> None:
        """Report requests without a response, as far as they are wanted."""
        for each in requests:
            if self.left <= 0:
                return
            self.take_unanswered(each, True)

    def finish(self) -> None:
        """Report the requests that never got a response, unless the run ended before they could.
        """
        self._take_unanswered(self._pending.drain())

    def weight(self, frame: Frame, _kept: T, /) -> int:
        """Estimate the memory of a request that is kept whole. Units: bytes."""
        return frame.size + _OBJECT_BYTES

    def keep_request(self, frame: Frame, /) -> T | None:
        """Take a request; returns what is kept of it, None if its response is not awaited."""
        raise NotImplementedError

    def take_response(self, request: T | None, response: Frame, /) -> None:
        """Take a response with what was kept of its request, None if that is not known."""
        raise NotImplementedError

    def take_unanswered(self, request: T, is_awaited: bool, /) -> None:
        """Take a request without a response, because it wants none or gets none.

        It got one that the capture lost if `lost` of its `Request` says so.
        """
        raise NotImplementedError


class DecodedCache:
    """Bounds the objects of decoded requests that wait, by an estimate of their memory."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Frame, int]] = {}
        self._bytes = 0

    def hold(self, decoded: Frame) -> None:
        """Add a request; the oldest keep only their bytes if there are too many objects."""
        size = decoded.size * _OBJECTS_RATIO
        self._held[decoded.frame] = decoded, size
        self._bytes += size
        while self._bytes > _OBJECTS_BYTES_MAX:
            self._remove(next(iter(self._held))).release_objects()

    def release(self, decoded: Frame) -> None:
        """Remove a request that is about to be shown; its objects stay."""
        if decoded.frame in self._held:
            self._remove(decoded.frame)

    def _remove(self, number: int) -> Frame:
        decoded, size = self._held.pop(number)
        self._bytes -= size
        return decoded


class DecodedExchangeSink(ExchangeSink[Frame]):
    """Reports exchanges of decoded frames; requests are kept whole until their responses come."""

    def __init__(self) -> None:
        super().__init__(kept_whole=True)
        self._cache = DecodedCache()

    def exchange(
        self, request: Frame | None, response: Frame | None, is_awaited: bool, /
    ) -> None:
        """Take a request, a response or both.

        `is_awaited` says of a lone request whether a response should have come.
        """
        raise NotImplementedError

    def keep_request(self, frame: Frame, /) -> Frame:
        """Hold a request back; of older ones only the bytes are kept if there are many."""
        self._cache.hold(frame)
        return frame

    def take_response(self, request: Frame | None, response: Frame, /) -> None:
        """Take a response with its request."""
        if request is not None:
            self._cache.release(request)
        self.exchange(request, response, True)

    def take_unanswered(self, request: Frame, is_awaited: bool, /) -> None:
        """Take a request without a response."""
        self._cache.release(request)
        self.exchange(request, None, is_awaited)
