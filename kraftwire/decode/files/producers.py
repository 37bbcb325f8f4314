"""Producer snapshots: what a broker knows of the idempotent producers of a partition.

Source: Kafka's `ProducerStateManager`: a version, then the message ProducerSnapshot, whose CRC
covers what follows it.
"""

from __future__ import annotations

import struct
from typing import Any

from crc32c import crc32c

from kraftwire.decode.files.state import StateFile
from kraftwire.errors import WireError
from kraftwire.messages.producer_snapshot import ProducerSnapshot
from kraftwire.wire.size_estimate import decode_bounded

__all__ = ["parse_producer_snapshot"]

_VERSION = struct.Struct(">h")
_CRC_END = 6


def parse_producer_snapshot(content: bytes) -> StateFile:
    """Read a producer snapshot: its version and the message in the form of Kafka's converters.

    Raises: WireError if it is cut or of an unknown version.
    """
    if len(content) < _VERSION.size:
        raise WireError(
            "the file ends inside the version",
            offset=0,
            expected=f"{_VERSION.size} bytes",
            found=str(len(content)),
        )
    (version,) = _VERSION.unpack_from(content)
    if version not in ProducerSnapshot.VERSIONS:
        raise WireError(
            "a producer snapshot of an unknown version",
            offset=0,
            expected=f"version {ProducerSnapshot.VERSIONS}",
            found=str(version),
        )
    snapshot, end = decode_bounded(ProducerSnapshot, content, version, _VERSION.size)
    data: dict[str, Any] = {"version": version, **snapshot.to_json(version)}
    state = StateFile(data)
    crc = crc32c(content[_CRC_END:])
    if crc != snapshot.crc:
        state.note(
            "snapshot-crc",
            _VERSION.size,
            f"the CRC is {crc}, the producer snapshot says {snapshot.crc}",
        )
    if end < len(content):
        state.note("trailing-bytes", end, f"{len(content) - end} bytes after the last entry")
    return state
