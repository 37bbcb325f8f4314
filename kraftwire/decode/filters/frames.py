"""The filter of frames: tests of one frame, and of both frames of an exchange."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from math import inf

from kraftwire import messages
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.filters.values import (
    NEGATIONS,
    Clock,
    Ranges,
    as_ranges,
    ensure_order,
    is_in,
    matches,
    moment,
    split_exclusions,
)
from kraftwire.decode.options import FilterOptions
from kraftwire.errors import UsageError
from kraftwire.protocol.error_codes import ErrorCode, error_name

_BRACKETS = re.compile(r"\[[^]]*\]")
_PORT = re.compile(r"[\d?*]+")
_PORT_MAX = 0xFFFF

Test = Callable[[Frame], bool]


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

    def passes(self, frame: Frame) -> bool:
        """Whether a frame is to be shown."""
        return all(test(frame) for test in self._on_frame) and all(
            test(frame) for test in self._on_body
        )

    def is_in_time(self, frame: Frame) -> bool:
        """Whether the time of a frame is wanted, if nothing else of it is."""
        return all(test(frame) for test in self._on_time)

    def passes_exchange(self, request: Frame, response: Frame) -> bool:
        """Whether a request and its response are to be shown together.

        What is wanted may be in either of them (the group in the request, the error in the
        response), what is excluded must be in neither.
        """
        return self._exchange.pass_on(request, response)


class _ExchangeTests:
    """Tests of both frames of an exchange together, made from the same options."""

    def __init__(self, options: FilterOptions, clock: Clock) -> None:
        wanted = _some_values(options, lambda value: not value.startswith(NEGATIONS))
        unwanted = _some_values(options, lambda value: value.startswith(NEGATIONS))
        # A partition cannot be excluded, so it is only ever wanted, of either frame.
        unwanted = replace(unwanted, partition=())
        self._in_either = _frame_tests(wanted, clock) + _body_tests(wanted)
        no_times = replace(unwanted, min_latency_ms=None, since=None, until=None)
        self._in_both = _frame_tests(no_times, clock) + _body_tests(replace(no_times, error=()))
        # Requests have no error that could be excluded.
        self._in_response = [_error_test(unwanted.error)] if unwanted.error else []

    def pass_on(self, request: Frame, response: Frame) -> bool:
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
        wanted, unwanted = split_exclusions(options.api)
        tests += _numbers(_keys(wanted), _keys(unwanted), lambda f: f.api_key)
    if options.api_version:
        tests += _ranges(options.api_version, lambda f: f.api_version)
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
        tests.append(lambda f: f.latency_ms is not None and f.latency_ms >= least)
    return tests + _time_tests(options, clock)


def _time_tests(options: FilterOptions, clock: Clock) -> list[Test]:
    tests: list[Test] = []
    if options.since is not None:
        first = moment(options.since, clock)
        tests.append(lambda f: f.time_ns >= first())
    if options.until is not None:
        last = moment(options.until, clock)
        tests.append(lambda f: f.time_ns <= last())
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
    wanted, unwanted = split_exclusions(options.topic)
    low_high = as_ranges(options.partition)

    def has_partition(partitions: Iterable[int]) -> bool:
        return any(is_in(each, low_high) for each in partitions)

    def test(frame: Frame) -> bool:
        for topic in frame.topics:
            name = topic.name or ""
            if wanted and not matches(name, wanted):
                continue
            if not low_high or has_partition(topic.partitions):
                return True
        return False

    tests: list[Test] = [test] if wanted or low_high else []
    if unwanted:
        tests.append(lambda f: not any(matches(t.name or "", unwanted) for t in f.topics))
    return tests


def topic_test(options: FilterOptions) -> Callable[[str | None, int | None], bool]:
    """Return a test of a topic and a partition alone, for bodies that hold several.

    Without a partition, the topic as a whole is tested.
    Raises: UsageError for a value that makes no sense.
    """
    wanted, unwanted = split_exclusions(options.topic)
    low_high = as_ranges(options.partition)

    def test(topic: str | None, partition: int | None) -> bool:
        name = topic or ""
        if (wanted and not matches(name, wanted)) or matches(name, unwanted):
            return False
        if partition is None or not low_high:
            return True
        return is_in(partition, low_high)

    return test


def _error_test(values: tuple[str, ...]) -> Test:
    """``any`` and ``none``, names (with wildcards) and numbers; errors are in responses only."""
    wanted, unwanted = split_exclusions(values)

    def has_code(code: int, texts: list[str]) -> bool:
        name = error_name(code)
        return any(
            text.lower() == "any" or text == str(code) or fnmatchcase(name, text.upper())
            for text in texts
        )

    for text in (*wanted, *unwanted):
        if text.lower() not in ("any", "none") and not any(
            has_code(code, [text]) for code in ErrorCode
        ):
            _number(text, "an error's name or number, any or none")

    def test(frame: Frame) -> bool:
        if frame.is_request:
            return False
        codes = frame.error_codes
        if not codes:
            return not wanted or any(text.lower() == "none" for text in wanted)
        if any(has_code(code, unwanted) for code in codes):
            return False
        return not wanted or any(has_code(code, wanted) for code in codes)

    return test


def _connection_names(frame: Frame) -> list[str]:
    """A connection by its whole name, by either end, and by either end's host."""
    whole = frame.connection
    client, _, server = whole.rpartition("-")
    hosts = [end.rpartition(":")[0] for end in (client, server)]
    ports = [":" + end.rpartition(":")[2] for end in (client, server)]
    return [whole, client, server, *hosts, *ports]


def _check_connection(text: str) -> None:
    """Refuse what no connection can match, before the run begins.

    Raises: UsageError.
    """
    # Text in brackets is an IPv6 address or a set of characters.
    for end in _BRACKETS.sub("?", text.lstrip("".join(NEGATIONS))).split("-"):
        host, colon, port = end.rpartition(":")
        if not colon:
            if end.isdecimal():
                raise UsageError(f"{text!r} is not a host; a port is written as :{end}")
        elif ":" in host:
            raise UsageError(f"{text!r} has too many colons; an IPv6 address stands in brackets")
        elif not _PORT.fullmatch(port) or (port.isdecimal() and int(port) > _PORT_MAX):
            raise UsageError(f"{text!r} has no port from 0 to {_PORT_MAX} after its colon")


def _globs(values: tuple[str, ...], names: Callable[[Frame], list[str]]) -> list[Test]:
    wanted, unwanted = split_exclusions(values)
    tests: list[Test] = []
    if wanted:
        tests.append(lambda f: any(matches(name, wanted) for name in names(f)))
    if unwanted:
        tests.append(lambda f: not any(matches(name, unwanted) for name in names(f)))
    return tests


def _numbers(
    wanted: set[int], unwanted: set[int], number: Callable[[Frame], int | None]
) -> list[Test]:
    tests: list[Test] = []
    if wanted:
        tests.append(lambda f: number(f) in wanted)
    if unwanted:
        tests.append(lambda f: number(f) not in unwanted)
    return tests


def _ranges(
    values: tuple[str, ...], number: Callable[[Frame], int | None]
) -> list[Test]:
    wanted, unwanted = map(as_ranges, split_exclusions(values))

    def has_number(frame: Frame, ranges: Ranges) -> bool:
        found = number(frame)
        return found is not None and is_in(found, ranges)

    tests: list[Test] = []
    if wanted:
        tests.append(lambda f: has_number(f, wanted))
    if unwanted:
        tests.append(lambda f: not has_number(f, unwanted))
    return tests


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
