"""The index of a capture, made for a block of packets at once.

Owns what plain TCP packets have in common: they only add to the counts of their connection. All
other packets are read one by one, in order among those that open a connection.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kraftwire.capture.packets.links import SegmentReader
from kraftwire.capture.packets.pcap import cut_off, not_a_packet
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.limits import PACKET_BYTES_MAX
from kraftwire.spark.captures.headers import (
    ETHERNET,
    FILE_HEADER_SIZE,
    RECORD_HEADER_SIZE,
    Bytes,
    Headers,
    Ints,
    Records,
    fraction_of,
    link_of,
    record_places,
    windows,
)
from kraftwire.spark.captures.memory import Way
from kraftwire.spark.captures.talks import SHARED, Runs
from kraftwire.spark.captures.walk import Walk

__all__ = ["BlockWalk"]

_BLOCK_BYTES = 2048 * 1024
_NONE = -1

# Factors for addresses and ports in the sum that identifies a connection: any odd numbers.
_MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class BlockWalk(Walk):
    """One pass over the headers of a file, by blocks where it is a classic capture of Ethernet."""

    def __init__(self, path: str, keep: Callable[[Runs], None] | None) -> None:
        super().__init__(path, keep)
        self._ways_met: list[Way] = []
        self._awaiting: set[int] = set()
        self._read_segment = SegmentReader(self._health).read
        telling = [int.from_bytes(each, "big") for each in self._gatherer.telling]
        self._telling = np.array(sorted(telling), np.uint32)

    def _walk(self, source: CaptureSource) -> None:
        head = self._index.head
        fraction_ns = fraction_of(head)
        if fraction_ns is None or link_of(head) != ETHERNET:
            super()._walk(source)
            return
        source.read_exactly(FILE_HEADER_SIZE)
        end = 0
        data = b""
        minimum = _BLOCK_BYTES
        while more := source.read(minimum):
            base = source.position - len(data)
            data = data + more if data else more
            places = record_places(data, 0)
            if len(places):
                if not end:
                    self._note(SHARED, 0, FILE_HEADER_SIZE)
                records = Records(data, places, fraction_ns)
                self._take(data, base, records)
                end = base + int(records.ends[-1])
                data = data[end - base :]
            captured = int.from_bytes(data[8:12], "little")
            if len(data) >= RECORD_HEADER_SIZE and captured > PACKET_BYTES_MAX:
                source.fail(not_a_packet(captured))
                data = b""
                break
            minimum = max(_BLOCK_BYTES, captured + RECORD_HEADER_SIZE - len(data))
        if data and not source.problem:
            source.problem = cut_off(len(data))
        self._index.end = end

    def _take(self, data: bytes, base: int, records: Records) -> None:
        """Take the packets of a block, which begins at a position in the file."""
        self._health.packets += len(records.begins)
        heads = Headers(data, records.starts, records.captured)
        is_plain = heads.is_plain & heads.is_ipv4
        plain = np.flatnonzero(is_plain)
        keys, first, inverse = _distinct(heads.keys[plain])
        block = _Block(data, base, records, heads)
        # In order, since connections are numbered as they begin.
        begins = dict(zip(plain[first].tolist(), keys, strict=True))
        for at in sorted([*np.flatnonzero(~is_plain).tolist(), *begins]):
            if at not in begins:
                self._take_odd(block, at)
            elif begins[at] not in self._ways:
                position = base + int(records.begins[at])
                self._meet(begins[at], position, int(records.times[at]))
        ways = np.array([self._ways[key].at for key in keys], np.int64)
        block.ways[plain] = ways[inverse]
        block.counts[plain] = np.maximum(heads.counts[plain], 0)
        taken = np.flatnonzero(block.ways >= 0)
        if len(taken):
            self._add_up(block, taken)
            self._note_runs(block, taken)
            self._gather(block)

    def _take_odd(self, block: _Block, at: int) -> None:
        """Read a packet that is not plain TCP."""
        records, data = block.records, block.data
        begin, end = int(records.begins[at]), int(records.ends[at])
        time_ns, captured = int(records.times[at]), int(records.captured[at])
        wire = int.from_bytes(data[begin + 12 : begin + 16], "little")
        start = begin + RECORD_HEADER_SIZE
        packet = time_ns, ETHERNET, data, start, captured, wire, block.base, begin, end
        segment = self._read_segment(packet)
        if segment is not None:
            _, _, seq, _, _, own, start, stop, _ = segment
            block.ways[at] = self._way(segment, block.base + begin, time_ns).at
            block.counts[at] = max(stop - start, 0)
            block.odd[at] = seq, own, start, stop

    def _meet(self, key: bytes, position: int, time_ns: int) -> Way:
        first = super()._meet(key, position, time_ns)
        self._ways_met += [first, first.other]
        return first

    def _add_up(self, block: _Block, taken: Ints) -> None:
        """Add packets to the counts of their directions."""
        records = block.records
        # The last packet of each direction.
        ids, last, inverse = np.unique(
            block.ways[taken][::-1], return_index=True, return_inverse=True
        )
        inverse = inverse[::-1]
        packets = np.bincount(inverse)
        # Doubles count the bytes of a block exactly.
        sizes = np.bincount(inverse, (records.ends - records.begins)[taken])
        payload = np.bincount(inverse, block.counts[taken])
        times = records.times[taken[len(taken) - 1 - last]]
        columns = (ids, packets, sizes.astype(np.int64), payload.astype(np.int64), times)
        for at, count, size, carried, time_ns in zip(*(c.tolist() for c in columns), strict=True):
            way = self._ways_met[at]
            way.packets += count
            way.size += size
            way.payload += carried
            way.last_ns = time_ns

    def _note_runs(self, block: _Block, taken: Ints) -> None:
        """Add the packets as runs of one connection each."""
        numbers = block.ways[taken] // 2 + 1
        begins, ends = block.records.begins[taken], block.records.ends[taken]
        is_new = np.ones(len(taken), np.bool_)
        is_new[1:] = (numbers[1:] != numbers[:-1]) | (begins[1:] != ends[:-1])
        # A long run is cut where it passes a multiple of what one may have.
        which = np.cumsum(is_new) - 1
        inside = (begins - begins[is_new][which]) // self.run_bytes_max
        is_new[1:] |= inside[1:] > inside[:-1]
        first = np.flatnonzero(is_new)
        last = np.append(first[1:], len(taken)) - 1
        index = self._index
        index.numbers.frombytes(numbers[first].astype(np.uint32).tobytes())
        index.starts.frombytes((block.base + begins[first]).astype(np.uint64).tobytes())
        index.sizes.frombytes((ends[last] - begins[first]).astype(np.uint32).tobytes())
        self._run = _NONE
        self._hand_over_many()

    def _gather(self, block: _Block) -> None:
        """Inspect the packets that may be informative, in order."""
        tokens = windows(block.data, block.begins + 4, 4).view(">u4")[:, 0]
        carries = (block.ways >= 0) & (block.counts > 0)
        asks = carries & np.isin(tokens, self._telling)
        asks[list(block.odd)] = carries[list(block.odd)]
        asking = {self._ways_met[at].other.at for at in set(block.ways[asks].tolist())}
        awaiting = asking | self._awaiting
        if not awaiting:
            return
        looks = asks | (carries & np.isin(block.ways, list(awaiting)))
        for at in np.flatnonzero(looks).tolist():
            seq, data, start, stop = block.payload(at)
            self._gatherer.look(self._ways_met[int(block.ways[at])], seq, data, start, stop)
        self._awaiting = {at for at in awaiting if self._ways_met[at].awaited}


class _Block:
    """The packets of a block, and the facts found about them.

    `ways` are their directions, -1 for none, `counts` the sizes of their payloads;
    `odd` has those that were read one by one: sequence number, and where the payload is.
    """

    def __init__(self, data: bytes, base: int, records: Records, heads: Headers) -> None:
        self.data = data
        self.base = base
        self.records = records
        self.seqs, self.begins = heads.seqs, heads.begins
        self.ways = np.full(len(records.begins), _NONE, np.int64)
        self.counts = np.zeros(len(records.begins), np.int64)
        self.odd: dict[int, tuple[int, bytes, int, int]] = {}

    def payload(self, at: int) -> tuple[int, bytes, int, int]:
        """Sequence number, data, and where the payload begins and ends in it."""
        found = self.odd.get(at)
        if found is None:
            begin = int(self.begins[at])
            found = int(self.seqs[at]), self.data, begin, begin + int(self.counts[at])
        return found


def _distinct(keys: Bytes) -> tuple[list[bytes], Ints, Ints]:
    """Return the distinct keys, where each occurs first, and the number of every key among them."""
    keys = np.ascontiguousarray(keys)
    words = keys.view("<u4").astype(np.uint64)
    mixed = (words[:, 0] << np.uint64(32) | words[:, 1]) * _MIX[0] + words[:, 2] * _MIX[1]
    _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
    if not (keys == keys[first][inverse]).all():
        # Different keys have the same hash.
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return [row.tobytes() for row in keys[first]], first, inverse.reshape(-1)
