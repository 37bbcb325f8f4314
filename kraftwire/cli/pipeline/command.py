"""`kraftwire pipeline`: captures and log directories into tables and a report, on Spark.

Owns the arguments and the messages. The work is done by `kraftwire.spark`, whose libraries are
loaded only by the commands that need them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kraftwire import messages
from kraftwire.cli.output import say
from kraftwire.cli.pipeline.installed import check_installed
from kraftwire.cli.pipeline.report import interval, report
from kraftwire.cli.pipeline.signals import Ending, ended_at_once
from kraftwire.cli.pipeline.tables import tables
from kraftwire.cli.security import client_security
from kraftwire.cli.tables import heading, show, table
from kraftwire.errors import UsageError
from kraftwire.printable import printable

if TYPE_CHECKING:
    from kraftwire.spark.run import RunOutcome

_FAILED = 1
_API_HELP = "Only frames of these APIs; repeatable, or separated by commas."
_TAG_HELP = "A tag for the column tags of every table; repeatable."
_TABLES_HELP = "Write only these tables: names, patterns, all; repeatable, comma lists."

# Of local[...]: cores, and how often a task may fail.
_MASTER = re.compile(r"local(\[(\*|0*[1-9]\d*)(, *0*[1-9]\d*)?\])?|yarn|(spark|k8s)://.+")

# Below this many megabytes a second a rate says only how long Spark takes to start.
_RATE_MIN = 0.5


@click.group()
def pipeline() -> None:
    """Turn captures and log directories into tables and a report, on Spark.

    Needs the extra kraftwire[spark] and Java 17.

    \b
      kraftwire pipeline run captures/ logs/ --out tables
      kraftwire pipeline run captures/ --out tables --resume
      kraftwire pipeline tail /var/lib/kafka --out tables --interval 60
      kraftwire pipeline report tables
      kraftwire pipeline run captures/ --out votes --tables 'vote_*'
      kraftwire pipeline tables
    """


pipeline.add_command(report)
pipeline.add_command(tables)


@pipeline.command()
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for tables.")
@click.option("--master", default="local[*]", show_default=True, help="Master URL of Spark.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Spark property; repeatable.")
@click.option("--since", metavar="TIME", help="Start: ISO 8601 (UTC) or seconds since the epoch.")
@click.option("--until", metavar="TIME", help="End, in the same forms; exclusive.")
@click.option("--api", multiple=True, metavar="NAME", help=_API_HELP)
@click.option("--tables", "wanted", multiple=True, metavar="NAME", help=_TABLES_HELP)
@click.option("--tag", multiple=True, metavar="KEY=VALUE", help=_TAG_HELP)
@click.option("--resume", is_flag=True, help="Continue a run, or add new files.")
@click.option("--records", is_flag=True, help="Add the table records, of log files.")
@click.option("--csv", "as_csv", is_flag=True, help="Export tables as CSV to csv/.")
@click.option("--jsonl", "as_jsonl", is_flag=True, help="Export tables as JSON lines to jsonl/.")
@click.option("-q", "--quiet", is_flag=True, help="Suppress progress and summary.")
def run(inputs: tuple[str, ...], **options: Any) -> int:
    """Read captures and log files into the tables of a folder.

    INPUT is a capture, a file of a log directory, a folder of such or a glob. Everything is
    decoded once; --resume continues a run that was killed. Captures in one folder whose names
    differ only in numbers, and whose times follow each other, are read as one. A folder such as
    day=20 is a tag of its files.

    With --tables, only those are written, and the tables they are made from. Names are those of
    `kraftwire pipeline tables`, and of each request and response: fetch_request, vote_response.

    Exit code: 0 if everything was read and every byte is accounted for, 1 if
    not or if the run failed, 2 for wrong usage.
    """
    check_installed()
    from kraftwire.cli.pipeline.progress import PipelineProgress
    from kraftwire.spark.captures.selection import Selection
    from kraftwire.spark.paths import require
    from kraftwire.spark.run import RunOptions, choose_tables, spark_runner
    from kraftwire.spark.run import run as run_pipeline
    from kraftwire.spark.run.small import is_small
    from kraftwire.spark.session import local_session

    since, until = interval(options["since"], options["until"])
    selection = Selection(since, until, _apis(options["api"]))
    tags = _tags(options["tag"])
    names = [name for each in options["wanted"] for name in each.split(",")]
    wanted = choose_tables(names) if names else None
    chosen = RunOptions(options["out"], selection, options["records"], tags, wanted)
    if not options["resume"]:
        # Tables of half of the inputs would look like those of all.
        require(inputs)
    properties = {"spark.ui.showConsoleProgress": "false"} | dict(map(_property, options["conf"]))
    master = _master(options["master"])
    has_stages = chosen.derived != frozenset()
    start = partial(
        local_session, master, properties,
        is_short=not has_stages or is_small(inputs), with_sources=False,
    )  # fmt: skip
    with (
        ended_at_once(lambda: _say(_left(chosen.folder))),
        Ending(),
        spark_runner(start, master) as runner,
        PipelineProgress(chosen.folder, is_wanted=not options["quiet"]) as progress,
    ):
        outcome = run_pipeline(
            inputs, chosen, runner, resume=options["resume"], warn=_say, begin=progress.begin
        )
    _export(chosen.folder, options)
    if not options["quiet"]:
        show(_summary(chosen.folder, outcome))
    for wrong in outcome.unbalanced:
        _say(f"bytes are not accounted for: {wrong}")
    for file in outcome.undecoded:
        _say(file)
    return _FAILED if outcome.unbalanced or outcome.unread or outcome.undecoded else 0


@pipeline.command()
@click.argument("inputs", nargs=-1, metavar="[INPUT...]")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for tables.")
@click.option(
    "--bootstrap-controller", "quorums", multiple=True, metavar="HOST:PORT",
    help="Follow the metadata log of a live quorum; repeatable, once per quorum.",
)
@click.option(
    "--command-config", metavar="FILE",
    help="Kafka's client properties for these quorums, such as security.protocol.",
)
@click.option(
    "--interval", default=30.0, show_default=True, metavar="SECONDS",
    type=click.FloatRange(min=0), help="Time between two rounds.",
)
@click.option("--once", is_flag=True, help="Run a single round, then exit.")
@click.option("--master", default="local[*]", show_default=True, help="Master URL of Spark.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Spark property; repeatable.")
@click.option("--api", multiple=True, metavar="NAME", help=_API_HELP)
@click.option("--tag", multiple=True, metavar="KEY=VALUE", help="A tag for the manifest.")
@click.option("--records", is_flag=True, help="Add the table records, of log files.")
@click.option("-q", "--quiet", is_flag=True, help="Suppress progress and summary.")
def tail(inputs: tuple[str, ...], **options: Any) -> int:
    """Keep the tables of a folder up to date, round after round.

    INPUT is a folder, a file or a glob: log directories that brokers write to, folders of captures
    in which files grow, appear or are rotated. A round reads new data and rebuilds the derived
    tables. Ctrl-C stops the command after the round. If it is killed at any moment and started
    again, the tables are those of one run over all inputs.

    Exit code: 0 if everything was read and every byte is accounted for, 1 if
    not or if a round failed, 2 for wrong usage.
    """  # fmt: skip
    if not inputs and not options["quorums"]:
        raise UsageError("nothing to follow: name inputs or --bootstrap-controller")
    path = options["command_config"]
    security = client_security(path, "pipeline") if path else None
    check_installed()
    from kraftwire.cli.pipeline.progress import PipelineProgress
    from kraftwire.cli.pipeline.signals import Stop
    from kraftwire.spark.captures.selection import Selection
    from kraftwire.spark.run import DeferredSparkRunner, RoundSchedule, RunOptions
    from kraftwire.spark.run import tail as tail_pipeline
    from kraftwire.spark.session import local_session

    selection = Selection(apis=_apis(options["api"]))
    tags = _tags(options["tag"])
    chosen = RunOptions(options["out"], selection, options["records"], tags)
    properties = {"spark.ui.showConsoleProgress": "false"} | dict(map(_property, options["conf"]))
    start = partial(local_session, _master(options["master"]), properties)
    with (
        ended_at_once(lambda: None),
        DeferredSparkRunner(start) as runner,
        PipelineProgress(chosen.folder, is_wanted=not options["quiet"]) as progress,
        Stop(_say) as stop,
    ):
        rhythm = RoundSchedule(options["interval"], stop.wait, options["once"])
        outcome = tail_pipeline(
            inputs, chosen, runner, rhythm,
            quorums=options["quorums"], security=security, warn=_say, begin=progress.begin,
        )  # fmt: skip
    if not options["quiet"]:
        show(_summary(chosen.folder, outcome))
    for wrong in outcome.unbalanced:
        _say(f"bytes are not accounted for: {wrong}")
    is_failed = outcome.unbalanced or outcome.unread
    return _FAILED if is_failed or (options["once"] and outcome.unreachable) else 0


def _left(folder: Path) -> str:
    """Describe what an interrupted run leaves."""
    from kraftwire.spark.run.manifest import Manifest

    found = Manifest.load(folder)
    count = sum(len(source.files) for source in found.sources.values()) if found else 0
    derived = "" if found and found.is_derived else ", not the tables that stages derive"
    left = f"the rows of {_files(count)}{derived}" if count else "no rows yet"
    return f"stopped; {folder} has {left}; the same command with --resume continues"


def _master(text: str) -> str:
    """Raises: UsageError for a value that Spark would answer with a Java stack trace."""
    if not _MASTER.fullmatch(text):
        raise UsageError(f"{text!r} is not a Spark master: local[*], spark://HOST:PORT, yarn, ...")
    return text


def _apis(texts: Iterable[str]) -> frozenset[int] | None:
    return frozenset(_api(name) for each in texts for name in each.split(",")) or None


def _api(text: str) -> int:
    """The key of an API. Raises: UsageError if there is none."""
    by_name = {name.lower(): key for key, name in messages.API_NAMES.items()}
    key = int(text) if text.isdecimal() else by_name.get(text.lower())
    if key not in messages.API_NAMES:
        raise UsageError(f"there is no API {text!r}")
    return int(key)


def _tags(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    tags = tuple(map(_tag, texts))
    for key, count in Counter(key for key, _ in tags).items():
        if count > 1:
            raise UsageError(f"the tag {key!r} is given {count} times")
    return tags


def _tag(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise UsageError(f"a tag is KEY=VALUE, not {text!r}")
    return key, value


def _property(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key.startswith("spark.") or not sign:
        raise UsageError(f"a Spark property is spark.NAME=VALUE, not {text!r}")
    return key, value


def _export(folder: Path, options: dict[str, Any]) -> None:
    from kraftwire.spark.run.parts import export

    for name in ("csv", "jsonl"):
        if options[f"as_{name}"]:
            export(folder, name)


def _summary(folder: Path, outcome: RunOutcome) -> list[str]:
    """Print what was read, the number of rows, and what to look at first."""
    from kraftwire.spark.run.derive import highlights

    read = f"{_files(outcome.files)}, {outcome.size / 1e6:,.1f} MB in {outcome.seconds:,.1f} s"
    rate = outcome.size / 1e6 / max(outcome.seconds, 0.001)
    if rate >= _RATE_MIN:
        read += f" ({rate:,.1f} MB/s)"
    if outcome.again:
        read += f"; {_files(outcome.again)} again, because a recording continues"
    if outcome.known:
        read += f"; {_files(outcome.known)} read before"
    rows = [(name, f"{count:,}", "") for name, count in outcome.rows.items()]
    lines = [read, ""]
    lines += table(("TABLE", "ROWS", ""), rows, right=[1])
    first = [printable(line) for line in highlights(folder)]
    lines += ["", heading("Look at first"), *(first or ["nothing stands out"])]
    return lines


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _say(text: object) -> None:
    """Print one line on standard error."""
    say(f"kraftwire: {text}")
