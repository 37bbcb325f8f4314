"""A TCP connection: its two directions, and the stage of decoding that it has reached.

Owns opening, closing and the review after each unusual packet: whether a hole is hopeless, whether
the connection is over, and whether its packets may take the fast path again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kraftwire.capture.connections.protocol_detection import ProtocolDetection, end_name
from kraftwire.capture.connections.stage import Stage
from kraftwire.capture.framing.frames import FrameQueue
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.links import FIN, RST, Segment
from kraftwire.capture.tcp import Flow
from kraftwire.limits import CONNECTION_OBJECT_BYTES, PIECE_OBJECT_BYTES

# After a reset, or after both ends have closed while bytes are still missing, a connection is
# followed for this much longer, because captures may show its last data too late.
LINGER_PACKETS = 16
LINGER_NS = 1_000_000_000

_MASK = 0xFFFFFFFF
_ACK = 16


def reverse_key(key: bytes) -> bytes:
    """The key of the other direction: addresses and ports swapped."""
    size = (len(key) - 4) // 2
    return key[size : 2 * size] + key[:size] + key[-2:] + key[-4:-2]


class Direction(Flow):
    """A direction that knows its connection."""

    __slots__ = ("connection",)

    def __init__(self, health: Health, connection: Connection) -> None:
        super().__init__(health)
        self.connection = connection


class Connection:
    """One connection between two ends, from its first packet to its last.

    `flows` are those of the packets with `key` and of the other direction. Unusual packets
    come to `accept`; between them both flows are in the fast path unless something is open.
    `is_ending` from the first FIN or reset on, `is_closed` when nothing more is expected.
    """

    __slots__ = (
        "_ending_at",
        "_ending_ns",
        "_finished_last",
        "_packet_ns",
        "_packets",
        "_detection",
        "flows",
        "is_closed",
        "is_ending",
        "key",
    )

    def __init__(self, key: bytes, frame_queue: FrameQueue) -> None:
        self.key = key
        self.is_closed = False
        self.is_ending = False
        self._packets = 0
        self._packet_ns = 0
        self._ending_at = self._ending_ns = -1
        # The direction that has ended, as long as no packet of the other one has come since.
        self._finished_last: Flow | None = None
        size = (len(key) - 4) // 2
        ends = (
            end_name(key[:size], key[-4:-2]),
            end_name(key[size : 2 * size], key[-2:]),
        )
        self.flows = (Direction(frame_queue.health, self), Direction(frame_queue.health, self))
        self._detection = ProtocolDetection(self.flows, ends, frame_queue)
        frame_queue.health.connections += 1

    @property
    def stage(self) -> Stage:
        """The stage of decoding that takes the bytes at present."""
        return self._detection.stage or self._detection

    @property
    def is_kafka(self) -> bool:
        """Whether the connection is decoded as Kafka's."""
        return self.stage.is_kafka

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of the connection and of all that waits in it. Units: bytes."""
        first, second = self.flows
        held = first.held_bytes + second.held_bytes + self.stage.held_bytes
        return CONNECTION_OBJECT_BYTES + held

    def release_memory(self) -> None:
        """Drop what waits for packets that have not come."""
        if self.is_closed:
            return
        for flow in self.flows:
            is_fast = flow.fast_seq >= 0
            flow.leave_fast_path()
            while flow.has_hole:
                flow.skip_hole(self._packets)
            if is_fast:
                flow.enter_fast_path()
        self.stage.release_memory()

    def open_by_syn(self, flow: Flow, seq: int, *, is_client: bool) -> None:
        """Learn a direction's first sequence number."""
        flow.syn_seq = seq
        if flow.next_seq < 0:
            flow.next_seq = (seq + 1) & _MASK
        self._detection.set_client(flow if is_client else self.other(flow))

    def open_midstream(self) -> None:
        """Begin without a SYN: the ends' roles and the borders of frames are unknown."""
        self._detection.begin_midstream()

    def other(self, flow: Flow) -> Direction:
        """The other direction."""
        return self.flows[1] if flow is self.flows[0] else self.flows[0]

    def accept(self, flow: Flow, segment: Segment) -> bool:
        """Take a packet outside the fast path; returns whether anything is still open."""
        (time_ns, _, _), _, _, ack, flags, _, _, _, _ = segment
        for each in self.flows:
            each.leave_fast_path()
        self._packets += 1
        self._packet_ns = time_ns
        if flags & _ACK:
            self.other(flow).on_ack(ack, self._packets)
            if not flags & RST:
                flow.note_ack(ack)
        flow.accept(segment, self._packets)
        self._watch_end(flow, flags)
        if flags & RST and self._ending_at < 0:
            self._ending_at, self._ending_ns = self._packets, time_ns
        if flags & (FIN | RST) and not self.is_ending:
            self.is_ending = True
            self._detection.report_ending(flow, time_ns, is_reset=bool(flags & RST))
        return self.review(time_ns)

    def _watch_end(self, flow: Flow, flags: int) -> None:
        """Notice that one end has closed, and then refused a packet that is not in the capture.

        Such a reset acknowledges nothing. Source: RFC 9293, section 3.10.7.1.
        """
        if flags & FIN:
            self._finished_last = flow
        elif flow is not self._finished_last:
            self._finished_last = None
        elif flags & RST and not flags & _ACK:
            self.other(flow).note_cut()

    def review(self, time_ns: int) -> bool:
        """Decide what can be decided by now; returns whether anything is still open."""
        if self.is_closed:
            return False
        first, second = self.flows
        stage = self.stage
        for flow in self.flows:
            is_answered = stage.is_waiting and stage.is_client(flow)
            while flow.is_hole_hopeless(self._packets, time_ns, is_answered=is_answered):
                flow.skip_hole(self._packets)
        stage = self.stage
        stage.review(self._packets)
        is_open = first.has_hole or second.has_hole or stage.is_waiting
        if first.is_finished and second.is_finished:
            if not is_open:
                self.close(at_capture_end=False)
                return False
            if self._ending_at < 0:
                self._ending_at, self._ending_ns = self._packets, self._packet_ns
        if self._ending_at >= 0:
            # Captures may show the last data after the packet that ends the connection.
            is_over = time_ns - self._ending_ns > LINGER_NS
            if is_over or self._packets - self._ending_at > LINGER_PACKETS:
                self.close(at_capture_end=False)
                return False
            return True
        if not is_open and not self.is_ending:
            first.enter_fast_path()
            second.enter_fast_path()
        return is_open

    def close(self, *, at_capture_end: bool) -> None:
        """Pass on what there is and forget the rest; later packets are late copies."""
        if self.is_closed:
            return
        for flow in self.flows:
            flow.leave_fast_path()
            flow.skip_all_holes(self._packets, self.other(flow))
        self.stage.finish(at_capture_end=at_capture_end)
        self.is_closed = True
        self._detection.forget()

    def release_directions(self) -> None:
        """Drop both directions, which know this object, without waiting for a garbage collector.

        Order: when the connection is closed, and nobody looks for its directions any more.
        """
        del self.flows


