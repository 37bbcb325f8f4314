"""Merges the captures of several nodes into one.

Run as ``python -m tools.merge_captures``. Owns the order by time, and that a connection between two
nodes, which both of them recorded, appears once: from the node that accepted it. Writes the classic
pcap format.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import Packet
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.errors import KraftwireError

# Ports follow an Ethernet header and an IPv4 or IPv6 header without options, as nodes write them.
_PORTS = struct.Struct(">HH")
_ETHERNET_SIZE = 14
_IP_SIZES = {b"\x08\x00": 20, b"\x86\xdd": 40}

_NANOSECOND_PCAP = 0xA1B23C4D
_SECOND_NS = 1_000_000_000
_SNAPLEN = 262144
_RECORD = struct.Struct("<IIII")


def merge(captures: Sequence[Path], out: Path) -> int:
    """Write the connections that each node accepted, ordered by time; returns how many packets.

    A node accepts on a port if most of its connections, as seen from it, have it. The first packet
    of a connection goes to the port. Raises: StorageError for a file
    that cannot be read.
    """
    recorded = [_packets(path) for path in captures]
    seen = [list(_opened(packets)) for packets in recorded]
    owner: dict[int, int] = {}
    for place, opened in enumerate(seen):
        for port in opened:
            # Both ends record a connection; the one with more of them on a port listens there.
            best = owner.get(port)
            if best is None or opened.count(port) > seen[best].count(port):
                owner[port] = place
    whole = sorted(
        (packet[0], place, number, packet)
        for place, packets in enumerate(recorded)
        for number, packet in enumerate(packets)
        if any(owner.get(port) == place for port in _ports(packet))
    )
    with out.open("wb") as file:
        file.write(pcap_start())
        for *_, (time_ns, _, buffer, start, size, original, *_) in whole:
            file.write(pcap_record(time_ns, bytes(buffer[start : start + size]), original))
    return len(whole)


def _packets(path: Path) -> list[Packet]:
    with CaptureSource(str(path)) as source:
        return list(read_packets(source, Health()))


def _ports(packet: Packet) -> tuple[int, int]:
    """Return the ports of sender and receiver; zeros if the packet is not TCP over IP."""
    _, _, buffer, start, size, *_ = packet
    ip_size = _IP_SIZES.get(bytes(buffer[start + 12 : start + _ETHERNET_SIZE]), 0)
    at = start + _ETHERNET_SIZE + ip_size
    if not ip_size or at + _PORTS.size > start + size:
        return 0, 0
    source, target = _PORTS.unpack_from(buffer, at)
    return source, target


def _opened(packets: Sequence[Packet]) -> Iterator[int]:
    """Return the port to which each connection was opened."""
    known: set[frozenset[int]] = set()
    for packet in packets:
        ports = _ports(packet)
        if frozenset(ports) not in known:
            known.add(frozenset(ports))
            yield ports[1]


def pcap_start() -> bytes:
    """Return the header of a pcap file of Ethernet with times in nanoseconds."""
    return struct.pack("<IHHiIII", _NANOSECOND_PCAP, 2, 4, 0, 0, _SNAPLEN, 1)


def pcap_record(time_ns: int, data: bytes, original: int | None = None) -> bytes:
    """Return a packet with its header; `original` is its size before it was cut."""
    size = len(data)
    return _RECORD.pack(*divmod(time_ns, _SECOND_NS), size, original or size) + data


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge files; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.merge_captures", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("captures", type=Path, nargs="+")
    found = parser.parse_args(arguments)
    try:
        count = merge(found.captures, found.out)
    except (KraftwireError, OSError) as error:
        print(f"merge_captures: {error}", file=sys.stderr)
        return 1
    print(f"{found.out}: {count} packets")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
