"""Which frames of captures, and which batches, records and entries of log files a run shows.

A filter of frames tests what is in them and their times. For a file, topic and partition are those
of its folder, offsets and times those of its records, keys and groups those in them; filters of
what only frames have are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Any

from kraftwire import messages
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.files.kinds import partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.errors import UsageError, WireError
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.records.json_form import decode_record
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record

_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_NS_PER_SECOND = 1_000_000_000
_NS_PER_MS = 1_000_000
_NEGATIONS = ("!", "^")
_RANGE = re.compile(r"(?P<low>\d+)(?:(?P<open>\+)|(?:-|\.\.)(?P<high>\d+))?")
_BRACKETS = re.compile(r"\[[^]]*\]")
_PORT = re.compile(r"[\d?*]+")
_PORT_MAX = 0xFFFF
_NUMBER_MAX = 2**63 - 1

Test = Callable[[DecodedFrame], bool]
_RecordTest = Callable[[Record, FileLine], bool]

# Where the keys of a coordinator's records have the id of a group.
_GROUP_FIELDS = ("group", "group_id")


@dataclass(slots=True)
class Clock:
    """When a run begins: the time of its first frame or batch, None before that.

    Units: nanoseconds since the epoch.
    """

    start_ns: int | None = None

    def begin(self, time_ns: int) -> None:
        """Note a time; the first one counts."""
        if self.start_ns is None:
            self.start_ns = time_ns


def moment(text: str, clock: Clock) -> Callable[[], int]:
    """A time, which with a plus counts from the start of the run.

    Raises: UsageError for anything else.
    """
    if not text.startswith("+"):
        fixed = parse_time(text)
        return lambda: fixed
    if not _SECONDS.fullmatch(text[1:]):
        raise UsageError(f"{text!r} is not a time: after + there are seconds since the first frame")
    after = parse_time(text[1:])
    return lambda: (clock.start_ns or 0) + after


def ensure_order(since: str | None, until: str | None) -> None:
    """Refuse a period that ends before it begins, as far as that shows before the run.

    Raises: UsageError.
    """
    if since is None or until is None or since.startswith("+") != until.startswith("+"):
        return
    if moment(until, Clock(0))() < moment(since, Clock(0))():
        raise UsageError(f"nothing is both since {since} and until {until}")


def parse_time(text: str) -> int:
    """Nanoseconds since the epoch of a time: seconds since the epoch, or ISO 8601.

    A time without offset is UTC. Raises: UsageError for anything else.
    """
    if _SECONDS.fullmatch(text):
        seconds, _, fraction = text.partition(".")
        return int(seconds) * _NS_PER_SECOND + int(fraction[:9].ljust(9, "0"))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time. A time is ISO 8601 such as 2026-11-21T04:49:02 (UTC), "
            "seconds since the epoch such as 1795236542.5, or seconds since the first frame such "
            "as +12.5"
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    whole = found.replace(microsecond=0)
    return int(whole.timestamp()) * _NS_PER_SECOND + found.microsecond * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """The values of the filter options, as texts of the command line.

    Each tuple holds values of one option, of which any may match; a value with ``!`` or
    ``^`` in front excludes. Names may have the wildcards ``*`` and ``?``; numbers may be ranges
    such as ``3-5`` and ``12+``. `offset` and `key` are those of records in log files.
    Units: `min_latency_ms` milliseconds; `since` and `until` as `parse_time` takes them, or with a
    plus in seconds since the first frame.
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