# All that the connections of a capture hold together: bytes after holes, unfinished frames, bytes
# that are searched, responses and requests that wait, and the connections themselves. It may be
# CAPTURE_HELD_FREE, and CAPTURE_HELD_RATIO for each byte read so far (compressed, if the capture
# is), but never more than CAPTURE_HELD_BYTES_MAX. Uncompressed captures rarely reach that.
CAPTURE_HELD_FREE = 20 * 1024 * 1024
CAPTURE_HELD_RATIO = 4
CAPTURE_HELD_BYTES_MAX = 256 * 1024 * 1024

# Connections that hold less than this, themselves included, are dropped last, and as a whole.
RELIEVED_BYTES_MIN = 16 * 1024

# The shortest request, and thus what may be remembered for the fewest bytes.
_REQUEST_BYTES_MIN = 24
_GROWTH = 1 + PIECE_OBJECT_BYTES // _REQUEST_BYTES_MIN


class MemoryBudget:
    """Watches what the open connections hold.

    `read` are the bytes of the capture so far, as they are unpacked, and `packed` as they
    lie in the file. The budget grows with the second, so that little input never takes much.
    `sorting` is what the packets take that are held to be sorted, out of the same budget.
    """

    def __init__(self, connections: Iterable[Connection]) -> None:
        self._connections = connections
        self.sorting = 0
        self._read = self._opened = 0
        self._room = CAPTURE_HELD_FREE

    def is_due(self, opened: int, read: int, packed: int) -> bool:
        """Whether a `review` is due; `opened` counts the connections of the capture."""
        grown = (read - self._read) * _GROWTH
        grown += (opened - self._opened) * CONNECTION_OBJECT_BYTES
        if grown < self._room:
            return False
        self._read, self._opened = read, opened
        self._room = self._limit(packed) - self._sum()
        return self._room < self._limit(packed) // 16

    def review(self, packed: int, close: Callable[[Connection], None]) -> Iterator[Connection]:
        """The connections that have to give up what they hold, the one opened first before others.

        Those that hold little are left alone, unless all of them together are too many;
        then the oldest are closed. Order: each has released its memory before the next is asked
        for.
        """
        wanted = self._limit(packed) // 2
        held = self._sum()
        for connection in list(self._connections):
            if held <= wanted:
                break
            size = connection.held_bytes
            if size >= RELIEVED_BYTES_MIN:
                yield connection
                held -= size - connection.held_bytes
        # A connection that is closed loses what is still to come, so that has to be worth it.
        wanted = self._limit(packed) // 8 * 7
        if held > wanted:
            for connection in list(self._connections):
                if held <= wanted:
                    break
                held -= connection.held_bytes
                close(connection)
        self._room = self._limit(packed) - held

    def _sum(self) -> int:
        return sum(connection.held_bytes for connection in self._connections)

    def _limit(self, packed: int) -> int:
        held_max = min(CAPTURE_HELD_BYTES_MAX, CAPTURE_HELD_FREE + CAPTURE_HELD_RATIO * packed)
        return held_max - self.sorting


@dataclass(slots=True)
class OpenConnections:
    """The state of decoding between two packets, from which a reader can continue; picklable.

    `frame_queue` and `health` have the totals so far, `flows` both directions of each connection
    by their keys.
    """

    frame_queue: FrameQueue
    flows: dict[bytes, Direction] = field(default_factory=dict)
    open: dict[Connection, None] = field(default_factory=dict)
    closed: dict[Connection, None] = field(default_factory=dict)
    # Connections with something open -> when they were reviewed last.
    troubled: dict[Connection, int] = field(default_factory=dict)

    @property
    def health(self) -> Health:
        """The totals so far."""
        return self.frame_queue.health
