"""The options that say which frames, batches, records and entries a run shows.

A filter of frames tests what is in them and their times. For a file, topic and partition are those
of its folder, offsets and times those of its records, keys and groups those in them; filters of
what only frames have are refused.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """The values of the filter options, as texts of the command line.

    Each tuple holds values of one option, of which any may match; a value with ``!`` or
    ``^`` in front excludes. Names may have the wildcards ``*`` and ``?``; numbers may be ranges
    such as ``3-5`` and ``12+``. `offset` and `key` are those of records in log files.
    Units: `min_latency_ms` milliseconds; `since` and `until` as `values.parse_time` takes
    them, or with a plus in seconds since the first frame.
    """

    api: tuple[str, ...] = ()
    api_version: tuple[str, ...] = ()
    client_id: tuple[str, ...] = ()
    connection: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    min_latency_ms: float | None = None
    since: str | None = None
    until: str | None = None
    offset: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
