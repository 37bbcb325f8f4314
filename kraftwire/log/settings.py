"""The settings of a log. Source: Kafka's `MetadataLogConfig` and `LogConfig`; its defaults."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LogSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """When segments end, and how dense their indexes are.

    Units: bytes and milliseconds. Shape: `index_bytes` is `segment.index.bytes`, the size that the
    indexes of the active segment are given in advance.
    """

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3600 * 1000
    index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
