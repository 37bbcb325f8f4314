"""The settings of a log. Source: Kafka's `MetadataLogConfig` and `LogConfig`; its defaults."""

from __future__ import annotations

from dataclasses import dataclass

# Kafka's quorum writes no larger batch than 8 MiB; the search for good batches after damage
# looks at parts of a segment that overlap by as much.
METADATA_BATCH_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The size and age of segments, and the density of their indexes.

    Units: bytes and milliseconds. `index_bytes` is `segment.index.bytes`, the size to which the
    indexes of the active segment are preallocated.
    """

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3600 * 1000
    index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """The schedule of snapshots, and the retention of snapshots and log (R-SNAP-6, R-SNAP-7).

    A snapshot is due once this many bytes were applied since the last one, or after the interval if
    any were; 0 disables the interval. A negative retention disables that rule. Files are deleted
    after the delay. Cleaning runs every `clean_interval_ms`. Units: bytes and milliseconds.
    """

    between_bytes: int = 20 * 1024 * 1024
    interval_ms: int = 3_600_000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 24 * 3600 * 1000
    delete_delay_ms: int = 60_000
    clean_interval_ms: int = 60_000
