"""The settings of a log. Source: Kafka's `MetadataLogConfig` and `LogConfig`; its defaults."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LogSettings", "SnapshotSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """When segments end, and how dense their indexes are.

    Units: bytes and milliseconds. `index_bytes` is `segment.index.bytes`, the size that the
    indexes of the active segment are given in advance.
    """

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3600 * 1000
    index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """When snapshots are written, and what of them and of the log is kept (R-SNAP-6, R-SNAP-7).

    A snapshot is due once so many bytes were applied since the last one, or after the interval if
    anything was; 0 switches the interval off. A negative retention switches that rule off. What is
    given up is deleted after the delay. What may go is looked for once in `clean_interval_ms`.
    Units: bytes and milliseconds.
    """

    between_bytes: int = 20 * 1024 * 1024
    interval_ms: int = 3_600_000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 24 * 3600 * 1000
    delete_delay_ms: int = 60_000
    clean_interval_ms: int = 60_000
