"""One direction of a TCP connection: its bytes in order, each once, and the holes among them.

Owns sequence numbers. Where the bytes go is up to the sink; when a hole is hopeless is decided
here, from the packets of both directions.

`RecentPackets` tell whether bytes that come again are the same ones. A sender that sends two
versions of the same bytes shows one to the decoder and the other to the receiver. No capture shows
which of them the receiver took, only that there were two.

Source: RFC 9293.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kraftwire import engine
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.links import FIN, SYN, Segment, SegmentReader
from kraftwire.capture.packets.packet import NO_STAMP, PacketValues, Stamp, new_packet
from kraftwire.limits import PIECE_OBJECT_BYTES

# Bytes after a hole in a TCP stream are held until the hole is filled or hopeless. It is hopeless
# HOLE_PACKETS packets after a sign that the receiver has the bytes (captures confuse the order of
# packets by a few only), or when HELD_BYTES_MAX are held, or after HOLE_WAIT_NS. Where the receiver
# is seen asking for the bytes, they will be sent again, so the wait is longer: for the largest
# usual window, and for some doublings of the retransmission timer.
HOLE_PACKETS = 16
HELD_BYTES_MAX = 1024 * 1024
HELD_BYTES_WAITING_MAX = 16 * 1024 * 1024
HOLE_WAIT_NS = 3_000_000_000
HOLE_WAIT_RETRANSMISSION_NS = 30_000_000_000

_MASK = 0xFFFFFFFF
_HALF = 0x80000000
_UNKNOWN = -1

# Sequence number, payload, how many bytes the capture cut off its end, stamp of the packet.
_Held = tuple[int, bytes, int, Stamp]

# How far back packets are usually sent again; with 64 KiB each they are 4 MiB. All of them are
# looked at for each packet that comes again.
_PACKETS_KEPT = 64
# Link, IP and TCP headers with all their options hold the ports this far from the start at most.
_HEADERS_MAX = 256

# So many held pieces before a packet are looked at for bytes that it has too.
_HELD_SEEN = 64

# A keep-alive packet has a byte without meaning, at a place that was read before.
_PROBE = b"\0"


class Sink(Protocol):
    """Takes a direction's bytes in order."""

    def feed(self, data: bytes, start: int, end: int, stamp: Stamp, /) -> None:
        """Take bytes of a packet."""

    def skip(self, count: int, stamp: Stamp, truncated: bool, /) -> None:
        """Learn that bytes are missing, because a packet is, or because it is truncated."""

    def on_conflict(self, count: int, /) -> None:
        """Learn that bytes came again and differ."""


