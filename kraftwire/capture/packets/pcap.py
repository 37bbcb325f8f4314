"""Packets of a capture file: the classic pcap format, and the entry to pcapng.

Owns the record headers of pcap, not what the packets hold.

Source: draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import PAUSE, Packet, new_packet
from kraftwire.capture.packets.pcapng import SECTION_MAGIC, read_blocks
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.errors import StorageError
from kraftwire.limits import PACKET_BYTES_MAX

# Magic number -> byte order, nanoseconds of the second half of a timestamp.
_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_LITTLE = "<"
LITTLE_ENDIAN = frozenset(magic for magic, (order, _) in _MAGICS.items() if order == _LITTLE)
FILE_HEADER_SIZE = 24
RECORD_HEADER_SIZE = 16
_SECOND_NS = 1_000_000_000
# In place of the number of an interface.
_CLASSIC = -1


def read_packets(source: CaptureSource, health: Health) -> Iterator[Packet]:
    """The packets of a capture, in the file's order; a live capture's as they come.

    Where the source's `follow` has taken some, `PAUSE` comes in their place; also before more bytes
    are read, if the source `has_pauses`.

    The buffer may be kept; it is not written to again. Where the file ends inside a packet or its
    headers make no sense, the iterator ends and `source.problem` says so.
    Raises: StorageError if the file is not a capture.
    """
    head = source.read_exactly(FILE_HEADER_SIZE)
    magic = head[:4]
    if magic == SECTION_MAGIC:
        return read_blocks(source, health, head)
    if magic not in _MAGICS or len(head) < FILE_HEADER_SIZE:
        problem = f"expected the magic number of pcap or pcapng, found {magic.hex() or 'nothing'}"
        problem = source.problem or f"not a capture: {problem}"
        raise StorageError(problem, file=source.path, position=0)
    order, fraction_ns = _MAGICS[magic]
    # The upper half of the field may hold the length of the frame check sequence.
    link = struct.unpack_from(f"{order}I", head, 20)[0] & 0xFFFF
    if order != _LITTLE:
        source.follow = None
    return _records(source, health, struct.Struct(f"{order}IIII"), fraction_ns, link)


def _records(
    source: CaptureSource, health: Health, header: struct.Struct, fraction_ns: int, link: int
) -> Iterator[Packet]:
    unpack = header.unpack_from
    data = b""
    missing = count = second = second_ns = 0
    while more := source.read(max(missing, 1)):
        base = source.position - len(data)
        data = data + more if data else more
        at = missing = 0
        end = len(data)
        last = end - RECORD_HEADER_SIZE
        while at <= last:
            if (follow := source.follow) is not None:
                at, taken, _ = follow(data, at, base, fraction_ns, link, _CLASSIC)
                if taken:
                    count += taken
                    yield PAUSE
                    continue
            seconds, fraction, captured, wire = unpack(data, at)
            start = at + 16
            stop = start + captured
            if stop > end:
                if captured > PACKET_BYTES_MAX:
                    health.packets += count
                    source.fail(not_a_packet(captured))
                    return
                missing = stop - end
                break
            if seconds != second:
                second, second_ns = seconds, seconds * _SECOND_NS
            count += 1
            time_ns = second_ns + fraction * fraction_ns
            yield new_packet((time_ns, link, data, start, captured, wire, base, at, stop))
            at = stop
        health.packets += count
        count = 0
        data = data[at:]
        if source.has_pauses:
            yield PAUSE
    if data and not source.problem:
        source.problem = cut_off(len(data))


def not_a_packet(captured: int) -> str:
    """Describe the problem of a file with a record that is larger than any packet."""
    return f"a packet of {captured} bytes cannot be"


def cut_off(rest: int) -> str:
    """Describe the problem of a file that has `rest` bytes after its last whole packet."""
    return f"the file ends inside a packet, {rest} bytes after the last one"