class FrameFilter:
    """Decides for each frame; without options every frame passes."""

    def __init__(self, options: FilterOptions | None = None) -> None:
        """Prepare the tests. Raises: UsageError for a value that makes no sense."""
        options = options or FilterOptions()
        ensure_order(options.since, options.until)
        self._clock = Clock()
        self._on_frame = _frame_tests(options, self._clock)
        self._on_body = _body_tests(options)
        self._on_time = _time_tests(options, self._clock)
        self._exchange = _ExchangeTests(options, self._clock)

    @property
    def passes_all(self) -> bool:
        """Whether there is nothing to test."""
        return not self._on_frame and not self._on_body

    def begin(self, time_ns: int) -> None:
        """Learn the time of the run's first frame, from which relative times count."""
        self._clock.begin(time_ns)

    def passes(self, frame: DecodedFrame) -> bool:
        """Whether a frame is to be shown."""
        return all(test(frame) for test in self._on_frame) and all(
            test(frame) for test in self._on_body
        )

    def is_in_time(self, frame: DecodedFrame) -> bool:
        """Whether the time of a frame is wanted, if nothing else of it is."""
        return all(test(frame) for test in self._on_time)

    def passes_exchange(self, request: DecodedFrame, response: DecodedFrame) -> bool:
        """Whether a request and its response are to be shown together.

        What is wanted may be in either of them (the group in the request, the error in the
        response), what is excluded must be in neither.
        """
        return self._exchange.pass_on(request, response)


class _ExchangeTests:
    """Tests of both frames of an exchange together, made from the same options."""

    def __init__(self, options: FilterOptions, clock: Clock) -> None:
        wanted = _some_values(options, lambda value: not value.startswith(_NEGATIONS))
        unwanted = _some_values(options, lambda value: value.startswith(_NEGATIONS))
        # A partition cannot be excluded, so it is only ever wanted, of either frame.
        unwanted = replace(unwanted, partition=())
        self._in_either = _frame_tests(wanted, clock) + _body_tests(wanted)
        no_times = replace(unwanted, min_latency_ms=None, since=None, until=None)
        self._in_both = _frame_tests(no_times, clock) + _body_tests(replace(no_times, error=()))
        # Requests have no error that could be excluded.
        self._in_response = [_error_test(unwanted.error)] if unwanted.error else []

    def pass_on(self, request: DecodedFrame, response: DecodedFrame) -> bool:
        """Whether all tests let the exchange pass."""
        return (
            all(test(request) or test(response) for test in self._in_either)
            and all(test(request) and test(response) for test in self._in_both)
            and all(test(response) for test in self._in_response)
        )


