"""`kraftwire decode`: captures, log segments, snapshots and state files as lines.

Owns the command's arguments and what happens around a run: where output goes, totals, progress,
exit code. What is decoded and shown is the business of `kraftwire.decode`.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from kraftwire import messages
from kraftwire.cli.decode_output import Output, make_sink
from kraftwire.cli.decode_progress import Progress
from kraftwire.cli.output import say
from kraftwire.decode.body.memory import Memory
from kraftwire.decode.body.weight import Shown
from kraftwire.decode.limits import SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO
from kraftwire.decode.run.filters import FilterOptions
from kraftwire.decode.run.inputs import InputKind, Inputs, is_live
from kraftwire.decode.run.options import Options
from kraftwire.decode.run.run import Run
from kraftwire.decode.run.summary import summary
from kraftwire.errors import UsageError
from kraftwire.records.decoded import FAMILIES

__all__ = ["decode"]

# Frames are freed by counting; what the collector looks for hardly ever exists here, and looking
# for it among millions of young objects takes a fifth of the time.
_GC_THRESHOLDS = (200_000, 20, 100)
# Only reading the fields of records and headers one by one leaves much for it, 80 MiB at a time.
_GC_THRESHOLDS_OF_BYTES = (5_000, 20, 100)

# What one frame may take, by what is made of its structs and values.
_SHOWN = {
    Output.JSONL: Shown(250, 60, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
    Output.TREE: Shown(250, 60, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
    Output.BYTES: Shown(700, 700, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
}

F = TypeVar("F", bound=Callable[..., Any])

# A batch is at most this late; a metadata log gets one every half second.
_FOLLOW_S = 0.2

_REPEATABLE = "Repeatable, comma lists; !VALUE or ^VALUE excludes."


def _listed(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> Any:  # noqa: ARG001
    """Values of a repeatable option that may also be lists with commas."""
    return tuple(part.strip() for each in value for part in each.split(",") if part.strip())


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
@click.option("--json", "as_json", is_flag=True, help="JSON, also of --stats and --raft.")
@click.option("-v", "--verbose", count=True, help="All fields as a tree; -vv: nothing cut.")
@click.option("--bytes", "with_bytes", is_flag=True, help="Bytes by field; -v: nothing cut.")
@click.option("--stats", is_flag=True, help="Counts, sizes, latencies and errors by API.")
@click.option("--raft", is_flag=True, help="Epochs, leaders, votes and voters over time.")
@click.option(
    "--records",
    type=click.Choice(["none", "summary", "full"]),
    default="full",
    show_default=True,
    help="How much of record batches JSON shows: their headers; types of Kafka's own records; all.",
)
@click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and keys.")
@_filter("--api", "NAME", "API by name or key, such as Fetch, *Group*, 52. " + _REPEATABLE)
@_filter("--api-version", "N", "API version, or a range such as 3-5 or 12+.")
@_filter("--client-id", "ID", "Client id of the request; * and ? are wildcards.")
@_filter("--connection", "END", "Host, host:port, :port or client:port-server:port.")
@_filter("--topic", "NAME", "Topic named in the body, also by its id.")
@_filter("--partition", "N", "Partition, of the topic if --topic is given.")
@_filter("--group", "ID", "Group named in the body.")
@_filter("--error", "NAME", "Error in the response, by name or code; any, none.")
@click.option("--min-latency", type=float, metavar="MS", help="Responses that took at least this.")
@click.option("--since", metavar="TIME", help="ISO 8601 (UTC) or seconds since the epoch.")
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
    help="Kafka's own records in log files whose folder does not tell.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is appended to a segment.")
@click.option("-q", "--quiet", is_flag=True, help="No totals and no progress on standard error.")
def decode(inputs: tuple[str, ...], **options: Any) -> int:
    """Show what is in captures, log segments, snapshots and state files.

    FILE is a pcap or pcapng file, any file of a log directory or a folder of such, each of them
    also compressed; - is standard input. Kafka is found on any port.

    \b
      kraftwire decode trace.pcapng
      kraftwire decode trace.pcapng --api Vote,Fetch --error any
      kraftwire decode trace.pcapng --format jsonl --records summary | jq .apiName
      kraftwire decode __cluster_metadata-0/
      tcpdump -U -w - port 9092 | kraftwire decode -
      echo 00120000000000070000 | kraftwire decode --input hex -

    \b
    Exit code: 0 if everything was decoded, 3 if bytes stayed undecoded (lost packets,
    damage, an unknown layout), 1 if nothing was decoded, 2 for wrong usage. Lines and --stats
    check the CRCs of batches in frames, -v and JSON lines decode their records as well.
    """
    is_bare = options["input_kind"] in ("hex", "frames")
    api = _bare_api(options) if is_bare else None
    is_full = options["verbose"] > (0 if options["with_bytes"] else 1)
    is_awaited = options["follow"] or is_live(inputs)
    output = _output(options)
    wanted = _options(options, output, is_bare=is_bare)
    memory = Memory()
    sink = make_sink(output, wanted.settings(memory), is_live=is_awaited, is_full=is_full)
    run = Run(wanted, sink, memory)
    run.totals.files.on_finding = _say
    gc.set_threshold(*(_GC_THRESHOLDS_OF_BYTES if output is Output.BYTES else _GC_THRESHOLDS))
    with Progress(run.totals, is_wanted=not options["quiet"]):
        try:
            read = Inputs(run, _say, options["input_kind"], api)
            read.follow(inputs, _wait) if options["follow"] else read.read(inputs)
        finally:
            run.finish()
    totals = list(summary(run.totals))
    folders = [name for name in inputs if Path(name).is_dir()]
    if folders and not totals:
        _say(f"{', '.join(folders)}: no file in it can be decoded")
    if not options["quiet"]:
        for line in totals:
            _say(line)
        if run.totals.files.line_count and not run.passes_all:
            _say("the filters are for frames; lines of files are all shown")
    return int(run.totals.exit_code)


def _wait() -> bool:
    """Wait for more to be written; what there is may be read meanwhile."""
    sys.stdout.flush()
    time.sleep(_FOLLOW_S)
    return True


def _output(options: dict[str, Any]) -> Output:
    """What is printed. Raises: UsageError if more than one kind of output is asked for."""
    wanted = {
        "-v": options["verbose"],
        "--bytes": options["with_bytes"],
        "--stats": options["stats"],
        "--raft": options["raft"],
    }
    asked = [name for name, is_wanted in wanted.items() if is_wanted]
    is_report = options["stats"] or options["raft"]
    is_json = options["as_json"] or options["output_format"] == "jsonl"
    if is_json and not is_report:
        asked.append("--format jsonl")
    if len(asked) > 1 and asked != ["-v", "--bytes"]:
        raise UsageError(f"{' and '.join(asked)} exclude each other")
    names = {
        "--stats": Output.STATS_JSON if is_json else Output.STATS,
        "--raft": Output.RAFT_JSON if is_json else Output.RAFT,
        "--format jsonl": Output.JSONL,
        "--bytes": Output.BYTES,
        "-v": Output.TREE,
    }
    return next((output for name, output in names.items() if name in asked), Output.LINE)


def _options(options: dict[str, Any], output: Output, *, is_bare: bool) -> Options:
    """How to decode, of the options of the command line."""
    return Options(
        records=options["records"],
        show_secrets=options["show_secrets"],
        family=options["family"],
        shown=_SHOWN.get(output),
        filters=FilterOptions(
            # Of bare frames the option says what they are.
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
        ),
    )


def _bare_api(options: dict[str, Any]) -> tuple[int, int] | None:
    """Key and version of the requests that bare responses answer; None for bare requests.

    Raises: UsageError unless both are given for responses.
    """
    if not options["is_response"]:
        return None
    names, version = options["api"], options["version"]
    if len(names) != 1 or version is None:
        raise UsageError("bare responses need --api and --version of their requests")
    name = names[0]
    by_name = {text.lower(): key for key, text in messages.API_NAMES.items()}
    key = int(name) if name.isdecimal() else by_name.get(name.lower())
    if key is None:
        raise UsageError(f"there is no API {name!r}")
    return key, version


def _say(text: object) -> None:
    """One line on standard error."""
    say(f"kraftwire: {text}")
