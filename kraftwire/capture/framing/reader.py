"""Cuts one direction of a Kafka connection into frames, also across holes.

Owns the length prefix and what happens when bytes are missing: inside a frame of known length the
hole is skipped by its size and the frame is partial; anywhere else frames have to be found again.
"""

from __future__ import annotations

from kraftwire.capture.framing.frames import (
    CaptureFinding,
    Pairing,
    RawFrame,
    Request,
    add_finding,
    note_conflict,
)
from kraftwire.capture.framing.search import (
    DATA,
    TRUNCATED,
    FirstOnly,
    RequestSearch,
    ResponseSearch,
)
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tcp import Flow
from kraftwire.limits import COUNTED_FRAME_SIZE_MIN

# The bytes that are kept of an unfinished frame that was given up: header and first fields.
SHED_FRAME_BYTES = 1024


class FrameReader:
    """The part that both directions share.

    `is_sure` as long as every byte since the start of the connection was understood;
    `is_early` where the capture began later than the connection, until a frame is understood or
    bytes are missing: what comes before that was cut, or asked for, before the capture.
    `notes` are findings for the next frame, and `lost_bytes` are missing before it.
    """

    __slots__ = (
        "_bytes",
        "_missing",
        "_position",
        "_prefix",
        "_prefix_position",
        "_request",
        "_reserved",
        "_search",
        "_shed_at",
        "_size",
        "pairing",
        "flow",
        "is_early",
        "is_sure",
        "lost_bytes",
        "notes",
    )

    DIRECTION = ""

    def __init__(self, pairing: Pairing, flow: Flow) -> None:
        self.pairing = pairing
        self.flow = flow
        self.is_sure = True
        self.is_early = False
        self.notes: list[CaptureFinding] = []
        self.lost_bytes = 0
        self._search: RequestSearch | ResponseSearch | None = None
        self._size = 0
        self._reserved = 0
        self._shed_at = 0
        # Where the packet begins that holds the first byte of the frame that is being collected.
        self._position = 0
        self._prefix = b""
        self._prefix_position = 0
        self._bytes = pairing.health.bytes
        self._missing: list[tuple[int, int]] = []
        self._request: Request | None = None
        flow.sink = self
        flow.feed = self.feed

    @property
    def is_lost(self) -> bool:
        """Whether the start of the next frame is unknown."""
        return self._search is not None

    def feed(self, data: bytes, start: int, end: int, stamp: Stamp) -> None:
        """Take bytes in order; pass on the frames that they complete."""
        flow = self.flow
        first = stamp
        if flow.need:
            stop = start + flow.need
            if end < stop:
                flow.parts.append(data[start:end])
                flow.need = stop - end
                flow.stamp = stamp
                return
            flow.parts.append(data[start:stop])
            flow.need = 0
            self._finish(stamp)
            if stop == end:
                return
            start = stop
        elif self._prefix:
            data = self._prefix + data[start:end]
            start, end = 0, len(data)
            self._prefix = b""
            first = (stamp[0], self._prefix_position, stamp[2])
        self._cut(data, start, end, first, stamp)

    def _cut(self, data: bytes, start: int, end: int, first: Stamp, stamp: Stamp) -> None:
        """Pass on the frames in a packet, and keep the start of the last one.

        `stamp` is the packet's, and `first` that of the first frame, which may have begun in
        the packet before.
        """
        raise NotImplementedError

    def _begin(self, size: int, first: bytes, request: Request | None, stamp: Stamp) -> None:
        """Start a frame that continues in later packets."""
        flow = self.flow
        flow.stamp = stamp
        self._position = stamp[1]
        flow.need = size - len(first)
        flow.parts = [first]
        self._size = size
        self._request = request
        if size >= COUNTED_FRAME_SIZE_MIN:
            self._reserve(size)

    def _reserve(self, size: int) -> None:
        """Take memory for a long frame; if there is none, keep its first packet only."""
        if self.pairing.budget.take(size):
            self._reserved = size
            return
        flow = self.flow
        self._shed_at = len(flow.parts[0])
        if self.pairing.budget.may_have(size):
            id, why = "gap", "too many bytes wait for more packets"
        else:
            id, why = "memory-limit", f"{size} bytes are too many in so small a capture"
        self._add_finding(id, self._shed_at, f"the rest is given up: {why}")
        self.pairing.health.undecoded_bytes += flow.need
        flow.parts = FirstOnly(flow.parts)

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of the searched bytes, without those of an unfinished frame."""
        return 0 if self._search is None else self._search.pieces.held_bytes

    def release_memory(self) -> None:
        """Keep only the start of an unfinished frame, and drop bytes that are being searched."""
        flow = self.flow
        if self._search is not None:
            self._search.clear()
            self._add_finding("memory-limit", None, "bytes before this frame were given up")
        if flow.need and not self._shed_at:
            first = flow.parts[0][:SHED_FRAME_BYTES]
            self._shed_at = len(first)
            self._add_finding("memory-limit", self._shed_at, "the rest of the frame is given up")
            lost = sum(size for _, size in self._missing)
            self.pairing.health.undecoded_bytes += self._size - self._shed_at - lost
            flow.parts = FirstOnly([first])

    def _keep(self, prefix: bytes, stamp: Stamp) -> None:
        """Keep bytes that are too few to show what frame they begin."""
        self._prefix, self._prefix_position = prefix, stamp[1]

    def _finish(self, stamp: Stamp) -> None:
        """Pass on a frame that came in several packets, whole or partial."""
        data = b"".join(self.flow.parts)
        self.flow.parts = []
        missing = self._missing
        if self._reserved:
            self.pairing.budget.release(self._reserved)
            self._reserved = 0
        if self._shed_at:
            lost = sum(size for _, size in missing)
            self._bytes.undecoded += self._size - lost - self._shed_at
            data = data[: self._shed_at]
            missing = [(self._shed_at, self._size - self._shed_at)]
            self._shed_at = 0
        if missing:
            self._missing = []
            self.pairing.health.partial_frames += 1
            if missing[-1][0] + missing[-1][1] == self._size:
                data = data[: missing[-1][0]]
        self._hand_out(data, (stamp[0], self._position, stamp[2]), tuple(missing))

    def _hand_out(self, data: bytes, stamp: Stamp, missing: tuple[tuple[int, int], ...]) -> None:
        raise NotImplementedError

    def skip(self, count: int, stamp: Stamp, truncated: bool, /) -> None:
        """Continue after missing bytes."""
        self.is_early = False
        self.pairing.health.undecoded_bytes += count
        search = self._search
        if search is None:
            self._skip(count, stamp, truncated)
        elif not search.pieces.add_hole(count, stamp, truncated=truncated):
            search.clear()
            self._note_hole(None, count, truncated)

    def _skip(self, count: int, stamp: Stamp, truncated: bool) -> None:
        """Skip a hole in bytes that are being cut."""
        if self._search is not None:
            self._search.pieces.add_hole(count, stamp, truncated=truncated)
            return
        rest = count
        flow = self.flow
        if flow.need:
            at = self._size - flow.need
            inside = min(count, flow.need)
            self._note_hole(at, inside, truncated)
            self._missing.append((at, inside))
            flow.parts.append(bytes(inside) if inside < flow.need else b"")
            flow.need -= inside
            rest -= inside
            if not flow.need:
                self._finish(stamp if truncated else flow.stamp)
        if rest:
            self._note_hole(None, rest, truncated)
            self._lose()

    def _note_hole(self, offset: int | None, count: int, truncated: bool) -> None:
        if offset is None:
            self.lost_bytes += count
        id = "truncated-packet" if truncated else "gap"
        self._add_finding(id, offset, f"{count} bytes are missing")

    def _add_finding(self, id: str, offset: int | None, detail: str) -> None:
        add_finding(self.notes, id, offset, detail)

    def on_conflict(self, count: int, /) -> None:
        """Note that bytes came again and differ; the later ones are not decoded."""
        note_conflict(self.notes, count)
        self.pairing.health.undecoded_bytes += count

    def _new_search(self) -> RequestSearch | ResponseSearch:
        raise NotImplementedError

    def _lose(self) -> None:
        """Stop cutting: where the next frame starts has to be found."""
        self.is_sure = self.is_early = False
        self.pairing.health.resyncs += 1
        self._search = self._new_search()
        if self._prefix:
            self._search.skipped += len(self._prefix)
            self._bytes.undecoded += len(self._prefix)
            self._prefix = b""
        self.flow.feed = self.feed_search

    def begin_lost(self, search: RequestSearch | None, *, is_early: bool) -> None:
        """Begin where the borders of frames are unknown, with what was searched already."""
        self.is_sure = False
        self.is_early = is_early
        self._search = search or self._new_search()
        pieces = self._search.pieces
        missing = sum(size for size, _ in pieces.holes(len(pieces.buffer)))
        self.pairing.health.undecoded_bytes += missing
        self.flow.feed = self.feed_search

    def feed_search(self, data: bytes, start: int, end: int, stamp: Stamp) -> None:
        """Take bytes in order while frames are searched for."""
        if self._search is None:
            self.feed(data, start, end, stamp)
            return
        self._search.pieces.add(data[start:end], stamp)
        self.look(None)

    def look(self, fresh: int | None) -> None:
        """Try to find a frame in the bytes so far; `fresh` is a correlation id that is new."""
        search = self._search
        if search is not None and (at := self._find(fresh)) >= 0:
            self.resume(at)

    def _find(self, fresh: int | None, /) -> int:
        raise NotImplementedError

    def resume(self, at: int) -> None:
        """Cut frames again, from a position in the bytes that were searched."""
        search = self._search
        if search is None:
            return
        self._search = None
        self._report_skipped(search, at)
        self.flow.feed = self.feed
        for data, stamp, kind in search.pieces.split(at):
            if kind == DATA:
                self.flow.feed(data, 0, len(data), stamp)
            else:
                self._skip(len(data), stamp, kind == TRUNCATED)

    def _report_skipped(self, search: RequestSearch | ResponseSearch, at: int) -> None:
        """Report the bytes and holes before a position in the bytes that were searched."""
        health = self.pairing.health
        self._bytes.undecoded += search.pieces.dropped + search.pieces.captured(at)
        count = search.skipped + at
        for size, truncated in search.pieces.holes(at):
            count -= size
            self._note_hole(None, size, truncated)
        if count:
            health.skipped_bytes += count
            self.note_skipped(count, f"{count} bytes were skipped")

    def note_skipped(
        self, count: int, detail: str, notes: list[CaptureFinding] | None = None
    ) -> None:
        """Note bytes that belong to no frame, which is a loss unless the capture came too late.

        `notes` are those of an earlier frame, if they stood before it.
        """
        if not self.is_early:
            self.pairing.health.undecoded_bytes += count
        id = "cut-by-capture-start" if self.is_early else "resync"
        add_finding(self.notes if notes is None else notes, id, None, detail)

    def finish(self, *, at_capture_end: bool) -> None:
        """Pass on the bytes so far as a partial frame: the direction has ended."""
        search = self._search
        if search is not None:
            if (at := self._find_last()) >= 0:
                self.resume(at)
            else:
                self._search = None
                self._report_skipped(search, len(search.pieces.buffer))
        flow = self.flow
        if flow.need:
            at = self._size - flow.need
            id = "cut-by-capture-end" if at_capture_end else "cut-by-close"
            self._add_finding(id, at, f"{flow.need} of {self._size} bytes are missing")
            if not at_capture_end:
                self.pairing.health.undecoded_bytes += flow.need
            self._missing.append((at, flow.need))
            flow.need = 0
            self._finish(flow.stamp)
        elif self._prefix:
            self._bytes.undecoded += len(self._prefix)
            if not at_capture_end:
                self.pairing.health.undecoded_bytes += len(self._prefix)
            self._prefix = b""

    def _find_last(self) -> int:
        return -1

    def new_frame(
        self,
        request: Request | None,
        data: bytes,
        size: int,
        stamp: Stamp,
        missing: tuple[tuple[int, int], ...],
    ) -> RawFrame:
        """Return a frame of this direction, with what was noted for it; the caller passes it on."""
        pairing = self.pairing
        frame_queue = pairing.frame_queue
        packed = pairing.budget.packed
        frame = frame_queue.frame_class()
        frame.connection = pairing.name
        frame.direction = self.DIRECTION
        if request is None:
            frame.kind = "rpc"
            frame.api_key = frame.api_version = None
            frame.correlation_id = int.from_bytes(data[:4], "big", signed=True)
        elif request.api_key >= 0:
            frame.kind = "rpc"
            frame.api_key = request.api_key
            frame.api_version = request.api_version
            frame.correlation_id = request.correlation_id
        else:
            frame.kind = "sasl-token"
            frame.api_key = frame.api_version = frame.correlation_id = None
        frame.data = data
        frame.size = size
        frame.input_bytes = size if packed is None else min(size, packed)
        frame.time_ns, begin, end = stamp
        offset = frame_queue.offset
        if begin >= offset:
            frame.file = frame.end_file = frame_queue.file
            frame.position = begin - offset
            frame.end_position = end - offset
        else:
            frame_queue.place(frame, stamp)
        frame.request = request
        frame.latency_ms = None
        frame.missing = missing
        if self.notes:
            frame.packet_findings = self.notes
            self.notes = []
            self.lost_bytes = 0
        else:
            frame.packet_findings = ()
        return frame
