"""Turns the packets of a capture into paired request and response frames.

Owns the loop over packets and the table of connections. Reading a capture takes one pass and
bounded memory; the README of this folder says what is done about damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from kraftwire import engine
from kraftwire.capture.connections.connection import (
    Connection,
    Direction,
    MemoryBudget,
    OpenConnections,
    reverse_key,
)
from kraftwire.capture.connections.kafka_connection import KafkaConnection
from kraftwire.capture.connections.translations import Translations
from kraftwire.capture.framing.frames import Ending, FrameQueue, RawFrame, Request
from kraftwire.capture.framing.health import Health
from kraftwire.capture.framing.reader import FrameReader
from kraftwire.capture.framing.requests import RequestReader
from kraftwire.capture.framing.responses import ResponseReader
from kraftwire.capture.packets.links import (
    FIN,
    MISSING,
    RST,
    SYN,
    Segment,
    SegmentReader,
)
from kraftwire.capture.packets.packet import PAUSE, Packet, new_packet
from kraftwire.capture.packets.source import STDIN, CaptureInput, CaptureSource
from kraftwire.capture.packets.time_order import TimeOrder, begins_in_order
from kraftwire.capture.tcp import Flow, PacketRun, RecentPackets
from kraftwire.capture.tls import KeyLog, has_ciphers
from kraftwire.errors import UsageError
from kraftwire.limits import COUNTED_FRAME_SIZE_MIN, FRAME_SIZE_MAX

# Connections in a capture are followed up to this number; beyond it the one that was opened first
# is dropped, so that a port scan cannot fill memory. Closed ones are remembered for a while,
# because late copies of their packets must not look like new connections.
CONNECTIONS_MAX = 20_000
CLOSED_CONNECTIONS_MAX = 1024

# How many frames are returned together; a frame of this many bytes is returned without delay.
TOGETHER = 64
LONG_BYTES = 64 * 1024

# Connections with missing bytes are checked again after this much time without a packet.
REVIEW_NS = 1_000_000_000

_MASK = 0xFFFFFFFF
# The largest time that the engine takes; a damaged one may be larger. Units: nanoseconds.
_TIME_MAX = (1 << 63) - 1
_UNUSUAL = FIN | SYN | RST
_ACK = 16

class Capture:
    """The Kafka frames of a capture, or of several that each continue the one before.

    A capture is a path (``-`` is standard input), a readable binary stream or an iterable of
    pieces of bytes, compressed or not; a piece may be a pair of its position in the unpacked file
    and whole packets of it. Captures in the order of time, as those of a rotated series, share
    their connections. `name` stands for the path of a single one. Iterate once; `health` is
    complete when the iterator is exhausted. `on_ending` is called for connections that end, before
    the frames after that are returned. With `keys`, or where a capture has secrets of TLS in it,
    encrypted connections are decrypted. A capture can be decoded in parts, one after the other: all
    but the last one are not `is_last` and leave everything open, in `connections`, and each of them
    continues `after` the one before. `end_ns` is the time of the last packet where these are only
    the packets of some connections. Packets that are not in the order of time are sorted within a
    window: from the start if `is_disordered`, or if a path begins so. Frames are of the
    `frame_class`, which later layers extend. Raises: StorageError if a
    file cannot be opened or is not a capture; the first one is opened at once.
    """

    def __init__(
        self,
        *captures: CaptureInput,
        name: str | None = None,
        on_ending: Callable[[Ending], None] | None = None,
        keys: KeyLog | None = None,
        after: OpenConnections | None = None,
        is_last: bool = True,
        end_ns: int | None = None,
        is_disordered: bool = False,
        frame_class: type[RawFrame] = RawFrame,
    ) -> None:
        if not captures or (name is not None and len(captures) > 1):
            raise UsageError("a name is for one capture" if captures else "there is no capture")
        self.connections = after or OpenConnections(FrameQueue(Health(), frame_class))
        self.health = self.connections.health
        self._is_last = is_last
        self._end_ns = end_ns
        self._is_disordered = is_disordered
        self._source = CaptureSource(captures[0], name)
        self._captures = captures
        self._frame_queue = frame_queue = self.connections.frame_queue
        frame_queue.on_ending = on_ending
        frame_queue.keys = keys or frame_queue.keys
        self._flows, self._open = self.connections.flows, self.connections.open
        self._closed, self._troubled = self.connections.closed, self.connections.troubled
        self._recent = RecentPackets()
        self._translations = Translations()
        self._memory = MemoryBudget(self._open)
        self._in_order = _engine_loop(self._flows, frame_queue)
        self._packed_before = 0

    @property
    def problem(self) -> str:
        """Why the present file ends before it should, if it does."""
        return self._source.problem

    def close(self) -> None:
        """Close the first file, if no iteration began; an iteration closes what it opens."""
        self._source.close()

    def _files(self) -> Iterator[Iterator[Packet]]:
        """The packets of one file after the other."""
        source = self._source
        for capture, later in zip(self._captures, (*self._captures[1:], None), strict=True):
            self._source = source
            self._frame_queue.begin_file(source.path, source.offset)
            if self._in_order is not None:
                self._in_order.file, self._in_order.offset = source.path, source.offset
            with source:
                source.on_block = self._begin_block
                source.on_secrets = self._learn_secrets
                source.has_pauses = True
                source.follow = None if self._in_order is None else self._take_by_engine
                yield self._sorted(capture, source).packets()
                source.read_on()
            self.health.add_problem(source.problem, is_damaged=source.is_damaged)
            self.health.bytes.file += source.size
            self._packed_before += source.packed
            if later is not None:
                source = CaptureSource(later, offset=source.end)

    def _sorted(self, capture: CaptureInput, source: CaptureSource) -> TimeOrder:
        """Return the packets of a file in the order of time."""
        is_sorting = self._is_disordered
        if isinstance(capture, str | os.PathLike) and source.path != STDIN and source.is_finite:
            is_sorting = not begins_in_order(os.fspath(capture))
        self._order = TimeOrder(source, self.health, is_sorting=is_sorting)
        return self._order

    def __iter__(self) -> Iterator[RawFrame]:
        return chain.from_iterable(self.lists())

    def lists(self) -> Iterator[list[RawFrame]]:
        """Yield the same frames, some at a time: none waits for bytes that are not read yet.

        The lists are never empty. To take one step for all frames of a list, then the next step,
        is faster than to take all steps for each frame.
        """
        yield from self._complete()
        if self._is_last:
            self._finish()
        if self._frame_queue.frames:
            yield self._frame_queue.take()
        if not self._is_last:
            self._frame_queue.on_ending = None

    def _complete(self) -> Iterator[list[RawFrame]]:
        """The frames that are complete before the capture ends."""
        out, take = self._frame_queue.frames, self._frame_queue.take
        payload = 0
        remember, note = self._recent.entries.append, self.health.recorded.note
        read_segment = SegmentReader(self.health).read
        for packet in chain.from_iterable(self._files()):
            if packet is PAUSE:
                if out:
                    yield take()
                continue
            remember(packet)
            note(packet[0])
            segment = read_segment(packet)
            if segment is None:
                continue
            payload += segment.size
            if self._is_next(segment):
                if out and (len(out) >= TOGETHER or out[-1].size >= LONG_BYTES):
                    yield take()
                continue
            if out:
                yield take()
            self._handle(segment)
            if segment.flags & _UNUSUAL:
                self._review(segment.stamp[0])
            if out:
                yield take()
        if self._in_order is not None:
            payload += self._in_order.payload
        self.health.bytes.payload += payload

    def _take_by_engine(self, *where: Any) -> tuple[int, int, int]:
        """Take packets by the engine: see `kraftwire.capture.packets.packet.Follow`."""
        in_order, order = self._in_order, self._order
        in_order.latest_ns = min(order.latest_ns, _TIME_MAX)
        after, taken, first_ns, last_ns = in_order.follow(*where)
        if taken:
            order.latest_ns = in_order.latest_ns
            self.health.recorded.note_run(first_ns, last_ns)
            self._recent.add_run(PacketRun(where, after), taken)
        return after, taken, last_ns

    def _is_next(self, segment: Segment) -> bool:
        """Take a packet if it holds the next bytes of a known direction, or none."""
        stamp, key, seq, ack, flags, data, start, end, _ = segment
        flow = self._flows.get(key)
        if flow is None or seq != flow.fast_seq or flags & (_UNUSUAL | MISSING):
            return False
        if flags & _ACK and ack != flow.ack:
            flow.note_ack(ack)
        if start < end:
            flow.fast_seq = (seq + end - start) & _MASK
            if end - start < flow.need:
                flow.parts.append(data[start:end])
                flow.need -= end - start
                flow.stamp = stamp
            else:
                flow.feed(data, start, end, stamp)
        return True

    def _learn_secrets(self, lines: bytes) -> None:
        """Take the secrets that a capture carries, if the extra that decrypts is installed."""
        if self._frame_queue.keys is None:
            if not has_ciphers():
                return
            self._frame_queue.keys = KeyLog()
        self._frame_queue.keys.add_lines(lines.splitlines())

    def _begin_block(self, source: CaptureSource) -> None:
        if packets := self._recent.packets:
            self._review(new_packet(packets[-1]).time_ns)
        self._watch(source)

    def _watch(self, source: CaptureSource) -> None:
        """Make connections release what they hold if it is too much, the oldest first."""
        packed = self._packed_before + source.packed
        packed_size = max(packed, source.file_size) if source.is_packed else None
        self._frame_queue.budget.packed = packed_size
        if self._in_order is not None:
            self._in_order.packed = -1 if packed_size is None else packed_size
        read = self.health.bytes.file + source.size
        self._memory.sorting = self._order.held_bytes
        if not self._memory.is_due(self.health.connections, read, packed):
            return
        for connection in self._memory.review(packed, self._close_idle):
            held = connection.held_bytes
            connection.release_memory()
            self.health.relieved_connections += connection.held_bytes < held

    def _close_idle(self, connection: Connection) -> None:
        self._close(connection)
        self.health.relieved_connections += 1

    def _handle(self, segment: Segment) -> None:
        """Take a packet that opens or ends a connection, or is not the next one there."""
        stamp, key, seq, _, flags, _, start, end, missing = segment
        flow = self._flows.get(key)
        if flow is not None and flow.connection in self._troubled:
            # Decisions up to here must not depend on the packets of other connections.
            self._follow(flow.connection, flow.connection.review(stamp[0]), stamp[0])
        if self._translations.is_copy(segment):
            self._pass_over_copy(flow, segment)
        elif flags & SYN:
            self._open_by_syn(flow, segment)
        else:
            if flow is None or (flow.is_far_off(seq) and start < end):
                if start == end and not missing:
                    return
                flow = self._open_midstream(flow, key)
            if flow.is_repeated(seq, end - start) and self._recent.is_copy(segment):
                self.health.copies += 1
                self.health.bytes.duplicates += end - start
            elif not flow.connection.is_closed:
                self._compare(flow, segment)
                self._follow(flow.connection, flow.connection.accept(flow, segment), stamp[0])
            else:
                self.health.bytes.duplicates += end - start

    def _compare(self, flow: Direction, segment: Segment) -> None:
        """Report bytes that came before, if they differ."""
        if flow.is_repeated(segment.seq, segment.size):
            count = self._recent.conflict(segment)
            if count:
                self.health.conflicts += 1
                flow.sink.on_conflict(count)

    def _follow(self, connection: Connection, is_open: bool, time_ns: int) -> None:
        """Keep the tables up to date after a review."""
        self._troubled.pop(connection, None)
        if is_open:
            self._troubled[connection] = time_ns
        elif connection.is_closed:
            self._mark_closed(connection)

    def _review(self, time_ns: int) -> None:
        """Review the connections that had no packet for long.

        Order: wherever any connection begins or ends, and for each block of the file.
        """
        due = []
        for connection, reviewed_ns in self._troubled.items():
            if time_ns - reviewed_ns <= REVIEW_NS:
                break
            due.append(connection)
        for connection in due:
            self._follow(connection, connection.review(time_ns), time_ns)

    def _open_by_syn(self, flow: Direction | None, segment: Segment) -> None:
        stamp, key, seq, flags = segment.stamp, segment.key, segment.seq, segment.flags
        if flow is not None:
            is_over = flow.connection.is_ending or flow.connection.is_closed
            if flow.syn_seq == seq and not is_over:
                self.health.bytes.duplicates += segment.size
                return  # sent again
            flow.leave_fast_path()
            is_new = flow.syn_seq >= 0 or is_over
            if is_new or (flow.next_seq >= 0 and flow.is_far_off(seq)):
                self._close(flow.connection)
                flow = None
        if flow is None:
            flow = self._new_connection(key).flows[0]
        flow.connection.open_by_syn(flow, seq, is_client=not flags & _ACK)
        first = (seq + 1) & _MASK
        rest = segment._replace(seq=first, ack=0, flags=flags & ~(SYN | _ACK))
        self._follow(flow.connection, flow.connection.accept(flow, rest), stamp[0])

    def _pass_over_copy(self, flow: Direction | None, segment: Segment) -> None:
        """Count a packet of a connection that came before under another address."""
        if segment.flags & SYN and not segment.flags & _ACK:
            self.health.translated_connections += 1
            if flow is not None:
                self._close(flow.connection)
        self.health.bytes.duplicates += segment.size

    def _open_midstream(self, flow: Direction | None, key: bytes) -> Direction:
        if flow is not None:
            self._close(flow.connection)
        connection = self._new_connection(key)
        connection.open_midstream()
        self.health.midstream_connections += 1
        return connection.flows[0]

    def _new_connection(self, key: bytes) -> Connection:
        connection = Connection(key, self._frame_queue)
        self._flows[key], self._flows[reverse_key(key)] = connection.flows
        self._open[connection] = None
        self._watch(self._source)
        if len(self._open) > CONNECTIONS_MAX:
            self._make_room()
        return connection

    def _make_room(self) -> None:
        """Give up a tenth of the connections, those that are not decoded first."""
        by_use = sorted(self._open, key=lambda connection: connection.is_kafka)
        for connection in by_use[: CONNECTIONS_MAX // 10]:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        connection.close(at_capture_end=False)
        self._mark_closed(connection)

    def _mark_closed(self, connection: Connection) -> None:
        """Remember a closed connection for a while, so that late copies of packets find it."""
        self._troubled.pop(connection, None)
        if self._open.pop(connection, connection) is None:
            self._closed[connection] = None
        while len(self._closed) > CLOSED_CONNECTIONS_MAX:
            oldest = next(iter(self._closed))
            del self._closed[oldest]
            for key in (oldest.key, reverse_key(oldest.key)):
                if self._flows[key].connection is oldest:
                    del self._flows[key]
            oldest.release_directions()

    def _finish(self) -> None:
        """Close everything: the capture ends with its last packet, for all connections."""
        end_ns = self._end_ns
        if end_ns is None and self._recent.packets:
            end_ns = new_packet(self._recent.packets[-1]).time_ns
        if end_ns is not None:
            for connection in list(self._troubled):
                self._follow(connection, connection.review(end_ns), end_ns)
        for connection in list(self._open):
            connection.close(at_capture_end=True)
        self._open.clear()


def _engine_loop(flows: dict[bytes, Any], queue: FrameQueue) -> Any:
    """Return the engine's loop over packets with the next bytes of a known direction, None without.

    `flows` are the directions by their keys, and `queue` gets their frames.
    """
    core = engine.core
    if core is None:
        return None
    # The classes whose attributes the engine uses, in the order of `kraftwire/engine/frames.h`.
    classes = (
        Flow, FrameReader, RequestReader, ResponseReader, Request, queue.frame_class,
        KafkaConnection,
    )  # fmt: skip
    limits = FRAME_SIZE_MAX, COUNTED_FRAME_SIZE_MIN
    return core.InOrder(classes, flows, queue, queue.frames, *limits)
