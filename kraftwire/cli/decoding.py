"""What `decode`, `stats`, `story` and `records` share: options, and the run of their inputs.

Owns the names and the help of the options, the progress, and the report of
problems and totals on standard error.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from io import TextIOWrapper
from shlex import quote
from typing import IO, Any, NamedTuple, TypeVar

import click

from kraftwire.capture.tls import KeyLog, ensure_ciphers
from kraftwire.cli.background import StatusLine
from kraftwire.cli.output import say
from kraftwire.collector import collect_rarely
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.records import Settings
from kraftwire.decode.files.report import FileFinding
from kraftwire.decode.options import FilterOptions, Options
from kraftwire.decode.sinks import Enough, Sink
from kraftwire.errors import UsageError
from kraftwire.inspect.run.inputs import InputKind, Inputs, are_apart, is_live
from kraftwire.inspect.run.run import Run
from kraftwire.inspect.run.totals import Totals, summary
from kraftwire.records.messages import FAMILIES

_SHOWN_MAX = 5
_UNREADABLE = "unreadable"
_KINDS = {
    "unknown-file": "files of no known kind",
    "unreadable-file": "files that cannot be read",
    _UNREADABLE: "inputs that cannot be read",
}


# A batch is at most this late; a metadata log gets one every half second.
_FOLLOW_S = 0.2

# Makes the output of a run, which writes to a stream.
MakeSink = Callable[[Settings, Any], Sink]
F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]
# A client without a name has an empty client id, or none.
_MAY_BE_EMPTY = ("client_id",)

# Heading -> the options below it; all others stand last.
_GROUPS: dict[str, tuple[str, ...]] = {
    "Output": (
        "output_format", "as_json", "verbose", "with_bytes", "columns", "time_form", "records",
        "template", "raw", "count", "show_secrets", "quiet",
    ),
    "Filters": (
        "api", "api_version", "client_id", "connection", "topic", "partition", "group", "error",
        "min_latency_ms", "since", "until",
    ),
    "Log files": ("offset", "key", "family", "follow"),
    "Captures": ("keylog", "is_merging", "jobs"),
    "Raw frames": ("kind", "is_response", "version"),
}  # fmt: skip
_REPEATABLE = "Repeatable, comma lists; !VALUE or ^VALUE excludes."

secrets_option: Decorator[Any] = click.option(
    "--show-secrets", is_flag=True, help="Show passwords, tokens and keys."
)

count_option: Decorator[Any] = click.option(
    "-c", "--count", type=click.IntRange(min=1), metavar="N",
    help="End after N lines: exchanges, frames as JSON, batches, records.",
)  # fmt: skip

quiet_option: Decorator[Any] = click.option(
    "-q", "--quiet", is_flag=True, help="No totals and no progress on standard error."
)


class Problem(NamedTuple):
    """Something that a user should know of an input: its kind, and the text."""

    kind: str
    text: str


class Problems:
    """Reports problems on standard error; `finish` adds the number of those left out."""

    def __init__(self, report: Callable[[Problem], object] | None = None) -> None:
        """Begin; `report` takes the problems in place of standard error."""
        self._counts: Counter[str] = Counter()
        self.report = report or self._say

    def finding(self, finding: FileFinding) -> None:
        """Report a finding of a file."""
        self.report(Problem(finding.id, str(finding)))

    def unreadable(self, text: str) -> None:
        """Report an input that cannot be read."""
        self.report(Problem(_UNREADABLE, text))

    def finish(self) -> None:
        """Report how many problems were left out."""
        for kind, words in _KINDS.items():
            more = self._counts[kind] - _SHOWN_MAX
            if more > 0:
                say(f"kraftwire: {more:,} more {words}")

    def _say(self, problem: Problem) -> None:
        self._counts[problem.kind] += 1
        if problem.kind not in _KINDS or self._counts[problem.kind] <= _SHOWN_MAX:
            say(f"kraftwire: {problem.text}")


class DecodeProgress(StatusLine):
    """A context that shows a run's counts as they grow."""

    def __init__(self, totals: Totals, *, is_wanted: bool) -> None:
        self._totals = totals
        super().__init__(is_wanted=is_wanted and not sys.stdout.isatty())

    def text(self) -> str:
        """Return the counts."""
        totals = self._totals
        parts = []
        if totals.frames:
            parts.append(f"{totals.frames:,} frames")
        if totals.files.line_count:
            parts.append(f"{totals.files.line_count:,} lines of files")
        return ", ".join(parts) or "reading"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The inputs of a command, and how they are read.

    `raw_api` are key and version of the requests that raw frames answer; None if these are
    requests. With `is_following` the only input is a segment that grows. With a `count`, reading
    ends once the output has shown so many of what it shows one by one.
    """

    inputs: tuple[str, ...]
    options: Options
    kind: InputKind = "auto"
    raw_api: tuple[int, int] | None = None
    is_merging: bool = True
    is_following: bool = False
    is_quiet: bool = False
    count: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether each line is to be written at once."""
        return self.is_following or is_live(self.inputs)

    @property
    def are_apart(self) -> bool:
        """Whether there are several inputs, all captures, each of which is read by itself."""
        return len(self.inputs) > 1 and are_apart(self.inputs, is_merging=self.is_merging)

    def start(self, make_sink: MakeSink, stream: IO[Any], memory: Memory | None = None) -> Run:
        """Begin a run, with what is known. Raises: UsageError for filters that make no sense."""
        memory = memory or Memory()
        sink = make_sink(self.options.settings(memory), stream)
        if self.count is not None:
            sink.left = self.count
        return Run(self.options, sink, memory)

    def read(self, run: Run, paths: Sequence[str], problems: Problems) -> None:
        """Read some of the inputs, and report what is wrong with them."""

        def note(finding: FileFinding) -> None:
            problems.finding(finding)
            run.file_finding(finding)

        run.totals.files.on_finding = note
        try:
            inputs = Inputs(run, problems.unreadable, self.kind, self.raw_api, self.is_merging)
            if self.is_following:
                inputs.follow(paths, _wait)
            else:
                inputs.read(paths)
        except Enough:
            run.totals.is_ended_early = True
        finally:
            run.finish()
        problems.finish()


