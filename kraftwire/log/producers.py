"""Producer snapshots: what Kafka keeps of idempotent producers, of which a quorum has none.

Shape of the empty file, 10 bytes: int16 version, uint32 CRC-32C of what follows, int32 count.
Source: Kafka's `ProducerStateManager`.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

__all__ = ["EMPTY_PRODUCER_SNAPSHOT"]

_COUNT = struct.pack(">i", 0)
_VERSION = 1
EMPTY_PRODUCER_SNAPSHOT = struct.pack(">hI", _VERSION, crc32c(_COUNT)) + _COUNT
