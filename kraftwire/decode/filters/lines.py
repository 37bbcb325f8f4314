"""The filter of lines of files: batches with their records, and entries of indexes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from kraftwire.decode.files.kinds import partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.filters.values import Clock, as_ranges, is_in, is_wanted, moment
from kraftwire.decode.options import FilterOptions
from kraftwire.errors import UsageError, WireError
from kraftwire.records.json_form import decode_record
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record

_NS_PER_MS = 1_000_000

# Where the keys of a coordinator's records have the id of a group.
_GROUP_FIELDS = ("group", "group_id")


class LineFilter:
    """Decides about the lines of files; without options every line passes."""

    def __init__(self, options: FilterOptions) -> None:
        """Prepare the tests. Raises: UsageError for a value that makes no sense."""
        self._options = options
        self._offsets = as_ranges(options.offset)
        self._partitions = as_ranges(options.partition)
        self._clock = Clock()
        self._first = moment(options.since, self._clock) if options.since is not None else None
        self._last = moment(options.until, self._clock) if options.until is not None else None
        self._of_record = list(self._record_tests())

    @property
    def passes_all(self) -> bool:
        """Whether there is nothing to test."""
        return not (self._options.topic or self._partitions or self._of_record)

    def ensure_for_files(self, file: object) -> None:
        """Refuse filters that no file can answer.

        Raises: UsageError if there is a filter that looks at requests and responses.
        """
        options = self._options
        given = {
            "--api": options.api,
            "--api-version": options.api_version,
            "--client-id": options.client_id,
            "--connection": options.connection,
            "--error": options.error,
            "--min-latency": options.min_latency_ms is not None,
        }
        names = [name for name, is_given in given.items() if is_given]
        if names:
            raise UsageError(f"{', '.join(names)}: {file} is not a capture and holds no requests")

    def ensure_for_captures(self, file: object) -> None:
        """Refuse filters that no frame can answer. Raises: UsageError for a filter of records."""
        given = {"--offset": self._options.offset, "--key": self._options.key}
        names = [name for name, values in given.items() if values]
        if names:
            raise UsageError(f"{', '.join(names)}: {file} is not a log file")

    @property
    def _since(self) -> int | None:
        """The first millisecond that is wanted."""
        return None if self._first is None else self._first() // _NS_PER_MS

    @property
    def _until(self) -> int | None:
        """The last millisecond that is wanted."""
        return None if self._last is None else -(-self._last() // _NS_PER_MS)

    def passes_file(self, path: Path) -> bool:
        """Whether a file may have lines that pass: whether its folder is of a wanted partition."""
        wanted = self._options.topic
        if not wanted and not self._partitions:
            return True
        partition = partition_of(path)
        if partition is None:
            return False
        if wanted and not is_wanted([partition.topic], wanted):
            return False
        return not self._partitions or is_in(partition.index, self._partitions)

    def apply(self, line: FileLine) -> FileLine | None:
        """The line with those of its records that pass; None if there are none."""
        if not self._of_record:
            return line
        if line.batch is None:
            return line if self._passes_entry(line.json) else None
        self._begin(line.batch)
        if not self._may_hold(line.batch):
            return None
        kept = {
            record.offset
            for record in line.batch.iter_salvage()
            if all(test(record, line) for test in self._of_record)
        }
        if not kept:
            return None
        records = line.json.get("records")
        if records is None:
            return line
        shown = [record for record in records if record["offset"] in kept]
        return replace(line, json={**line.json, "records": shown})

    def _begin(self, batch: Batch) -> None:
        """Count relative times from the first batch of the run."""
        at = batch.base_timestamp if batch.magic >= 2 else batch.max_timestamp
        if at >= 0:
            self._clock.begin(at * _NS_PER_MS)

    def _passes_entry(self, json: dict[str, Any]) -> bool:
        """Whether an entry of an index passes; what has neither offset nor time does not."""
        if self._options.key or self._options.group:
            return False
        if self._offsets and not is_in(json.get("offset", -1), self._offsets):
            return False
        if self._first is None and self._last is None:
            return True
        return "timestamp" in json and self._is_in_time(json["timestamp"])

    def _may_hold(self, batch: Batch) -> bool:
        """Whether the header of a batch leaves room for records that pass; saves decompressing."""
        since = self._since
        if since is not None and 0 <= batch.max_timestamp < since:
            return False
        if batch.magic < 2 or not self._offsets:
            return True
        first, last = batch.base_offset, batch.last_offset
        return any(low <= last and first <= high for low, high in self._offsets)

    def _record_tests(self) -> Any:
        options = self._options
        if self._offsets:
            yield lambda record, _line: is_in(record.offset, self._offsets)
        if self._first is not None or self._last is not None:
            yield lambda record, _line: self._is_in_time(record.timestamp)
        if options.key:
            yield lambda record, _line: is_wanted(_key_texts(record.key), options.key)
        if options.group:
            yield lambda record, line: is_wanted(_groups(record, line), options.group)

    def _is_in_time(self, timestamp: int) -> bool:
        since, until = self._since, self._until
        return (since is None or timestamp >= since) and (until is None or timestamp <= until)


def _key_texts(key: bytes | memoryview | None) -> list[str]:
    """A key as texts that match it; bytes that are not UTF-8 stand as ``\\xNN``."""
    return [] if key is None else [bytes(key).decode("utf-8", errors="backslashreplace")]


def _groups(record: Record, line: FileLine) -> list[str]:
    """The group that a coordinator's record is about."""
    if line.family is None or line.batch is None:
        return []
    try:
        found = decode_record(record, line.family, is_control=line.batch.is_control)
    except WireError:
        return []
    key = found.key if isinstance(found, Decoded) else None
    ids = [getattr(key, name, None) for name in _GROUP_FIELDS]
    return [id for id in ids if isinstance(id, str)]