def show(
    reading: Reading,
    make_sink: MakeSink,
    stream: IO[Any] | None = None,
    *,
    read: Callable[[Totals], object] | None = None,
    young_objects: int | None = None,
) -> int:
    """Show the inputs by an output, report the totals, and return the exit code.

    The output is made with a stream, standard output as text unless another one is given. `read`
    reads the inputs in another way, and adds to the totals. `young_objects` is for the garbage
    collector, see `collect_rarely`.
    """
    stream = text_output() if stream is None else stream
    collect_rarely(young_objects)
    run = reading.start(make_sink, stream)
    totals = run.totals
    with DecodeProgress(totals, is_wanted=not reading.is_quiet):
        if read is None:
            reading.read(run, reading.inputs, Problems())
        else:
            read(totals)
    if not reading.is_quiet:
        _report(totals)
    return int(totals.exit_code)


def _report(totals: Totals) -> None:
    for line in summary(totals):
        say(f"kraftwire: {line}")
    if totals.has_more and not totals.has_shown:
        say("kraftwire: nothing passes the filters")


def _wait() -> bool:
    """Flush the output, then wait for more input to be written; always returns True."""
    sys.stdout.flush()
    time.sleep(_FOLLOW_S)
    return True


def text_output() -> IO[str]:
    """Return standard output for text."""
    if isinstance(sys.stdout, TextIOWrapper):
        # Names are UTF-8 on the wire; a terminal of another kind must not end the run.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout


def is_coloured() -> bool:
    """Whether the output has colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


class GroupedCommand(click.Command):
    """A command that lists its options by what they are for."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group that has options."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (*_GROUPS, "Options")}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                names = [name for name, members in _GROUPS.items() if option.name in members]
                groups[names[0] if names else "Options"].append(record)
        for name, rows in groups.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl(rows)


