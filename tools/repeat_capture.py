"""Repeats a capture as the traffic of other clients and servers, at overlapping times.

Run as ``python -m tools.repeat_capture``. Every copy has its own addresses and client ports, so its
connections are separate ones; checksums are those of the changed packets. Reads IPv4 over
Ethernet and writes the classic pcap format.
"""

from __future__ import annotations

import argparse
import heapq
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.errors import KraftwireError, UsageError
from tools.merge_captures import pcap_record, pcap_start

_ETHERNET_SIZE, _IP_SIZE, _TCP_SIZE = 14, 20, 20
# Ethernet type, and the first byte of an IPv4 header without options.
_IPV4 = b"\x08\x00\x45"
_PROTOCOL_TCP = 6
_SYN, _ACK = 0x02, 0x10

_IP_CHECKSUM = struct.Struct(">H")
_ENDS = struct.Struct(">HHHHHH")  # both addresses as words, both ports
_ADDRESSES_AT = _ETHERNET_SIZE + 12
_IP_CHECKSUM_AT = _ETHERNET_SIZE + 10
_TCP_AT = _ETHERNET_SIZE + _IP_SIZE
_TCP_CHECKSUM_AT = _TCP_AT + 16
_FLAGS_AT = _TCP_AT + 13

_EPHEMERAL_PORTS = range(32768, 61000)
_PORT_STEP = 101


@dataclass(frozen=True, slots=True)
class _Segment:
    """A packet of the recording. `ends` are its addresses and ports as 16-bit words."""

    time_ns: int
    data: bytes
    ends: tuple[int, ...]


def repeat(capture: Path, out: Path, size: int, *, overlap: int = 4) -> int:
    """Write copies of a capture until there are `size` bytes; returns how many copies.

    `overlap` copies are under way at any time. Raises: UsageError without packets of TCP over IPv4,
    StorageError for a file that cannot be read.
    """
    segments = list(_segments(capture))
    if not segments:
        raise UsageError(f"{capture} has no packets of TCP over IPv4")
    servers = {each.ends[5] for each in segments if each.data[_FLAGS_AT] & (_SYN | _ACK) == _SYN}
    one = sum(len(pcap_record(0, each.data)) for each in segments)
    count = -(-(size - len(pcap_start())) // one)
    step_ns = (segments[-1].time_ns - segments[0].time_ns) // overlap + 1
    copies = (_copy(segments, servers, number, number * step_ns) for number in range(count))
    with out.open("wb") as file:
        file.write(pcap_start())
        # Packets of equal times keep the order of the recording: times alone are compared.
        for time_ns, data in heapq.merge(*copies, key=lambda each: each[0]):
            file.write(pcap_record(time_ns, data))
    return count


def _segments(capture: Path) -> Iterator[_Segment]:
    with CaptureSource(str(capture)) as source:
        for time_ns, _, buffer, start, captured, *_ in read_packets(source, Health()):
            data = bytes(buffer[start : start + captured])
            is_ipv4 = data[_ETHERNET_SIZE - 2 : _ETHERNET_SIZE + 1] == _IPV4
            if is_ipv4 and data[_ETHERNET_SIZE + 9] == _PROTOCOL_TCP:
                yield _Segment(time_ns, data, _ENDS.unpack_from(data, _ADDRESSES_AT))


def _copy(
    segments: Sequence[_Segment], servers: set[int], number: int, later_ns: int
) -> Iterator[tuple[int, bytes]]:
    """Yield time and bytes of a copy's packets; copy 0 is the recording."""
    for each in segments:
        data = bytearray(each.data)
        *addresses, source, target = each.ends
        # The third byte of an address, then the second: private networks stay private.
        changed = [
            (word + number * 256) & 0xFFFF if at % 2 else (word + number // 256) & 0xFFFF
            for at, word in enumerate(addresses)
        ]
        changed += [_port(port, servers, number) for port in (source, target)]
        _ENDS.pack_into(data, _ADDRESSES_AT, *changed)
        _adjust(data, _IP_CHECKSUM_AT, each.ends[:4], changed[:4])
        _adjust(data, _TCP_CHECKSUM_AT, each.ends, changed)
        yield each.time_ns + later_ns, bytes(data)


def _port(port: int, servers: set[int], number: int) -> int:
    """Return the port of a copy: servers keep theirs."""
    if port in servers or not number:
        return port
    place = (port + number * _PORT_STEP) % len(_EPHEMERAL_PORTS)
    return _EPHEMERAL_PORTS[place]


def _adjust(data: bytearray, at: int, old: Sequence[int], new: Sequence[int]) -> None:
    """Correct a checksum for words that have changed (RFC 1624); 0 is none and stays."""
    (checksum,) = _IP_CHECKSUM.unpack_from(data, at)
    if checksum:
        _IP_CHECKSUM.pack_into(data, at, (checksum + sum(old) - sum(new)) % 0xFFFF)


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeat a file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.repeat_capture", description=__doc__)
    parser.add_argument("capture", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=float, default=100, help="at least (default: 100)")
    found = parser.parse_args(arguments)
    try:
        count = repeat(found.capture, found.out, int(found.megabytes * 1e6))
    except (KraftwireError, OSError) as error:
        print(f"repeat_capture: {error}", file=sys.stderr)
        return 1
    print(f"{found.out}: {count} copies")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