def _some_values(options: FilterOptions, is_kept: Callable[[str], bool]) -> FilterOptions:
    """Return the options with only some of their values."""

    def kept(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(filter(is_kept, values))

    return replace(
        options,
        api=kept(options.api),
        api_version=kept(options.api_version),
        client_id=kept(options.client_id),
        connection=kept(options.connection),
        topic=kept(options.topic),
        group=kept(options.group),
        error=kept(options.error),
    )


def _frame_tests(options: FilterOptions, clock: Clock) -> list[Test]:
    """The tests that need no body."""
    tests: list[Test] = []
    if options.api:
        wanted, unwanted = _split(options.api)
        tests += _numbers(_keys(wanted), _keys(unwanted), lambda f: f.frame.api_key)
    if options.api_version:
        tests += _ranges(options.api_version, lambda f: f.frame.api_version)
    if options.client_id:
        tests += _globs(options.client_id, lambda f: [f.client_id or ""])
    if options.connection:
        for text in options.connection:
            _check_connection(text)
        tests += _globs(options.connection, _connection_names)
    if options.min_latency_ms is not None:
        least = options.min_latency_ms
        if not 0 <= least < inf:
            raise UsageError(f"{least} is not a number of milliseconds")
        tests.append(lambda f: f.frame.latency_ms is not None and f.frame.latency_ms >= least)
    return tests + _time_tests(options, clock)


def _time_tests(options: FilterOptions, clock: Clock) -> list[Test]:
    tests: list[Test] = []
    if options.since is not None:
        first = moment(options.since, clock)
        tests.append(lambda f: f.frame.time_ns >= first())
    if options.until is not None:
        last = moment(options.until, clock)
        tests.append(lambda f: f.frame.time_ns <= last())
    return tests


def _body_tests(options: FilterOptions) -> list[Test]:
    tests: list[Test] = []
    if options.group:
        tests += _globs(options.group, lambda f: f.groups)
    if options.topic or options.partition:
        tests += _topic_tests(options)
    if options.error:
        tests.append(_error_test(options.error))
    return tests


def _topic_tests(options: FilterOptions) -> list[Test]:
    """Topic and partition together: the partition has to be that topic's."""
    wanted, unwanted = _split(options.topic)
    low_high = [_range(each) for each in options.partition]

    def has_partition(partitions: Iterable[int]) -> bool:
        return any(low <= each <= high for each in partitions for low, high in low_high)

    def test(frame: DecodedFrame) -> bool:
        for topic in frame.topics:
            name = topic.name or ""
            if wanted and not _matches(name, wanted):
                continue
            if not low_high or has_partition(topic.partitions):
                return True
        return False

    tests: list[Test] = [test] if wanted or low_high else []
    if unwanted:
        tests.append(lambda f: not any(_matches(t.name or "", unwanted) for t in f.topics))
    return tests


def topic_test(options: FilterOptions) -> Callable[[str | None, int | None], bool]:
    """Return a test of a topic and a partition alone, for bodies that hold several.

    Without a partition, the topic as a whole is tested.
    Raises: UsageError for a value that makes no sense.
    """
    wanted, unwanted = _split(options.topic)
    low_high = [_range(each) for each in options.partition]

    def test(topic: str | None, partition: int | None) -> bool:
        name = topic or ""
        if (wanted and not _matches(name, wanted)) or _matches(name, unwanted):
            return False
        if partition is None or not low_high:
            return True
        return any(low <= partition <= high for low, high in low_high)

    return test


def _error_test(values: tuple[str, ...]) -> Test:
    """``any`` and ``none``, names (with wildcards) and numbers; errors are in responses only."""
    wanted, unwanted = _split(values)

    def matches(code: int, texts: list[str]) -> bool:
        name = error_name(code)
        return any(
            text.lower() == "any" or text == str(code) or fnmatchcase(name, text.upper())
            for text in texts
        )

    for text in (*wanted, *unwanted):
        if text.lower() not in ("any", "none") and not any(
            matches(code, [text]) for code in ErrorCode
        ):
            _number(text, "an error's name or number, any or none")

    def test(frame: DecodedFrame) -> bool:
        if frame.frame.is_request:
            return False
        codes = frame.error_codes
        if not codes:
            return not wanted or any(text.lower() == "none" for text in wanted)
        if any(matches(code, unwanted) for code in codes):
            return False
        return not wanted or any(matches(code, wanted) for code in codes)

    return test


def _connection_names(frame: DecodedFrame) -> list[str]:
    """A connection by its whole name, by either end, and by either end's host."""
    whole = frame.frame.connection
    client, _, server = whole.rpartition("-")
    hosts = [end.rpartition(":")[0] for end in (client, server)]
    ports = [":" + end.rpartition(":")[2] for end in (client, server)]
    return [whole, client, server, *hosts, *ports]


def _check_connection(text: str) -> None:
    """Refuse what no connection can match, before the run begins.

    Raises: UsageError.
    """
    # What stands in brackets is an IPv6 address or a set of characters.
    for end in _BRACKETS.sub("?", text.lstrip("".join(_NEGATIONS))).split("-"):
        host, colon, port = end.rpartition(":")
        if not colon:
            if end.isdecimal():
                raise UsageError(f"{text!r} is not a host; a port is written as :{end}")
        elif ":" in host:
            raise UsageError(f"{text!r} has too many colons; an IPv6 address stands in brackets")
        elif not _PORT.fullmatch(port) or (port.isdecimal() and int(port) > _PORT_MAX):
            raise UsageError(f"{text!r} has no port from 0 to {_PORT_MAX} after its colon")


def _globs(values: tuple[str, ...], names: Callable[[DecodedFrame], list[str]]) -> list[Test]:
    wanted, unwanted = _split(values)
    tests: list[Test] = []
    if wanted:
        tests.append(lambda f: any(_matches(name, wanted) for name in names(f)))
    if unwanted:
        tests.append(lambda f: not any(_matches(name, unwanted) for name in names(f)))
    return tests


def _matches(name: str, patterns: list[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _split(values: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the values that are wanted, and those that are excluded."""
    wanted: list[str] = []
    unwanted: list[str] = []
    for value in values:
        if value.startswith(_NEGATIONS):
            unwanted.append(value[1:])
        else:
            wanted.append(value)
    return wanted, unwanted


def _numbers(
    wanted: set[int], unwanted: set[int], number: Callable[[DecodedFrame], int | None]
) -> list[Test]:
    tests: list[Test] = []
    if wanted:
        tests.append(lambda f: number(f) in wanted)
    if unwanted:
        tests.append(lambda f: number(f) not in unwanted)
    return tests


def _ranges(
    values: tuple[str, ...], number: Callable[[DecodedFrame], int | None]
) -> list[Test]:
    wanted, unwanted = ([_range(each) for each in part] for part in _split(values))

    def is_in(frame: DecodedFrame, ranges: list[tuple[int, int]]) -> bool:
        found = number(frame)
        return found is not None and any(low <= found <= high for low, high in ranges)

    tests: list[Test] = []
    if wanted:
        tests.append(lambda f: is_in(f, wanted))
    if unwanted:
        tests.append(lambda f: not is_in(f, unwanted))
    return tests


def _range(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is neither a number nor a range such as 3-5 or 12+")
    low = int(match["low"])
    if match["open"]:
        return low, _NUMBER_MAX
    high = int(match["high"] or low)
    if high < low:
        raise UsageError(f"{text!r} ends before it begins")
    return low, high


def as_ranges(values: Iterable[str]) -> list[tuple[int, int]]:
    """Numbers and ranges of them, both ends included. Raises: UsageError for anything else."""
    return [_range(each) for each in values]


def is_wanted(names: Iterable[str], values: Iterable[str]) -> bool:
    """Whether any of some names is wanted by the values of an option, and none excluded."""
    wanted, unwanted = _split(values)
    known = list(names)
    if any(_matches(name, unwanted) for name in known):
        return False
    return not wanted or any(_matches(name, wanted) for name in known)


def _keys(texts: Iterable[str]) -> set[int]:
    """API keys by number, or by name with wildcards, whatever the case."""
    keys: set[int] = set()
    for text in texts:
        if text.isdecimal():
            keys.add(int(text))
            continue
        pattern = text.lower()
        found = {k for k, name in messages.API_NAMES.items() if fnmatchcase(name.lower(), pattern)}
        if not found:
            raise UsageError(_unknown_api(text))
        keys |= found
    return keys


def _unknown_api(text: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(text, messages.API_NAMES.values(), n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"there is no API {text!r}{hint}"


def _number(text: str, wanted: str) -> int:
    if not text.lstrip("-").isdecimal():
        raise UsageError(f"{text!r} is not {wanted}")
    return int(text)


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
        return not self._partitions or _is_in(partition.index, self._partitions)

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
        if self._offsets and not _is_in(json.get("offset", -1), self._offsets):
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
            yield lambda record, _line: _is_in(record.offset, self._offsets)
        if self._first is not None or self._last is not None:
            yield lambda record, _line: self._is_in_time(record.timestamp)
        if options.key:
            yield lambda record, _line: is_wanted(_key_texts(record.key), options.key)
        if options.group:
            yield lambda record, line: is_wanted(_groups(record, line), options.group)

    def _is_in_time(self, timestamp: int) -> bool:
        since, until = self._since, self._until
        return (since is None or timestamp >= since) and (until is None or timestamp <= until)


def _is_in(number: int, ranges: list[tuple[int, int]]) -> bool:
    return any(low <= number <= high for low, high in ranges)


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
