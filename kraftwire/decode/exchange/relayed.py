"""Pairing in a process that leaves some frames to others: see `inspect.run.parallel`.

Owns requests that were passed over. Most of them are answered by a frame that is passed over too,
and are never decoded. A request whose response is shown here is decoded at that moment, or before
the names of topics change, so that it looks as it would have in its turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kraftwire.capture.framing.frames import Frame
from kraftwire.capture.limits import PENDING_BYTES_MAX
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.exchange.paired import Paired, Passed

__all__ = ["RelayedPaired"]

T = TypeVar("T")


class RelayedPaired(Paired[T]):
    """Takes frames, and passes over those that another process shows."""

    _later: Callable[[Frame, int], DecodedFrame]
    _passed_bytes = 0

    def relay(self, later: Callable[[Frame, int], DecodedFrame], topics: TopicNames) -> None:
        """Get ready to pass frames over; `later` decodes one of them after its turn."""
        self._later = later
        topics.before_change = self.settle_all

    def pass_over(self, frame: Frame, number: int, decoded: DecodedFrame | None, /) -> None:
        """Register a frame that another process shows."""
        request = frame.request
        if frame.direction == "request":
            self.see(frame)
            if request is None or not request.has_response:
                self.note_shown(frame.time_ns)
                return
            passed = Passed(frame, number, decoded)
            self._passed_bytes += len(frame.data)
            kept: T | Passed = passed
            if self._passed_bytes > PENDING_BYTES_MAX and not self._is_weighed:
                kept = self._known(passed)
            weight = self.weight(frame, None) if self._is_weighed else 1
            self._pending.add(frame.connection, request, kept, weight)
            if self._pending.has_skipped:
                self._pass_over_skipped()
            return
        asked = None
        if request is not None:
            asked = self._pending.take(frame.connection, request)
            if self._pending.has_skipped:
                self._pass_over_skipped()
        if asked.__class__ is Passed:
            self._passed_bytes -= len(asked.frame.data)
        elif asked is None:
            self.see(frame)
        else:
            self._forget(asked)
        self.note_shown(frame.time_ns)

    def _pass_over_skipped(self) -> None:
        for each in self._pending.skipped():
            self._forget(each)
            if isinstance(each, Passed):
                self.note_shown(each.frame.time_ns)
            else:
                self.note_shown(self.time_of(each))

    def _forget(self, asked: T | Passed) -> None:
        if isinstance(asked, Passed):
            self._passed_bytes -= len(asked.frame.data)
        else:
            self.drop(asked)

    def _known(self, asked: T | Passed) -> T:
        if not isinstance(asked, Passed):
            return asked
        self._passed_bytes -= len(asked.frame.data)
        return self.settle(asked)

    def settle_all(self) -> None:
        """Settle the requests that were passed over, before the names that they show change."""
        if self._passed_bytes:
            self._pending.replace(self._known)

    def decode_passed(self, passed: Passed) -> DecodedFrame:
        """Decode a request that was passed over, as far as showing it requires."""
        decoded = passed.decoded or self._later(passed.frame, passed.number)
        _ = decoded.findings
        return decoded

    def settle(self, passed: Passed, /) -> T:
        """Return what would have been kept of a request that was passed over."""
        raise NotImplementedError

    def time_of(self, asked: T, /) -> int:
        """Return the time of a request by what was kept of it. Units: nanoseconds."""
        raise NotImplementedError

    def see(self, _frame: Frame, /) -> None:
        """Remember what the texts of later frames depend on."""

    def note_shown(self, _time_ns: int, /) -> None:
        """Remember the time of something that another process shows."""

    def drop(self, _asked: T, /) -> None:
        """Forget what was kept of a request, which another process shows."""
