"""Collects values to suggest when filters match nothing: names of APIs, and what filters test.

Owns how many of them are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.filters.frame_filter import FilterOptions, is_wanted, is_wanted_api
from kraftwire.decode.filters.line_filter import key_texts
from kraftwire.records.reader import Batch

__all__ = ["FilterHints"]

_NAMES_MAX = 1000
_SHOWN_MAX = 8
# So many records of a run are looked at for their keys.
_KEYS_MAX = 10_000
_KEY_SHOWN_MAX = 40
_NS_PER_MS = 1_000_000


class FilterHints:
    """Collects the values of frames and lines that the filters test."""

    def __init__(self, options: FilterOptions) -> None:
        self._options = options
        self._counts: dict[str, Counter[str]] = {}
        self._spans: dict[str, tuple[int, int]] = {}
        self._looked = 0

    def add_frame(self, frame: DecodedFrame) -> None:
        """Collect the values of a frame."""
        options = self._options
        api = frame.api_name or f"API {frame.frame.api_key}"
        self._add("APIs", [api])
        if options.api_version and is_wanted_api(frame.frame.api_key, options.api):
            self._add("versions", [f"{api} v{frame.frame.api_version}"])
        if options.client_id:
            self._add("client ids", [frame.client_id or '""'])
        if options.connection:
            self._add("connections", [frame.frame.connection])
        if options.topic:
            self._add("topics", [each.name for each in frame.topics if each.name])
        if options.partition:
            for topic in frame.topics:
                self._add_partitions(topic.name, topic.partitions)
        if options.group:
            self._add("groups", frame.groups)
        if options.error:
            self._add("errors", frame.error_names)
        if options.since is not None or options.until is not None:
            self._extend("times", frame.frame.time_ns // _NS_PER_MS)
        if options.min_latency_ms is not None and frame.frame.latency_ms is not None:
            self._extend("latencies", round(frame.frame.latency_ms * 1000))

    def add_partition(self, topic: str, index: int) -> None:
        """Collect the partition of a file that was not read, as the partition is not wanted."""
        if self._options.topic:
            self._add("topics", [topic])
        if self._options.partition:
            self._add_partitions(topic, [index])

    def add_line(self, line: FileLine) -> None:
        """Collect the values of a line of a file."""
        batch = line.batch
        if batch is None:
            return
        if self._options.offset and batch.magic == 2:
            self._extend("offsets", batch.base_offset)
            self._extend("offsets", batch.last_offset)
        if self._options.since is not None or self._options.until is not None:
            self._extend("times", batch.max_timestamp)
        if self._options.key and not batch.is_control and not line.hides_records:
            self._add_keys(batch)

    def merge(self, other: FilterHints) -> None:
        """Add what another object has collected after this one."""
        for kind, counts in other._counts.items():
            mine = self._counts.setdefault(kind, Counter())
            for name, count in counts.items():
                if name in mine or len(mine) < _NAMES_MAX:
                    mine[name] += count
        for kind, (first, last) in other._spans.items():
            self._extend(kind, first)
            self._extend(kind, last)

    def texts(self) -> Iterator[str]:
        """Describe the values, one kind after the other."""
        for kind, counts in self._counts.items():
            names = [f"{name} ({count:,})" for name, count in counts.most_common(_SHOWN_MAX)]
            more = f"{len(counts) - len(names):,} more" if len(counts) > len(names) else ""
            more = f"at least {more}" if more and len(counts) == _NAMES_MAX else more
            if names:
                yield f"{kind}: {', '.join(names)}{f' and {more}' if more else ''}"
        for kind, (first, last) in self._spans.items():
            yield f"{kind}: {_end(kind, first)} to {_end(kind, last)}"

    def _add_partitions(self, topic: str | None, partitions: Iterable[int]) -> None:
        """Collect partitions of a topic, if the topic is wanted."""
        if topic and is_wanted([topic], self._options.topic):
            self._add("partitions", [f"{topic}-{each}" for each in partitions])

    def _add_keys(self, batch: Batch) -> None:
        """Collect the keys of the first records of a run."""
        for record in batch.iter_salvage():
            if self._looked >= _KEYS_MAX:
                return
            self._looked += 1
            self._add("keys", [_key(record.key)])

    def _add(self, kind: str, names: Iterable[str]) -> None:
        counts = self._counts.setdefault(kind, Counter())
        for name in names:
            if name in counts or len(counts) < _NAMES_MAX:
                counts[name] += 1

    def _extend(self, kind: str, value: int) -> None:
        if value >= 0:
            first, last = self._spans.get(kind, (value, value))
            self._spans[kind] = min(first, value), max(last, value)


def _end(kind: str, value: int) -> str:
    """Return one end of a span as text."""
    if kind == "times":
        from kraftwire.decode.text import utc_text

        return utc_text(value)
    return f"{value / 1000:,.3f} ms" if kind == "latencies" else str(value)


def _key(key: bytes | memoryview | None) -> str:
    """Return a record's key as `--key` takes it, a long one cut short."""
    if key is None:
        return "(no key)"
    (text,) = key_texts(key)
    return text if len(text) <= _KEY_SHOWN_MAX else f"{text[:_KEY_SHOWN_MAX]}..."
