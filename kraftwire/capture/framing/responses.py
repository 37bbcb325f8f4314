"""The server's direction: responses, identified by the requests that they answer.

Owns the hot loop over correlation ids; what does not match at once is paired by the pairing.
"""

from __future__ import annotations

import struct
from itertools import islice

from kraftwire.capture.framing.frames import Request
from kraftwire.capture.framing.reader import FrameReader
from kraftwire.capture.framing.search import ResponseSearch, first_responses
from kraftwire.capture.packets.packet import Stamp
from kraftwire.limits import FRAME_SIZE_MAX

_HEAD = struct.Struct(">ii")
_HEAD_SIZE = _HEAD.size
# Responses come in order, so only those to the first requests in flight are looked for.
_PENDING_SOUGHT = 64
_MILLISECOND_NS = 1_000_000


class ResponseReader(FrameReader):
    """Cuts a server's bytes into responses."""

    __slots__ = ()

    DIRECTION = "response"

    def _cut(self, data: bytes, start: int, end: int, first: Stamp, stamp: Stamp) -> None:
        pairing = self.pairing
        pending = pairing.pending
        while end - start >= _HEAD_SIZE:
            size, correlation_id = _HEAD.unpack_from(data, start)
            stop = start + 4 + size
            if not 4 <= size <= FRAME_SIZE_MAX and not (0 <= size < 4 and self._has_token_turn()):
                self._lose()
                self.flow.feed(data, start, end, first)
                return
            if stop > end:
                self._begin(size, data[start + 4 : end], None, first)
                return
            payload = data[start + 4 : stop]
            start = stop
            if pending:
                request = pending[0]
                is_next = request.correlation_id == correlation_id and request.time_ns >= 0
                if is_next and not pairing.parked:
                    pending.popleft()
                    self.emit(request, payload, size, first, ())
                    first = stamp
                    continue
            pairing.respond(payload, size, first, ())
            first = stamp
        if start < end:
            self._keep_short(data, start, end, first, stamp)

    def _keep_short(
        self, data: bytes, start: int, end: int, first: Stamp, stamp: Stamp
    ) -> None:
        """Deal with bytes that are too few for a header: the start of one, or a short token."""
        size = int.from_bytes(data[start : start + 4], "big", signed=True)
        stop = start + 4 + size
        if end - start >= 4 and 0 <= size < 4 and stop <= end and self._has_token_turn():
            self.pairing.respond(data[start + 4 : stop], size, first, ())
            self._keep_short(data, stop, end, stamp, stamp)
        elif start < end:
            self._keep(data[start:end], first)

    def _has_token_turn(self) -> bool:
        """Whether the next response answers a bare SASL token."""
        pending = self.pairing.pending
        return bool(pending) and pending[0].api_key < 0

    def emit(
        self,
        request: Request | None,
        data: bytes,
        size: int,
        stamp: Stamp,
        missing: tuple[tuple[int, int], ...],
    ) -> None:
        """Pass on a response; without its request if that is not in the capture."""
        frame = self.new_frame(request, data, size, stamp, missing)
        if request is not None and self.is_early:
            self.is_early = False
        if request is not None and request.time_ns >= 0:
            frame.latency_ms = (stamp[0] - request.time_ns) / _MILLISECOND_NS
        self.pairing.frame_queue.frames.append(frame)

    def _hand_out(self, data: bytes, stamp: Stamp, missing: tuple[tuple[int, int], ...]) -> None:
        pairing = self.pairing
        pending = pairing.pending
        if pending and not missing and not pairing.parked:
            request = pending[0]
            correlation_id = int.from_bytes(data[:4], "big", signed=True)
            if request.correlation_id == correlation_id and request.time_ns >= 0:
                pending.popleft()
                self.emit(request, data, self._size, stamp, ())
                return
        pairing.respond(data, self._size, stamp, missing)

    def _find_last(self) -> int:
        """Find responses to requests from before the capture, after which no other one came."""
        search = self._search
        if search is None or not self.is_early:
            return -1
        at = first_responses(search.pieces)
        self.is_sure = at >= 0
        return at

    def _new_search(self) -> ResponseSearch:
        return ResponseSearch()

    def _find(self, fresh: int | None, /) -> int:
        search = self._search
        if not isinstance(search, ResponseSearch):
            return -1
        pending = islice(self.pairing.pending, _PENDING_SOUGHT)
        return search.find([request.correlation_id for request in pending], fresh)
