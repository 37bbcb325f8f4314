"""Which reader gets which connections, by samples of the capture.

A capture of the classic format is sampled all over the file, where records can be recognised by
what their headers say of the next ones; others at their start.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from kraftwire.decode.capture.links import SegmentReader
from kraftwire.decode.capture.pcap import (
    FILE_HEADER_SIZE,
    LITTLE_ENDIAN,
    RECORD_HEADER_SIZE,
    read_packets,
)
from kraftwire.decode.capture.source import CaptureSource
from kraftwire.decode.framing.health import Health
from kraftwire.decode.pairing.connection import reverse_key
from kraftwire.limits import PACKET_BYTES_MAX

__all__ = ["owners", "samples_of"]

# Some hundredths of a second.
_SAMPLES = 12
_PACKETS_SEEN = 200
_SAMPLE_BYTES = 192 * 1024

_RECORD = struct.Struct("<IIII").unpack_from
# So many plausible headers in a row are no accident.
_CHAIN = 8
_APART_MAX_S = 86_400


def owners(samples: Sequence[bytes], count: int) -> dict[bytes, int]:
    """Return the number of the reader of each connection, by its key in both directions.

    Each reader gets about as many packets with data. Raises: StorageError.
    """
    packets = _packets_by_key(samples)
    found: dict[bytes, int] = {}
    taken = [0] * count
    for key, number in sorted(packets.items(), key=lambda each: (-each[1], each[0])):
        reader = taken.index(min(taken))
        taken[reader] += number
        found[key] = found[reverse_key(key)] = reader
    return found


def _packets_by_key(samples: Sequence[bytes]) -> Counter[bytes]:
    """Count the packets with data of each connection, under the key of one direction."""
    health = Health()
    read = SegmentReader(health).read
    found: Counter[bytes] = Counter()
    for sample in samples:
        for packet in islice(read_packets(CaptureSource([sample]), health), _PACKETS_SEEN):
            segment = read(packet)
            if segment is not None and segment[7] > segment[6]:
                found[min(segment[1], reverse_key(segment[1]))] += 1
    return found


def samples_of(path: str) -> Iterator[bytes]:
    """Yield pieces of a capture, each with the file's header before it. Raises: OSError."""
    with open(path, "rb") as file:
        start = file.read(_SAMPLE_BYTES)
        yield start
        if start[:4] not in LITTLE_ENDIAN:
            return
        head, size = start[:FILE_HEADER_SIZE], os.fstat(file.fileno()).st_size
        for number in range(1, _SAMPLES):
            file.seek(number * size // _SAMPLES)
            data = file.read(_SAMPLE_BYTES)
            if (at := _first_record(data)) is not None:
                yield head + data[at:]


def _first_record(data: bytes) -> int | None:
    """Return where the first record begins; None if there is none that can be recognised."""
    for at in range(min(len(data), PACKET_BYTES_MAX)):
        if _is_chain(data, at):
            return at
    return None


def _is_chain(data: bytes, at: int) -> bool:
    """Whether records of about the same time follow each other from a place on."""
    first = None
    for _ in range(_CHAIN):
        if at + RECORD_HEADER_SIZE > len(data):
            return False
        seconds, _, captured, wire = _RECORD(data, at)
        if not 0 < captured <= wire <= PACKET_BYTES_MAX:
            return False
        first = seconds if first is None else first
        if abs(seconds - first) > _APART_MAX_S:
            return False
        at += RECORD_HEADER_SIZE + captured
    return True
