"""`kraftwire decode`: captures, log segments, snapshots and state files as lines.

Owns the command's arguments and what happens around a run: where output goes, totals, progress,
exit code. What is decoded and shown is up to `kraftwire.decode`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import click

from kraftwire.capture.tls.ciphers import ensure_ciphers
from kraftwire.capture.tls.keylog import KeyLog
from kraftwire.cli.decode.bare import bare_api
from kraftwire.cli.decode.complaints import Complaints
from kraftwire.cli.decode.jobs import Jobs, job_count
from kraftwire.cli.decode.output import SHOWN, Output, make_sink
from kraftwire.cli.decode.progress import Progress
from kraftwire.cli.decode.refusals import ensure_of_use, ensure_was_of_use
from kraftwire.cli.output import say
from kraftwire.collector import collect_rarely
from kraftwire.decode.body.capture_context import Memory
from kraftwire.decode.filters.frame_filter import FilterOptions, topic_test
from kraftwire.decode.options import Options
from kraftwire.errors import UsageError
from kraftwire.inspect.lines.headings import COLUMNS
from kraftwire.inspect.run.inputs import InputKind, Inputs, is_live
from kraftwire.inspect.run.relay import Relay
from kraftwire.inspect.run.run import Run
from kraftwire.inspect.run.summary import summary
from kraftwire.inspect.stats.order import Sort
from kraftwire.records.decoded import FAMILIES

__all__ = ["decode"]

# Only reading the fields of records and headers one by one leaves much for the collector, 80 MiB at
# a time.
_YOUNG_OBJECTS_OF_BYTES = 5_000

F = TypeVar("F", bound=Callable[..., Any])

# A batch is at most this late; a metadata log gets one every half second.
_FOLLOW_S = 0.2

# Options whose output has its own JSON form.
_REPORTS = ("stats", "raft", "groups", "transactions", "topics", "print_data")

_REPEATABLE = "Repeatable, comma lists; !VALUE or ^VALUE excludes."


def _listed(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> Any:  # noqa: ARG001
    """Return the values of a repeatable option, each of which may be a comma-separated list."""
    listed = tuple(part.strip() for each in value for part in each.split(",") if part.strip())
    if value and not listed:
        raise UsageError(f"{option.opts[-1]} names nothing")
    return listed


def _filter(name: str, metavar: str, help_text: str) -> Callable[[F], F]:
    return click.option(name, multiple=True, metavar=metavar, callback=_listed, help=help_text)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("inputs", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["line", "jsonl"]),
    help="A line per exchange for people (default), or a JSON object per frame.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON, also of --stats and the stories.")
@click.option("-v", "--verbose", count=True, help="All fields as a tree; -vv: nothing cut.")
@click.option("--bytes", "with_bytes", is_flag=True, help="Bytes by field; -v: nothing cut.")
@click.option(
    "-o",
    "--columns",
    multiple=True,
    metavar="NAME",
    callback=_listed,
    help=f"Columns of lines, comma lists: {', '.join(COLUMNS)}.",
)
@click.option("--stats", is_flag=True, help="Times, sizes and errors by client and by API.")
@click.option(
    "--sort",
    type=click.Choice(get_args(Sort)),
    help="Order of the tables of --stats, p99 unless given.",
)
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help="Rows of each table of --stats."
)
@click.option("--print-data", is_flag=True, help="A line per record: key, value, headers.")
@click.option(
    "--template",
    metavar="TEXT",
    help="--print-data in the format of kcat's -f: %t %p %o %T %k %s %h, %K %S sizes, \\n \\t.",
)
@click.option("--raft", is_flag=True, help="Epochs, leaders, votes and voters over time.")
@click.option("--groups", is_flag=True, help="Members, generations, assignments and lag of groups.")
@click.option("--transactions", is_flag=True, help="Transactions: how long, what, how they ended.")
@click.option("--topics", is_flag=True, help="Topics: changes, traffic, clients, partitions.")
@click.option(
    "--records",
    type=click.Choice(["none", "summary", "full"]),
    default="full",
    show_default=True,
    help="How much of record batches JSON shows: their headers; types of Kafka's own records; all.",
)
@click.option("--keylog", metavar="FILE", help="Secrets of TLS connections (SSLKEYLOGFILE).")
@click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and keys.")
@_filter("--api", "NAME", "API by name or key, such as Fetch, *Group*, 52. " + _REPEATABLE)
@_filter("--api-version", "N", "API version, or a range such as 3-5 or 12+.")
@_filter("--client-id", "ID", "Client id of the request; * and ? are wildcards.")
@_filter("--connection", "END", "Host, host:port, :port or client:port-server:port.")
@_filter("--topic", "NAME", "Topic named in the body, also by its id.")
@_filter("--partition", "N", "Partition, of the topic if --topic is given.")
@_filter("--group", "ID", "Group named in the body, or in a record of __consumer_offsets.")
@_filter("--offset", "N", "Log files: offsets, or a range such as 3-5 or 12+.")
@_filter("--key", "TEXT", "Log files: keys of records; * and ? are wildcards.")
@_filter("--error", "NAME", "Error in the response, by name or code; any, none.")
@click.option("--min-latency", type=float, metavar="MS", help="Responses that took at least this.")
@click.option(
    "--since",
    metavar="TIME",
    help="ISO 8601 (UTC), seconds since the epoch, or +SECONDS since the first frame.",
)
@click.option("--until", metavar="TIME", help="As --since.")
@click.option(
    "--input",
    "input_kind",
    type=click.Choice(get_args(InputKind)),
    default="auto",
    show_default=True,
    help="What the files are; hex and frames are bare frames.",
)
@click.option("--version", "version", type=int, help="Bare responses: version of the request.")
@click.option("--response/--request", "is_response", help="Bare frames: which they are.")
@click.option(
    "--family",
    type=click.Choice([*FAMILIES.values(), "none"]),
    help="Kafka's own records in log files whose folder does not show it.",
)
@click.option(
    "--merge/--no-merge",
    "is_merging",
    default=True,
    help="Captures of the same time in the order of time, or one by one.",
)
@click.option("-f", "--follow", is_flag=True, help="Continue with what is appended to a segment.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Processes; by default one, and for captures over 50 MB one for each processor.",
)
@click.option("-q", "--quiet", is_flag=True, help="No totals and no progress on standard error.")
def decode(inputs: tuple[str, ...], **options: Any) -> int:
    """Show what is in captures, log segments, snapshots and state files.

    FILE is a pcap or pcapng file, any file of a log directory or a folder of such, each of them
    also compressed; - is standard input. Kafka is found on any port.

    \b
      kraftwire decode trace.pcapng
      kraftwire decode trace.pcapng --api Vote,Fetch --error any
      kraftwire decode trace.pcapng --format jsonl --records summary | jq .apiName
      kraftwire decode trace.pcapng --groups
      kraftwire decode trace.pcapng --topic orders --print-data
      kraftwire decode __cluster_metadata-0/
      tcpdump -U -w - port 9092 | kraftwire decode -
      echo 00120000000000070000 | kraftwire decode --input hex -

    \b
    Exit code: 0 if everything was decoded, 3 if bytes stayed undecoded (lost packets,
    damage, an unknown layout), 1 if nothing was decoded, 2 for wrong usage. Lines and --stats
    check the CRCs of batches in frames, -v and JSON lines decode their records as well.

    Secrets that can be recognised are hidden. What applications wrote is not a secret in this
    sense: -v, --print-data and --template show keys, values and headers, whatever they hold.
    """
    is_bare = _is_bare(options)
    api = bare_api(options, is_bare=is_bare)
    output = _output(options)
    wanted = _options(options, output, is_bare=is_bare)
    ensure_of_use(options, () if is_bare else inputs)
    collect_rarely(_YOUNG_OBJECTS_OF_BYTES if output is Output.BYTES else None)
    run = _Task(inputs, options, wanted, output, api).run()
    ensure_was_of_use(options, run.totals)
    totals = list(summary(run.totals))
    if not options["quiet"]:
        for line in totals:
            _say(line)
        if run.totals.has_more and not run.totals.has_shown:
            there = "; ".join(run.offered.texts())
            _say(f"nothing passes the filters{f'; there are {there}' if there else ''}")
    return int(run.totals.exit_code)


@dataclass(frozen=True, slots=True)
class _Task:
    """The work that the command line requests; done by one process or several."""

    inputs: tuple[str, ...]
    options: dict[str, Any]
    wanted: Options
    output: Output
    api: tuple[int, int] | None

    def run(self) -> Run:
        """Run it, and set the exit code."""
        run = self._started()
        count = self._job_count(has_filters=not run.passes_all)
        if count > 1:
            Jobs(count, self._relayed).do(run, self.output, self._progress(run))
        else:
            with self._progress(run):
                self._read(run)
        return run

    def _job_count(self, *, has_filters: bool) -> int:
        if self.options["follow"] or _is_bare(self.options):
            return 1
        jobs = self.options["jobs"]
        return job_count(jobs, self.inputs, self.output, has_filters=has_filters)

    def _progress(self, run: Run) -> Progress:
        return Progress(run.totals, is_wanted=not self.options["quiet"])

    def _relayed(self, relay: Relay) -> Run:
        """Run it in several processes, of which this is the first."""
        run = self._started(relay)
        self._read(run)
        run.finish_relay()
        return run

    def _started(self, relay: Relay | None = None) -> Run:
        options, memory = self.options, Memory()
        sink = make_sink(
            self.output,
            self.wanted.settings(memory),
            is_live=options["follow"] or is_live(self.inputs),
            is_full=options["verbose"] > (0 if options["with_bytes"] else 1),
            out=relay.out if relay else None,
            columns=options["columns"],
            sort=options["sort"] or "p99",
            top=options["top"],
            template=options["template"],
            is_wanted_topic=topic_test(self.wanted.filters),
        )
        return Run(self.wanted, sink, memory, relay=relay)

    def _read(self, run: Run) -> None:
        """Read the inputs, and report what is wrong with them."""
        options, complaints = self.options, Complaints()
        run.totals.files.on_finding = complaints.finding
        tell, kind = complaints.unreadable, options["input_kind"]
        try:
            read = Inputs(run, tell, kind, self.api, options["is_merging"])
            if options["follow"]:
                read.follow(self.inputs, _wait)
            else:
                read.read(self.inputs)
        finally:
            run.finish()
        complaints.finish()


def _wait() -> bool:
    """Flush the output, then wait for more input to be written; always returns True."""
    sys.stdout.flush()
    time.sleep(_FOLLOW_S)
    return True


def _output(options: dict[str, Any]) -> Output:
    """Return the requested kind of output. Raises: UsageError if more than one is requested."""
    wanted = {
        "-v": options["verbose"],
        "--bytes": options["with_bytes"],
        "--stats": options["stats"],
        "--raft": options["raft"],
        "--groups": options["groups"],
        "--transactions": options["transactions"],
        "--topics": options["topics"],
        "--template": options["template"] is not None,
        "--print-data": options["print_data"] and options["template"] is None,
    }
    asked = [name for name, is_wanted in wanted.items() if is_wanted]
    is_report = any(options[name] for name in _REPORTS)
    is_json = options["as_json"] or options["output_format"] == "jsonl"
    if is_json and not is_report:
        asked.append("--format jsonl")
    for name in ("sort", "top"):
        if options[name] and not options["stats"]:
            raise UsageError(f"--{name} is for --stats")
    if len(asked) > 1 and asked != ["-v", "--bytes"]:
        raise UsageError(f"{' and '.join(asked)} exclude each other")
    names = {
        "--stats": Output.STATS_JSON if is_json else Output.STATS,
        "--raft": Output.RAFT_JSON if is_json else Output.RAFT,
        "--groups": Output.GROUPS_JSON if is_json else Output.GROUPS,
        "--transactions": Output.TRANSACTIONS_JSON if is_json else Output.TRANSACTIONS,
        "--topics": Output.TOPICS_JSON if is_json else Output.TOPICS,
        "--template": Output.TEMPLATE,
        "--print-data": Output.DATA_JSON if is_json else Output.DATA,
        "--format jsonl": Output.JSONL,
        "--bytes": Output.BYTES,
        "-v": Output.TREE,
    }
    if options["columns"]:
        _check_columns(options["columns"], asked)
        return Output.COLUMNS
    return next((output for name, output in names.items() if name in asked), Output.LINE)


def _check_columns(columns: Sequence[str], asked: Sequence[str]) -> None:
    """Raises: UsageError for unknown columns, or for an output that has none."""
    if asked:
        raise UsageError(f"{asked[0]} has no columns, -o is for lines")
    for name in columns:
        if name not in COLUMNS:
            raise UsageError(f"there is no column {name!r}; there are {', '.join(COLUMNS)}")


def _options(options: dict[str, Any], output: Output, *, is_bare: bool) -> Options:
    """Convert the options of the command line to those of decoding."""
    return Options(
        records="full" if options["print_data"] or options["template"] else options["records"],
        show_secrets=options["show_secrets"],
        family=options["family"],
        keys=_keys(options["keylog"]),
        shown=SHOWN.get(output),
        filters=FilterOptions(
            # The option tells what bare frames are.
            api=() if is_bare else options["api"],
            api_version=options["api_version"],
            client_id=options["client_id"],
            connection=options["connection"],
            topic=options["topic"],
            partition=options["partition"],
            group=options["group"],
            error=options["error"],
            min_latency_ms=options["min_latency"],
            since=options["since"],
            until=options["until"],
            offset=options["offset"],
            key=options["key"],
        ),
    )


def _keys(path: str | None) -> KeyLog | None:
    """Read the secrets of a key log. Raises: UsageError if nothing can be decrypted."""
    if path is None:
        return None
    ensure_ciphers()
    return KeyLog.read(path)


def _is_bare(options: dict[str, Any]) -> bool:
    """Whether the inputs are frames without packets."""
    return options["input_kind"] in ("hex", "frames")


def _say(text: object) -> None:
    """Print one line on standard error."""
    say(f"kraftwire: {text}")
