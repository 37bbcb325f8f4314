"""The values in inputs of which nothing passes the filters, for a message that lists them.

Owns the names that are kept, in bounded number, of what the filters ask for and of APIs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.run.filters import FilterOptions

__all__ = ["Offered"]

_NAMES_MAX = 1000
_SHOWN_MAX = 8


class Offered:
    """Collects the values of frames and lines that the filters test."""

    def __init__(self, options: FilterOptions) -> None:
        self._options = options
        self._counts: dict[str, Counter[str]] = {}
        self._spans: dict[str, tuple[int, int]] = {}

    def see_frame(self, frame: DecodedFrame) -> None:
        """Collect the values of a frame."""
        options = self._options
        self._add("APIs", [frame.api_name or f"API {frame.frame.api_key}"])
        if options.client_id:
            self._add("client ids", [frame.client_id or '""'])
        if options.connection:
            self._add("connections", [frame.frame.connection])
        if options.topic or options.partition:
            self._add("topics", [each.name for each in frame.topics if each.name])
        if options.group:
            self._add("groups", frame.groups)
        if options.error:
            self._add("errors", frame.error_names)
        if options.since is not None or options.until is not None:
            self._stretch("times", frame.frame.time_ns // 1_000_000)

    def see_partition(self, topic: str) -> None:
        """Collect the topic of a partition's file that was not read, as the topic is not wanted."""
        self._add("topics", [topic])

    def see_line(self, line: FileLine) -> None:
        """Collect the values of a line of a file."""
        batch = line.batch
        if batch is None:
            return
        if self._options.offset and batch.magic == 2:
            self._stretch("offsets", batch.base_offset)
            self._stretch("offsets", batch.last_offset)
        if self._options.since is not None or self._options.until is not None:
            self._stretch("times", batch.max_timestamp)

    def merge(self, other: Offered) -> None:
        """Add what another object has collected after this one."""
        for kind, counts in other._counts.items():
            mine = self._counts.setdefault(kind, Counter())
            for name, count in counts.items():
                if name in mine or len(mine) < _NAMES_MAX:
                    mine[name] += count
        for kind, (first, last) in other._spans.items():
            self._stretch(kind, first)
            self._stretch(kind, last)

    def texts(self) -> Iterator[str]:
        """Describe the values, one kind after the other."""
        from kraftwire.decode.render.text import utc_text

        for kind, counts in self._counts.items():
            names = [f"{name} ({count:,})" for name, count in counts.most_common(_SHOWN_MAX)]
            more = len(counts) - len(names)
            yield f"{kind}: {', '.join(names)}{f' and {more:,} more' if more else ''}"
        for kind, (first, last) in self._spans.items():
            ends = (utc_text(first), utc_text(last)) if kind == "times" else (first, last)
            yield f"{kind}: {ends[0]} to {ends[1]}"

    def _add(self, kind: str, names: Iterable[str]) -> None:
        counts = self._counts.setdefault(kind, Counter())
        for name in names:
            if name in counts or len(counts) < _NAMES_MAX:
                counts[name] += 1

    def _stretch(self, kind: str, value: int) -> None:
        if value >= 0:
            first, last = self._spans.get(kind, (value, value))
            self._spans[kind] = min(first, value), max(last, value)
