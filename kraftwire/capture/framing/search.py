"""Finds frames again after a loss, or at the start of a capture that came too late."""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from functools import cache

from kraftwire import messages
from kraftwire.capture.framing.headers import HEADER_SIZE, Header, parse_header
from kraftwire.capture.packets.packet import Stamp
from kraftwire.limits import PIECE_OBJECT_BYTES, SEARCH_BYTES_MAX, UNCONFIRMED_FRAME_SIZE_MAX

# The kinds of bytes that the buffer may hold from a mark on.
DATA = 0
GAP = 1
TRUNCATED = 2


class FirstOnly(list[bytes]):
    """The pieces of a frame of which only the first is kept."""

    def append(self, _: bytes, /) -> None:
        """Drop a piece."""


class Pieces:
    """The bytes of consecutive packets with their stamps.

    `starts` are the positions in `buffer` at which packets begin. `dropped` counts the
    captured bytes that were forgotten, without holes.
    """

    __slots__ = ("_kinds", "_marks", "_stamps", "buffer", "dropped", "starts")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.starts: list[int] = []
        self._marks: list[int] = []
        self.dropped = 0
        self._stamps: list[Stamp] = []
        self._kinds: list[int] = []

    @property
    def held_bytes(self) -> int:
        """Roughly the memory that the pieces take. Units: bytes."""
        return len(self.buffer) + len(self._marks) * PIECE_OBJECT_BYTES

    def add(self, data: bytes, stamp: Stamp) -> None:
        """Append the bytes of a packet."""
        self.starts.append(len(self.buffer))
        self._mark(stamp, DATA)
        self.buffer += data

    def add_hole(self, count: int, stamp: Stamp, *, truncated: bool) -> bool:
        """Append missing bytes; False if they are too many for a frame to reach across."""
        if count > UNCONFIRMED_FRAME_SIZE_MAX:
            return False
        self._mark(stamp, TRUNCATED if truncated else GAP)
        self.buffer += bytes(count)
        return True

    def _mark(self, stamp: Stamp, kind: int) -> None:
        self._marks.append(len(self.buffer))
        self._stamps.append(stamp)
        self._kinds.append(kind)

    def is_border(self, at: int) -> bool:
        """Whether a packet begins or the last one ends here."""
        if at == len(self.buffer):
            return True
        index = bisect_left(self.starts, at)
        return index < len(self.starts) and self.starts[index] == at

    def drop(self, count: int) -> None:
        """Forget the first bytes."""
        self.dropped += self.captured(count)
        del self.buffer[:count]
        first = max(0, bisect_left(self._marks, count + 1) - 1)
        self._marks = [max(0, mark - count) for mark in self._marks[first:]]
        self._stamps = self._stamps[first:]
        self._kinds = self._kinds[first:]
        self.starts = [start - count for start in self.starts if start >= count]

    def holes(self, before: int) -> Iterator[tuple[int, bool]]:
        """Yield the holes before a position: length, and whether a packet was truncated."""
        for mark, end, kind in zip(self._marks, self._ends(), self._kinds, strict=True):
            if kind != DATA and mark < before:
                yield min(end, before) - mark, kind == TRUNCATED

    def captured(self, before: int) -> int:
        """Return how many bytes before a position are not holes."""
        return before - sum(size for size, _ in self.holes(before))

    def split(self, at: int) -> Iterator[tuple[bytes, Stamp, int]]:
        """Yield the bytes from a position on by packets: data, stamp, and kind of hole or `DATA`.

        The data of a hole are zeros, as many as are missing.
        """
        for index, (mark, end) in enumerate(zip(self._marks, self._ends(), strict=True)):
            if end > at:
                data = bytes(self.buffer[max(mark, at) : end])
                yield data, self._stamps[index], self._kinds[index]

    def _ends(self) -> list[int]:
        return [*self._marks[1:], len(self.buffer)] if self._marks else []


_RESPONSE = struct.Struct(">ii")
_ID_SIZE_MAX = 255

# On one connection correlation ids grow; a client that talks to many brokers counts them together.
_ID_STEP_MAX = 1 << 16
# Where a request is captured after its response, the response is looked for in the last bytes.
_LATE_REQUEST_BYTES = 64 * 1024
# Responses that are believed though the last one is cut.
_SURE_COUNT = 3
# The id, the transaction id and the error of a response of ZooKeeper.
_ZOOKEEPER_SIZE_MIN = 16
# Java's clients take the last eight ids for SASL, before they start counting.
_RESERVED_IDS = 0x7FFFFFF0


@cache
def _request_pattern() -> re.Pattern[bytes]:
    """Every place that could be a length, a known API key and version, an id and a client id."""
    key = re.escape(bytes([max(messages.API_VERSIONS)]))
    high = re.escape(bytes([UNCONFIRMED_FRAME_SIZE_MAX >> 16]))
    return re.compile(
        b"(?!\\x00\\x00\\x00[\\x00-\\x09])\\x00[\\x00-%b]..\\x00[\\x00-%b]\\x00[\\x00-\\x1f][\\x00-\\x7f]...(?:\\xff\\xff|\\x00.)"
        % (high, key),
        re.DOTALL,
    )


