"""Pairs frames into exchanges, for all outputs that show requests with their responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from kraftwire.capture.framing.frames import Frame, Request
from kraftwire.capture.limits import PENDING_BYTES_MAX
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.quick import quick_bodies
from kraftwire.decode.exchange.decoded_cache import Fresh
from kraftwire.decode.exchange.pending import Pending
from kraftwire.decode.sinks import Sink
from kraftwire.limits import RENDER_PENDING_COUNT_MAX
from kraftwire.wire.message import Message

__all__ = ["Paired", "Passed", "QuickPaired", "WholePaired"]

T = TypeVar("T")

# The memory of a decoded request besides its bytes.
_OBJECT_BYTES = 2000


@dataclass(slots=True, eq=False)
class Passed:
    """A request that was passed over: another process has shown it, if it was shown alone.

    `decoded` is set if the frame says something about others.
    """

    frame: Frame
    number: int
    decoded: DecodedFrame | None


class Paired(Sink, Generic[T]):
    """Takes frames in order; reports requests, and responses with what was kept of their requests.

    Requests that get no response are reported as well. What is kept of requests is bounded in
    number; if they are `kept_whole`, in bytes, which `weight` estimates.
    """

    is_paired = True

    def __init__(self, *, kept_whole: bool = False) -> None:
        self._is_weighed = kept_whole
        limit = PENDING_BYTES_MAX if kept_whole else RENDER_PENDING_COUNT_MAX
        self._pending: Pending[T | Passed] = Pending(limit)

    def frame(self, decoded: DecodedFrame) -> None:
        """Take the next frame."""
        self.take(decoded.frame, decoded.body, decoded)

    def take(self, frame: Frame, body: Message | None, decoded: DecodedFrame | None) -> None:
        """Take the next frame and its body; `decoded` is None where the body was read quickly."""
        request = frame.request
        if frame.direction == "request":
            kept = self.ask(frame, body, decoded)
            if kept is None:
                return
            if request is None or not request.has_response:
                self.unanswered(kept, False)
                return
            self._keep(frame, request, kept)
            return
        asked = None
        if request is not None:
            asked = self._pending.take(frame.connection, request)
            if self._pending.has_skipped:
                self._tell_skipped()
            if asked.__class__ is Passed:
                asked = self._known(asked)
        self.answer(cast("T | None", asked), frame, body, decoded)

    def _known(self, asked: T | Passed) -> T:
        """Return what is kept of a request, also of one that was passed over."""
        return cast("T", asked)

    def _keep(self, frame: Frame, request: Request, kept: T) -> None:
        weight = self.weight(frame, kept) if self._is_weighed else 1
        self._pending.add(frame.connection, request, kept, weight)
        if self._pending.has_skipped:
            self._tell_skipped()

    def _tell_skipped(self) -> None:
        for each in self._pending.skipped():
            self.unanswered(self._known(each), True)

    def finish(self) -> None:
        """Report the requests that never got a response."""
        for each in self._pending.rest():
            self.unanswered(self._known(each), True)

    def weight(self, frame: Frame, _kept: T | None, /) -> int:
        """Estimate the memory of a request that is kept whole. Units: bytes."""
        return frame.size + _OBJECT_BYTES

    def ask(
        self, frame: Frame, body: Message | None, decoded: DecodedFrame | None, /
    ) -> T | None:
        """Take a request; returns what is kept of it, None if its response is not awaited."""
        raise NotImplementedError

    def answer(
        self,
        asked: T | None,
        frame: Frame,
        body: Message | None,
        decoded: DecodedFrame | None,
        /,
    ) -> None:
        """Take a response with what was kept of its request, None if that is not known."""
        raise NotImplementedError

    def unanswered(self, asked: T, is_awaited: bool, /) -> None:
        """Take a request without a response, because it wants none or gets none."""
        raise NotImplementedError


class WholePaired(Paired[DecodedFrame]):
    """Keeps decoded requests whole, and reports exchanges only."""

    def __init__(self) -> None:
        super().__init__(kept_whole=True)
        self._fresh = Fresh()

    def exchange(
        self, asked: DecodedFrame | None, answered: DecodedFrame | None, is_awaited: bool, /
    ) -> None:
        """Take a request, a response or both.

        `is_awaited` says of a lone request whether a response should have come.
        """
        raise NotImplementedError

    def frame(self, decoded: DecodedFrame) -> None:
        """Take the next frame; its body is decoded on first use."""
        self.take(decoded.frame, None, decoded)

    def ask(
        self, _frame: Frame, _body: Message | None, decoded: DecodedFrame | None, /
    ) -> DecodedFrame | None:
        """Hold a request back; of older ones only the bytes are kept if there are many."""
        if decoded is not None:
            self._fresh.hold(decoded)
        return decoded

    def answer(
        self,
        asked: DecodedFrame | None,
        _frame: Frame,
        _body: Message | None,
        decoded: DecodedFrame | None,
        /,
    ) -> None:
        """Take a response with its request."""
        if asked is not None:
            self._fresh.release(asked)
        self.exchange(asked, decoded, True)

    def unanswered(self, asked: DecodedFrame, is_awaited: bool, /) -> None:
        """Take a request without a response."""
        self._fresh.release(asked)
        self.exchange(asked, None, is_awaited)


class QuickPaired(Paired[T]):
    """Takes ordinary frames on the fast path, on which unknown tags and records are skipped."""

    def quickly(self, frames: Sequence[Frame], _number: int = 0, /) -> Iterator[bool]:
        """Take frames one by one, if they are ordinary; their bodies are read together."""
        for frame, body in zip(frames, quick_bodies(frames), strict=True):
            if body is not None:
                self.take(frame, body, None)
            yield body is not None
