"""Frames as exchanges: the waiting that all outputs with requests and responses share."""

from __future__ import annotations

from typing import Generic, TypeVar

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.quick import quick_body
from kraftwire.decode.exchange.pending import Pending
from kraftwire.decode.framing.frames import Frame, Request
from kraftwire.limits import RENDER_PENDING_BYTES_MAX, RENDER_PENDING_COUNT_MAX
from kraftwire.wire.message import Message

__all__ = ["TURN_LAST", "Paired", "QuickPaired", "WholePaired"]

T = TypeVar("T")

# What a decoded request occupies besides its bytes.
_OBJECT_BYTES = 2000

# After the requests that stay alone: the frame itself.
TURN_LAST = 1 << 62


class Paired(Generic[T]):
    """Takes frames in order, and tells of requests, of responses with what was kept of theirs, and
    of requests that stay without one.

    Shape: what is kept of requests is bounded in number, or in bytes if they are `kept_whole`.
    """

    def __init__(self, *, kept_whole: bool = False) -> None:
        self._is_weighed = kept_whole
        limit = RENDER_PENDING_BYTES_MAX if kept_whole else RENDER_PENDING_COUNT_MAX
        # None stands for a request that somebody else shows.
        self._pending: Pending[T | None] = Pending(limit)

    @property
    def turn(self) -> int:
        """Where what is told now stands among all that one frame gives rise to."""
        return self._pending.turn

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
            self._tell_skipped()
        self.answer(asked, frame, body, decoded)

    def pass_over(self, frame: Frame) -> None:
        """Take note of a frame that somebody else shows: it may tell of requests before it."""
        request = frame.request
        if request is None:
            return
        if frame.direction != "request":
            self._pending.take(frame.connection, request)
            self._tell_skipped()
        elif request.has_response:
            self._keep(frame, request, None)

    def _keep(self, frame: Frame, request: Request, kept: T | None) -> None:
        weight = frame.size + _OBJECT_BYTES if self._is_weighed else 1
        self._pending.add(frame.connection, request, kept, weight)
        self._tell_skipped()

    def _tell_skipped(self) -> None:
        for each in self._pending.skipped():
            if each is not None:
                self.unanswered(each, True)
        self._pending.turn = TURN_LAST

    def finish(self) -> None:
        """Tell of the requests that never got a response."""
        for each in self._pending.rest():
            if each is not None:
                self.unanswered(each, True)

    def ask(
        self, frame: Frame, body: Message | None, decoded: DecodedFrame | None, /
    ) -> T | None:
        """Take a request; returns what is kept of it, None if nobody waits for its response."""
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
        """Take a request that stays alone, because it wants no response or gets none."""
        raise NotImplementedError


class WholePaired(Paired[DecodedFrame]):
    """Keeps decoded requests whole, and tells of exchanges alone."""

    def __init__(self) -> None:
        super().__init__(kept_whole=True)

    def exchange(
        self, asked: DecodedFrame | None, answered: DecodedFrame | None, is_awaited: bool, /
    ) -> None:
        """Take a request, a response or both; whether a lone request should have been answered."""
        raise NotImplementedError

    def frame(self, decoded: DecodedFrame) -> None:
        """Take the next frame; its body is decoded when somebody wants it."""
        self.take(decoded.frame, None, decoded)

    def ask(
        self, _frame: Frame, _body: Message | None, decoded: DecodedFrame | None, /
    ) -> DecodedFrame | None:
        """Hold a request back."""
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
        self.exchange(asked, decoded, True)

    def unanswered(self, asked: DecodedFrame, is_awaited: bool, /) -> None:
        """Take a request that stays alone."""
        self.exchange(asked, None, is_awaited)


class QuickPaired(Paired[T]):
    """Takes ordinary frames by the short way, on which unknown tags and records are passed over."""

    def quick(self, frame: Frame) -> bool:
        """Take a frame before anybody has decoded it; returns whether that was possible.

        Shape: frames for which it was not have to come again through `frame`.
        """
        body = quick_body(frame)
        if body is None:
            return False
        self.take(frame, body, None)
        return True