class RequestSearch:
    """Looks for a request header in one direction.

    `client_id` is that of the connection's earlier requests and `last_id` the correlation
    id of the last one, if there were any. With both known, a header that continues them is
    believed at once; else the next header, or a response to it, has to confirm it.
    """

    __slots__ = ("_candidates", "_client_id", "_last_id", "_scanned", "pieces", "skipped")

    def __init__(self, client_id: bytes | None = None, last_id: int | None = None) -> None:
        self.pieces = Pieces()
        self.skipped = 0
        self._client_id = client_id
        self._last_id = None if last_id is None or last_id >= _RESERVED_IDS else last_id
        self._scanned = 0
        self._candidates: list[Header] = []

    def clear(self) -> None:
        """Forget everything: a hole follows."""
        self._drop(len(self.pieces.buffer))
        self._candidates.clear()

    def find(self, is_answered: Callable[[int], bool]) -> int:
        """Position of a request, -1 if there is none (yet).

        `is_answered` returns whether a response with a correlation id has been seen.
        """
        if self._client_id and self._last_id is not None:
            return self._find_successor(self._client_id, self._last_id)
        self._collect()
        undecided = []
        for header in self._candidates:
            verdict = self._judge(header, is_answered)
            if verdict:
                return header[0]
            if verdict is None:
                undecided.append(header)
        self._candidates = undecided
        self._trim()
        return -1

    def find_last(self) -> int:
        """Position of a request when nothing more will come: one that fills its packets."""
        for at, size, _, _, _, client_id in self._candidates:
            pieces = self.pieces
            if client_id and pieces.is_border(at) and at + 4 + size == len(pieces.buffer):
                return at
        return -1

    def _find_successor(self, client_id: bytes, last_id: int) -> int:
        buffer = self.pieces.buffer
        needle = len(client_id).to_bytes(2, "big") + client_id
        at = self._scanned
        while (found := buffer.find(needle, at + HEADER_SIZE - 2)) >= 0:
            at = found - (HEADER_SIZE - 2)
            header = parse_header(buffer, at, strict=True)
            if header is not None and last_id < header[4] <= last_id + _ID_STEP_MAX:
                return at
            at += 1
        self._scanned = max(at, len(buffer) - HEADER_SIZE - len(client_id))
        self._trim()
        return -1

    def _collect(self) -> None:
        """Note every position that looks like a header."""
        buffer = self.pieces.buffer
        pattern = _request_pattern()
        while match := pattern.search(buffer, self._scanned):
            at = match.start()
            if at + HEADER_SIZE + _ID_SIZE_MAX > len(buffer) and not self._is_whole(at):
                self._scanned = at
                return
            self._scanned = at + 1
            header = parse_header(buffer, at, strict=True)
            if header is not None and header[1] <= UNCONFIRMED_FRAME_SIZE_MAX:
                self._candidates.append(header)
        self._scanned = max(self._scanned, len(buffer) - HEADER_SIZE + 1)

    def _is_whole(self, at: int) -> bool:
        """Whether the whole client id is in the buffer, if a header begins here."""
        id_size = int.from_bytes(self.pieces.buffer[at + 12 : at + 14], "big", signed=True)
        return at + HEADER_SIZE + id_size <= len(self.pieces.buffer)

    def _judge(self, header: Header, is_answered: Callable[[int], bool]) -> bool | None:
        """True if confirmed, False if refuted, None if that has to wait."""
        at, size, _, _, correlation_id, client_id = header
        buffer = self.pieces.buffer
        # Few bytes have to be right for a header without a client id, so its place must be, too.
        if not client_id and not self.pieces.is_border(at):
            return False
        if is_answered(correlation_id) and self.pieces.is_border(at):
            return True
        end = at + 4 + size
        follower = parse_header(buffer, end, strict=True)
        if follower is not None:
            step = follower[4] - correlation_id
            return follower[5] == client_id and 0 < step <= _ID_STEP_MAX
        is_there = end + HEADER_SIZE + len(client_id or b"") <= len(buffer)
        return False if is_there else None

    def _trim(self) -> None:
        """Drop what cannot be part of a request any more."""
        first = min((header[0] for header in self._candidates), default=self._scanned)
        if first > SEARCH_BYTES_MAX // 8:
            self._drop(first)

    def _drop(self, count: int) -> None:
        self.pieces.drop(count)
        self.skipped += count
        self._scanned = max(0, self._scanned - count)
        self._candidates = [(h[0] - count, *h[1:]) for h in self._candidates if h[0] >= count]


