"""Limits of batches and their records, each with its reason."""

from __future__ import annotations

from kraftwire.errors import WireError

# One batch may not expand beyond this when decompressed. Kafka has no such limit; a batch is at
# most message.max.bytes (1 MiB by default) on the wire, and honest data shrinks far less than
# this allows.
RECORDS_SIZE_MAX = 256 * 1024 * 1024

# Below that, a batch may expand to RECORDS_SIZE_FREE and RECORDS_RATIO_MAX bytes more for each of
# its own: a producer's batch and a snapshot's hold at most a few MiB, however tightly they are
# packed, and longer ones shrink less. A tool that holds one such batch stays below 64 MiB and
# eight times its input.
RECORDS_SIZE_FREE = 12 * 1024 * 1024
RECORDS_RATIO_MAX = 8

# The content of a metadata log is kept, in objects of up to twenty times its bytes. So
# all of them together may have LOG_RECORDS_FREE bytes and LOG_RECORDS_RATIO_MAX more for each of
# the log's. Kafka compresses neither this log nor its snapshots.
LOG_RECORDS_FREE = 2 * 1024 * 1024
LOG_RECORDS_RATIO_MAX = 2

# A compressed batch may hold RECORDS_COUNT_FREE records and RECORDS_COUNT_RATIO_MAX more for each
# of its bytes. Records of a real batch differ at least in their offsets, which no codec packs into
# less than a byte or two; seven bytes repeated by the million are a bomb.
RECORDS_COUNT_FREE = 64 * 1024
RECORDS_COUNT_RATIO_MAX = 2

# Tools show a record of a compressed batch if it has at most this many bytes more than its batch:
# each of its bytes takes ten in JSON and as text. Few producers send longer ones.
RECORD_SHOWN_FREE = 1024 * 1024

# Reasons to keep why records of one batch cannot be decoded; the rest are only counted.
RECORD_PROBLEMS_MAX = 1000

# A record may have HEADERS_COUNT_FREE headers and one more for each HEADER_BYTES_MIN bytes that its
# batch takes on the wire. Kafka has no such limit, but uses have some dozens; a header of two bytes
# takes a hundred as an object.
HEADERS_COUNT_FREE = 32 * 1024
HEADER_BYTES_MIN = 256

# Iterating over a batch turns this many records at a time into objects, or records of this many
# bytes, so that the memory of a batch with millions of tiny ones stays near that of its bytes.
RECORDS_CHUNK_COUNT = 4096
RECORDS_CHUNK_BYTES = 128 * 1024


class BombError(WireError):
    """A batch, or a record in it, would expand far beyond its bytes."""


class LogBudget:
    """What the records of the batches of one metadata log may still take, decompressed."""

    def __init__(self) -> None:
        self._left = LOG_RECORDS_FREE

    def take(self, size: int, records_size: int) -> bool:
        """Take the next batch, of so many bytes with so many of records; returns whether it may be
        kept."""
        left = self._left + LOG_RECORDS_RATIO_MAX * size - records_size
        if left >= 0:
            self._left = left
        return left >= 0


def count_limit(compressed_size: int) -> int:
    """Return how many records `compressed_size` bytes may hold."""
    return RECORDS_COUNT_FREE + RECORDS_COUNT_RATIO_MAX * compressed_size


def headers_limit(size: int) -> int:
    """Return how many headers a record may have in a batch of this size (compressed if it is)."""
    return HEADERS_COUNT_FREE + size // HEADER_BYTES_MIN