class Flow:
    """A direction of a connection.

    `fast_seq` is the sequence number of the next byte, or -1 while anything is unusual;
    only then does `accept` get packets, between `leave_fast_path` and `enter_fast_path`. `feed`
    is the sink's method for bytes in order; sinks replace it as their state changes. Of a frame
    that continues in later packets, `parts` are the pieces so far, `need` counts the bytes that are
    missing and `stamp` is that of the last piece: a packet with fewer bytes than that is appended
    in the fast path, without a call of `feed`. `ack` is how far this direction's sender has the
    bytes of the other one, and `first_ack` how far it had them first; -1 where that is not known.
    A direction `is_cut` if its last packet, of unknown size, is not in the capture.
    """

    __slots__ = (
        "_acked_at",
        "_health",
        "_held",
        "_held_bytes",
        "_held_longest",
        "_hole_at",
        "_hole_ns",
        "_is_waiting",
        "ack",
        "fast_seq",
        "feed",
        "fin_seq",
        "first_ack",
        "is_cut",
        "is_finished",
        "need",
        "next_seq",
        "parts",
        "sink",
        "stamp",
        "syn_seq",
    )

    sink: Sink
    feed: Callable[[bytes, int, int, Stamp], None]

    def __init__(self, health: Health) -> None:
        self.fast_seq = _UNKNOWN
        self.next_seq = _UNKNOWN
        self.syn_seq = _UNKNOWN
        self.fin_seq = _UNKNOWN
        self.ack = self.first_ack = _UNKNOWN
        self.is_cut = False
        self.is_finished = False
        self.need = 0
        self.parts: list[bytes] = []
        self.stamp = NO_STAMP
        self._health = health
        self._held: list[_Held] = []
        self._held_bytes = self._held_longest = 0
        self._hole_at = self._hole_ns = self._acked_at = _UNKNOWN
        self._is_waiting = False

    @property
    def has_hole(self) -> bool:
        """Whether later bytes wait for earlier ones."""
        return bool(self._held)

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits here: pieces of a frame, and bytes after holes."""
        size = self._held_bytes + sum(map(len, self.parts))
        return size + (len(self._held) + len(self.parts)) * PIECE_OBJECT_BYTES

    def leave_fast_path(self) -> None:
        """Leave the fast path: the next packets come to `accept`."""
        if self.fast_seq >= 0:
            self.next_seq = self.fast_seq
            self.fast_seq = _UNKNOWN

    def enter_fast_path(self) -> None:
        """Return to the fast path, because nothing is unusual any more."""
        self.fast_seq = self.next_seq

    def is_far_off(self, seq: int) -> bool:
        """Whether a sequence number cannot belong to this connection any more."""
        next_seq = self.next_seq if self.fast_seq < 0 else self.fast_seq
        if next_seq < 0:
            return False
        ahead = (seq - next_seq) & _MASK
        return min(ahead, _MASK + 1 - ahead) > HELD_BYTES_WAITING_MAX * 4

    def is_repeated(self, seq: int, size: int) -> bool:
        """Whether bytes of a packet may have come before.

        A single byte before the next one does not count: it keeps a connection alive, and
        may have any value.
        """
        next_seq = self.next_seq if self.fast_seq < 0 else self.fast_seq
        ahead = (seq - next_seq) & _MASK
        if next_seq < 0 or not size or (ahead == _MASK and size == 1):
            return False
        return ahead >= _HALF or (bool(self._held) and self._may_overlap(seq, size))

    def _may_overlap(self, seq: int, size: int) -> bool:
        """Whether held bytes may be among some. Of those that begin before them only the nearest
        are looked at, because there may be very many."""
        held, at = self._held, self._place(seq)
        if at < len(held) and (held[at][0] - seq) & _MASK < size:
            return True
        first = max(at - _HELD_SEEN, 0)
        if any((seq - one[0]) & _MASK < len(one[1]) for one in held[first:at]):
            return True
        return first > 0 and (seq - held[first - 1][0]) & _MASK < self._held_longest

    def _place(self, seq: int) -> int:
        """Return how many held pieces begin before a sequence number."""
        next_seq = self.next_seq if self.fast_seq < 0 else self.fast_seq
        ahead = (seq - next_seq) & _MASK
        return bisect_left(self._held, ahead, key=lambda other: (other[0] - next_seq) & _MASK)

    def accept(self, segment: Segment, packet_number: int) -> None:
        """Take a packet of any kind but SYN; `packet_number` counts those of the connection."""
        stamp, _, seq, _, flags, data, start, end, missing = segment
        size = end - start + missing
        if self.next_seq < 0 and size:
            self.next_seq = seq
        if flags & FIN and self.fin_seq < 0:
            self.fin_seq = (seq + size) & _MASK
        if size:
            ahead = (seq - self.next_seq) & _MASK
            if not ahead:
                self._take(data, start, end, missing, stamp)
            elif ahead < _HALF:
                self._hold((seq, data[start:end], missing, stamp), packet_number)
            else:
                self._take_rest((seq, data[start:end], missing, stamp))
            if self._held:
                self._drain()
        self._check_finished()

    def _check_finished(self) -> None:
        if self.fin_seq >= 0 and self.next_seq == self.fin_seq and not self._held:
            self.is_finished = True

    def _take(self, data: bytes, start: int, end: int, missing: int, stamp: Stamp) -> None:
        """Pass bytes on that are next in order."""
        self.next_seq = (self.next_seq + end - start + missing) & _MASK
        if start < end:
            self.feed(data, start, end, stamp)
        if missing:
            self._lose(missing, stamp, truncated=True)

    def _take_rest(self, held: _Held) -> None:
        """Pass on the new part of bytes that begin before the next one."""
        seq, data, missing, stamp = held
        known = (self.next_seq - seq) & _MASK
        if known >= len(data) + missing:
            self._health.retransmissions += 1
            self._health.bytes.duplicates += len(data)
            return
        start = min(known, len(data))
        if known:
            self._health.overlaps += 1
            self._health.bytes.duplicates += start
        missing -= known - start
        self._take(data, start, len(data), missing, stamp)

    def _hold(self, held: _Held, packet_number: int) -> None:
        """Keep bytes until those before them come."""
        size, at = len(held[1]), self._place(held[0])
        while at < len(self._held) and self._held[at][0] == held[0]:
            if len(self._held[at][1]) == size:
                self._health.retransmissions += 1
                self._health.bytes.duplicates += size
                return
            at += 1
        if not self._held:
            self._hole_at, self._hole_ns = packet_number, held[3][0]
            self._acked_at, self._is_waiting = _UNKNOWN, False
            self._held_longest = 0
        self._health.out_of_order += 1
        self._held.insert(at, held)
        self._held_bytes += size
        self._held_longest = max(self._held_longest, size)

    def _drain(self) -> None:
        """Pass on held bytes as far as there is no hole before them."""
        while self._held:
            held = self._held[0]
            if 0 < (held[0] - self.next_seq) & _MASK < _HALF:
                return
            del self._held[0]
            self._held_bytes -= len(held[1])
            self._take_rest(held)

    def _lose(self, count: int, stamp: Stamp, *, truncated: bool) -> None:
        self._health.gaps += 1
        self._health.missing_bytes += count
        self.sink.skip(count, stamp, truncated)

    def on_ack(self, ack: int, packet_number: int) -> None:
        """Learn from the other direction how far its end has received this one."""
        if not self._held:
            return
        ahead = (ack - self.next_seq) & _MASK
        last = self._held[-1]
        hole = (self._held[0][0] - self.next_seq) & _MASK
        known = (last[0] + len(last[1]) + last[2] - self.next_seq) & _MASK
        if hole <= ahead <= known and self._acked_at < 0:
            self._acked_at = packet_number
        elif not ahead:
            self._is_waiting = True

    def is_hole_hopeless(self, packet_number: int, time_ns: int, *, is_answered: bool) -> bool:
        """Whether what is missing will not come any more.

        `is_answered`: the other direction has reacted to missing bytes. Order of
        evidence: the receiver has the bytes, so they are not sent again; or memory or time
        is used up, both of which are short unless the receiver is seen asking for the bytes.
        """
        if not self._held:
            return False
        if self._acked_at >= 0 and packet_number - self._acked_at >= HOLE_PACKETS:
            return True
        if is_answered and packet_number - self._hole_at >= HOLE_PACKETS:
            return True
        waited = time_ns - self._hole_ns
        if self._is_waiting and self._acked_at < 0:
            return self._held_bytes > HELD_BYTES_WAITING_MAX or waited > HOLE_WAIT_RETRANSMISSION_NS
        return self._held_bytes > HELD_BYTES_MAX or waited > HOLE_WAIT_NS

    def skip_hole(self, packet_number: int) -> None:
        """Report the first hole as lost and pass on what comes after it."""
        if self._held:
            seq, _, _, stamp = self._held[0]
            count = (seq - self.next_seq) & _MASK
            self.next_seq = seq
            self._lose(count, stamp, truncated=False)
            self._drain()
            self._hole_at, self._hole_ns = packet_number, stamp[0]
            self._acked_at, self._is_waiting = _UNKNOWN, False
            self._check_finished()

    def note_ack(self, ack: int) -> None:
        """Note an acknowledgement in a packet of this direction.

        Of a single byte more it is not known whether it is not the end of the other direction.
        """
        if self.ack < 0:
            self.ack = self.first_ack = ack
        elif 1 < (ack - self.ack) & _MASK < _HALF:
            self.ack = ack

    def note_cut(self) -> None:
        """Learn that the other end has reset the connection upon a packet that did not come."""
        if not self.is_cut:
            self.is_cut = True
            self._health.gaps += 1

    def unseen_bytes(self, other: Flow) -> int:
        """How many bytes the receiver has, by the acknowledgements in the other direction, that
        come after all that the capture has of this one.
        """
        start = self.next_seq if self.fast_seq < 0 else self.fast_seq
        start = other.first_ack if start < 0 else start
        count = (other.ack - start) & _MASK
        if other.ack < 0 or self._held or count >= _HALF:
            return 0
        return min(count, (self.fin_seq - start) & _MASK) if self.fin_seq >= 0 else count

    def skip_all_holes(self, packet_number: int, other: Flow) -> None:
        """Report every hole as lost, because nothing more will come.

        The last bytes may be missing as well: those before the end of the direction, and those that
        the `other` one acknowledges.
        """
        while self._held:
            self.skip_hole(packet_number)
        count = self.unseen_bytes(other)
        if self.next_seq < 0:
            self.next_seq = other.first_ack
        if self.fin_seq >= 0 and not self.is_finished and self.next_seq >= 0:
            count = (self.fin_seq - self.next_seq) & _MASK
        if 0 < count < _HALF:
            self.next_seq = (self.next_seq + count) & _MASK
            self._lose(count, NO_STAMP, truncated=False)


class PacketRun(NamedTuple):
    """Packets that the engine has followed: its arguments, and where they end."""

    where: tuple[Any, ...]
    end: int


class RecentPackets:
    """Remembers the last packets of a capture, those that the engine followed as runs.

    The loop over the capture appends to `entries`.
    """

    def __init__(self) -> None:
        self.entries: deque[PacketValues | PacketRun] = deque(maxlen=_PACKETS_KEPT)

    def add_run(self, run: PacketRun, count: int) -> None:
        """Add so many packets that the engine has followed."""
        if count >= _PACKETS_KEPT:
            self.entries.clear()
        self.entries.append(run)

    @property
    def packets(self) -> list[PacketValues]:
        """The last packets, the latest one last."""
        found: list[PacketValues] = []
        for entry in reversed(self.entries):
            if isinstance(entry, PacketRun):
                found += reversed(engine.core.read_packets(*entry.where, entry.end))
            else:
                found.append(entry)
        return found[:_PACKETS_KEPT][::-1]

    def is_copy(self, segment: Segment) -> bool:
        """Whether the same segment came before in a packet of another size: in other wrappings.

        Order: while the segment's own packet is the last one.
        """
        *before, last = self.packets
        own = new_packet(last)
        said = segment.data[segment.start : segment.end]
        read = SegmentReader(Health()).read
        for packet in map(new_packet, reversed(before)):
            if packet.captured == own.captured or said not in packet.data[
                packet.start : packet.start + packet.captured
            ]:
                continue
            other = read(packet)
            if (
                other is not None
                and (other.key, other.seq) == (segment.key, segment.seq)
                and other.data[other.start : other.end] == said
            ):
                return True
        return False

    def conflict(self, segment: Segment) -> int:
        """Return how many bytes of a segment came before and differ; 0 if none do.

        The number is that of the longest such piece, with equal bytes inside it; bytes from before
        the kept packets are not compared. Order: while the segment's own packet is the last one. A
        copy with all of the segment ends the search: what differs from it was reported then.
        """
        _, key, seq, _, _, data, start, end, _ = segment
        # Their bytes were counted when the packets came.
        read = SegmentReader(Health()).read
        found, said, ports = 0, data[start:end], key[-4:]
        for packet in map(new_packet, self.packets[-2::-1]):
            held, at = packet.data, packet.start
            # It may find the ports after the packet's end: they are looked at again below.
            if held.find(ports, at, at + _HEADERS_MAX) < 0:
                continue
            other = read(packet)
            if other is None or other.key != key:
                continue
            if other.flags & SYN:
                break  # what came before belongs to another connection
            piece = other.data[other.start : other.end]
            if piece == _PROBE:
                continue
            into = (seq - other.seq) & _MASK
            if piece[into : into + len(said)] == said:
                break
            size = _overlap(seq, said, other.seq, piece)
            found = max(found, size)
        return found


def _overlap(seq: int, data: bytes, other_seq: int, other: bytes) -> int:
    """Return the size of what two pieces of a stream share, if it differs."""
    ahead = (other_seq - seq) & _MASK
    if ahead >= _HALF:
        return _overlap(other_seq, other, seq, data)
    shared = data[ahead : ahead + len(other)]
    return len(shared) if shared != other[: len(shared)] else 0