def are_responses(data: bytes | bytearray, at: int) -> bool:
    """Whether bytes are responses one after the other, judged without any request.

    Their lengths must lead from one to the next, and their correlation ids must be near to each
    other (one client counts for several connections, not always in order): up to the end of the
    data, or for three responses if the last one is cut. ZooKeeper's responses have the same
    beginning, but then a transaction id that grows, and an error.
    """
    count, last, zxids = 0, -1, []
    while at + _RESPONSE.size <= len(data):
        size, id = _RESPONSE.unpack_from(data, at)
        is_near = 0 < abs(id - last) <= _ID_STEP_MAX or last >= _RESERVED_IDS
        is_next = is_near or not count
        if not 4 <= size <= UNCONFIRMED_FRAME_SIZE_MAX or id < 0 or not is_next:
            return False
        zxids.append(int.from_bytes(data[at + 8 : at + 16], "big"))
        is_zookeeper = zxids[-1] and zxids == sorted(zxids) and not any(data[at + 16 : at + 20])
        if is_zookeeper and size >= _ZOOKEEPER_SIZE_MIN and zxids[-1] < 1 << 63:
            return False
        count, last, at = count + 1, id, at + 4 + size
    return count > 0 if at == len(data) else count >= _SURE_COUNT


# Packets of a connection that was open before the capture at which its first response may begin.
_PLACES_MAX = 64


def first_responses(pieces: Pieces) -> int:
    """Return where the first packet begins from which on all bytes are responses; -1 if none does.
    """
    for at in pieces.starts[:_PLACES_MAX]:
        if are_responses(pieces.buffer, at):
            return at
    return -1


class ResponseSearch:
    """Looks for a response to one of the requests that wait for theirs."""

    __slots__ = ("_candidates", "_scanned", "pieces", "skipped")

    def __init__(self) -> None:
        self.pieces = Pieces()
        self.skipped = 0
        self._scanned = 0
        # Positions whose frames end after the bytes that are there.
        self._candidates: list[int] = []

    def clear(self) -> None:
        """Forget everything: a hole follows that is too long to be bridged."""
        self._drop(len(self.pieces.buffer))

    def find(self, pending: Collection[int], fresh: int | None = None) -> int:
        """Position of a response, -1 if there is none (yet).

        `pending` are the correlation ids to look for in the bytes that are new, `fresh` is
        one to look for in the latest of all. A response at the start of a packet is believed,
        elsewhere its end has to be right.
        """
        wanted = set(pending)
        start = self._scanned
        if fresh is not None:
            start = max(0, len(self.pieces.buffer) - _LATE_REQUEST_BYTES)
        sought = wanted if fresh is None else {fresh}
        at = self._find_at_border(sought, start)
        if at < 0:
            at = self._find_inside(sought, start, wanted)
        if at >= 0:
            return self._first_of_chain(at)
        self._scanned = max(0, len(self.pieces.buffer) - _RESPONSE.size + 1)
        if len(self.pieces.buffer) > SEARCH_BYTES_MAX:
            self._drop(len(self.pieces.buffer) - SEARCH_BYTES_MAX // 2)
        return -1

    def _find_at_border(self, wanted: Collection[int], first: int) -> int:
        starts = self.pieces.starts
        for start in starts[bisect_left(starts, first) :]:
            size, correlation_id = self._head(start)
            if correlation_id in wanted and 4 <= size <= UNCONFIRMED_FRAME_SIZE_MAX:
                return start
        return -1

    def _find_inside(self, sought: Collection[int], first: int, wanted: Collection[int]) -> int:
        """A position inside a packet, if the frame ends with a packet or before another one."""
        buffer = self.pieces.buffer
        candidates, self._candidates = self._candidates, []
        for correlation_id in sought:
            needle = correlation_id.to_bytes(4, "big", signed=True)
            found = buffer.find(needle, first + 4)
            while found >= 0:
                candidates.append(found - 4)
                found = buffer.find(needle, found + 1)
        for at in candidates:
            size, _ = self._head(at)
            if not 4 <= size <= UNCONFIRMED_FRAME_SIZE_MAX:
                continue
            if at + 4 + size + _RESPONSE.size > len(buffer):
                self._candidates.append(at)
            if self._has_end(at, size, wanted):
                return at
        return -1

    def _has_end(self, at: int, size: int, wanted: Collection[int]) -> bool:
        end = at + 4 + size
        next_size, next_id = self._head(end)
        if next_id in wanted and 4 <= next_size <= UNCONFIRMED_FRAME_SIZE_MAX:
            return True
        return end <= len(self.pieces.buffer) and self.pieces.is_border(end)

    def _head(self, at: int) -> tuple[int, int]:
        """Size and correlation id at a position; a size of -1 where the bytes end before."""
        if at + _RESPONSE.size > len(self.pieces.buffer):
            return -1, -1
        size, correlation_id = _RESPONSE.unpack_from(self.pieces.buffer, at)
        return size, correlation_id

    def _first_of_chain(self, found: int) -> int:
        """The earliest packet start from which whole frames lead to a position."""
        reaches = {found}
        first = found
        for start in reversed(self.pieces.starts[: bisect_left(self.pieces.starts, found)]):
            at = start
            while at < found:
                size, correlation_id = self._head(at)
                if not 4 <= size <= UNCONFIRMED_FRAME_SIZE_MAX or correlation_id < 0:
                    break
                at += 4 + size
                if at in reaches:
                    reaches.add(start)
                    first = start
                    break
        return first

    def _drop(self, count: int) -> None:
        self.pieces.drop(count)
        self.skipped += count
        self._scanned = max(0, self._scanned - count)
        self._candidates = [at - count for at in self._candidates if at >= count]