def listed(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> Any:  # noqa: ARG001
    """Return the values of a repeatable option that accepts comma-separated lists."""
    parts = tuple(part.strip() for each in value for part in each.split(",") if part.strip())
    if option.name in _MAY_BE_EMPTY and "" in value:
        return (*parts, "")
    if value and not parts:
        raise UsageError(f"{option.opts[-1]} names nothing")
    return parts


def _filter(name: str, metavar: str, help_text: str) -> Decorator[F]:
    return click.option(name, multiple=True, metavar=metavar, callback=listed, help=help_text)


def _all_of(*decorators: Decorator[F]) -> Decorator[F]:
    """Apply decorators so that their options are listed in this order."""

    def apply(function: F) -> F:
        for each in reversed(decorators):
            function = each(function)
        return function

    return apply


input_options: Decorator[Any] = _all_of(
    click.argument("inputs", nargs=-1, required=True, metavar="FILE..."),
    _filter("--api", "NAME", "API by name or key, such as Fetch, *Group*, 52. " + _REPEATABLE),
    _filter("--api-version", "N", "API version, or a range such as 3-5 or 12+."),
    _filter("--client-id", "ID", "Client id of the request; * and ? are wildcards, '' is none."),
    _filter("--connection", "END", "Host, host:port, :port or client:port-server:port."),
    _filter("--topic", "NAME", "Topic named in the body, also by its id."),
    _filter("--partition", "N", "Partition, of the topic if --topic is given."),
    _filter("--group", "ID", "Group named in the body, or in a record of __consumer_offsets."),
    _filter("--error", "NAME", "Error in the response, by name or code; any, none."),
    click.option(
        "--min-latency", "min_latency_ms", type=float, metavar="MS",
        help="Minimum latency of the response.",
    ),
    click.option(
        "--since", metavar="TIME",
        help="ISO 8601 (UTC), seconds since the epoch, or +SECONDS since the first frame.",
    ),
    click.option("--until", metavar="TIME", help="As --since."),
    click.option("--keylog", metavar="FILE", help="TLS secrets, in the format of SSLKEYLOGFILE."),
    click.option(
        "--merge/--no-merge", "is_merging", default=True,
        help="Merge overlapping captures by timestamp (default), or read them in order.",
    ),
)  # fmt: skip

log_file_options: Decorator[Any] = _all_of(
    _filter("--offset", "N", "Offsets, or a range such as 3-5 or 12+."),
    _filter("--key", "TEXT", "Keys of records; * and ? are wildcards."),
    click.option(
        "--family", type=click.Choice([*FAMILIES.values(), "none"]),
        help="Which of Kafka's own records, if the folder's name does not say.",
    ),
)  # fmt: skip


def reading(values: dict[str, Any], **more: Any) -> Reading:
    """Return what to read, and how, by the values of the shared options.

    `more` are further options of the run. Raises: UsageError if nothing can be decrypted.
    """
    if values.get("follow"):
        _check_followed(values["inputs"])
    names = [each.name for each in fields(FilterOptions) if each.name in values]
    options = Options(
        show_secrets=values.get("show_secrets", False),
        family=values.get("family"),
        keys=_keys(values["keylog"]),
        filters=FilterOptions(**{name: values[name] for name in names}),
        **more,
    )
    return Reading(
        inputs=values["inputs"],
        options=options,
        is_merging=values["is_merging"],
        is_following=values.get("follow", False),
        is_quiet=values["quiet"],
        count=values.get("count"),
    )


def _check_followed(names: Sequence[str]) -> None:
    """Raises: UsageError for a format, which -f precedes in kcat, and for a file that is missing.
    """
    for name in names:
        if not name or os.path.lexists(name):
            continue  # an empty name is refused where it is opened
        text = f"-f is --follow, which takes no value; there is no file {name!r}"
        if "%" in name:
            text = f"-f is --follow; for kcat's -f: kraftwire records --template {quote(name)}"
        raise UsageError(text)


def _keys(path: str | None) -> KeyLog | None:
    if path is None:
        return None
    ensure_ciphers()
    return KeyLog.read(path)
