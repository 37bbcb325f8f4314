"""`kraftwire decode`: captures, log segments, snapshots and state files as lines."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import click

from kraftwire import messages
from kraftwire.cli.decoding import (
    GroupedCommand,
    Reading,
    count_option,
    input_options,
    is_coloured,
    listed,
    log_file_options,
    quiet_option,
    reading,
    secrets_option,
    show,
    text_output,
)
from kraftwire.cli.output import say
from kraftwire.decode.body.records import Settings
from kraftwire.decode.limits import SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO, FrameBudget
from kraftwire.decode.sinks import Sink
from kraftwire.errors import UsageError
from kraftwire.inspect.lines.line import COLUMNS, TIME_FORMS
from kraftwire.inspect.run.inputs import InputKind

if TYPE_CHECKING:
    from kraftwire.inspect.exchange_blocks import ExchangeWriter


class Output(Enum):
    """What is written of each frame."""

    LINE = auto()
    COLUMNS = auto()
    TREE = auto()
    BYTES = auto()
    JSONL = auto()


# The memory that one frame may need, by the form that its structs and values take.
_FRAME_BUDGETS = {
    Output.JSONL: FrameBudget(250, 60, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
    Output.TREE: FrameBudget(250, 60, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
    Output.BYTES: FrameBudget(700, 700, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
}

# Only reading the fields of records and headers one by one leaves much for the collector, 80 MiB at
# a time.
_YOUNG_OBJECTS_OF_BYTES = 5_000

_RAW = ("hex", "frames")

_USUAL_COLUMNS = tuple(name for name in COLUMNS if name != "client")


@click.command(cls=GroupedCommand)
@click.option("--format", "output_format", type=click.Choice(["line", "jsonl"]),
              help="A line per exchange (default), or a JSON object per frame.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format jsonl.")
@click.option("-v", "--verbose", count=True, help="All fields as a tree; -vv: untruncated.")
@click.option("--bytes", "with_bytes", is_flag=True,
              help="Annotated hex dump; with -v, untruncated.")
@click.option("-o", "--columns", multiple=True, metavar="NAME", callback=listed,
              help=f"Columns of lines, comma lists: {', '.join(COLUMNS)}.")
@click.option("-t", "--time", "time_form", type=click.Choice(list(TIME_FORMS)),
              help="Time of lines: time of day (default), seconds since the epoch, since the "
                   "first frame, since the previous line.")
@click.option("--records", type=click.Choice(["none", "summary", "full"]), default="full",
              show_default=True,
              help="Record batches in JSON: batch headers; also the types of Kafka's own "
                   "records; all records.")
@input_options
@log_file_options
@secrets_option
@click.option("--input", "kind", type=click.Choice(get_args(InputKind)), default="auto",
              show_default=True, help="Type of the files; hex and frames are raw frames.")
@click.option("--response/--request", "is_response",
              help="Whether raw frames are requests (default) or responses.")
@click.option("--version", type=int, help="Raw responses: API version; --api names the API.")
@click.option("-f", "--follow", is_flag=True, help="Keep reading as a segment grows.")
@count_option
@click.option("--jobs", type=click.IntRange(1), metavar="N",
              help="JSON lines of several captures: number of processes, by default 1.")
@quiet_option
def decode(**options: Any) -> int:
    """Show what is in captures, log segments, snapshots and state files.

    FILE is a pcap or pcapng file, any file of a log directory, or a folder of
    these; each may be compressed. - is standard input. Kafka is found on any
    port.

    \b
      kraftwire decode trace.pcapng
      kraftwire decode trace.pcapng --api Vote,Fetch --error any
      kraftwire decode trace.pcapng --format jsonl --records summary | jq .apiName
      kraftwire decode __cluster_metadata-0/
      tcpdump -U -w - port 9092 | kraftwire decode -
      echo 00120000000000070000 | kraftwire decode --input hex -

    Exit code: 0 if everything was decoded, 3 if bytes stayed undecoded (lost
    packets, damage, an unknown layout), 1 if nothing was decoded, 2 for wrong
    usage. Lines check the CRCs of batches in frames; -v, --bytes and JSON lines
    decode their records as well.

    Secrets that can be recognised are hidden. What applications wrote is not a
    secret in this sense: -v and JSON lines show keys, values and headers.
    """
    output = _output(options)
    what = _reading(options, output)
    make_sink = partial(_sink, output, what.is_live, options)
    stream = sys.stdout.buffer if output is Output.JSONL else text_output()
    read, jobs = None, _job_count(options["jobs"], output, what)
    if jobs > 1:
        from kraftwire.cli.processes import decode_captures  # few runs have several processes

        read = partial(decode_captures, what, make_sink, stream, jobs)
    young_objects = _YOUNG_OBJECTS_OF_BYTES if output is Output.BYTES else None
    return show(what, make_sink, stream, read=read, young_objects=young_objects)


def _output(options: dict[str, Any]) -> Output:
    """Return the requested output. Raises: UsageError for more than one, or unknown columns."""
    given = {
        "-o" if options["columns"] else "-t": (options["columns"] or options["time_form"])
        and Output.COLUMNS,
        "--format jsonl": (options["as_json"] or options["output_format"] == "jsonl")
        and Output.JSONL,
        "--bytes": options["with_bytes"] and Output.BYTES,
        "-v": options["verbose"] and not options["with_bytes"] and Output.TREE,
    }
    chosen = {name: output for name, output in given.items() if output}
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} exclude each other")
    for name in options["columns"]:
        if name not in COLUMNS:
            raise UsageError(f"there is no column {name!r}; there are {', '.join(COLUMNS)}")
    return next(iter(chosen.values()), Output.LINE)


def _reading(options: dict[str, Any], output: Output) -> Reading:
    api = _raw_api(options)
    # The option names the API of raw responses, it filters nothing then.
    values = options if api is None else options | {"api": ()}
    what = reading(
        values,
        records=options["records"],
        frame_budget=_FRAME_BUDGETS.get(output),
        is_brief=output in (Output.LINE, Output.COLUMNS),
    )
    return replace(what, kind=options["kind"], raw_api=api)


def _raw_api(options: dict[str, Any]) -> tuple[int, int] | None:
    """Return key and version of the requests that raw responses answer; None for other inputs.

    Raises: UsageError unless both are given for raw responses, and the version only for these.
    """
    names, version = options["api"], options["version"]
    if options["kind"] not in _RAW or not options["is_response"]:
        if options["is_response"] or version is not None:
            raise UsageError("--response and --version are for raw responses: --input hex|frames")
        return None
    if len(names) != 1 or version is None:
        raise UsageError("raw responses need --api and --version of their requests")
    name = names[0]
    by_name = {text.lower(): key for key, text in messages.API_NAMES.items()}
    key = int(name) if name.isdecimal() else by_name.get(name.lower())
    if key is None:
        raise UsageError(f"there is no API {name!r}")
    return key, version


def _job_count(wanted: int | None, output: Output, what: Reading) -> int:
    """Return how many processes to use: one, unless captures are read apart as JSON lines."""
    if wanted in (None, 1):
        return 1
    if what.count is not None:
        say("kraftwire: --jobs has no effect with -c, as reading ends early")
        return 1
    if output is Output.JSONL and what.kind in ("auto", "capture") and what.are_apart:
        return min(wanted, len(what.inputs))
    say("kraftwire: --jobs has no effect: it is for JSON lines of captures that are read apart")
    return 1


def _sink(
    output: Output, is_live: bool, options: dict[str, Any], settings: Settings, stream: Any
) -> Sink:
    """Return what writes an output; its module is imported only for that."""
    topics, has_colour = settings.topics, is_coloured()
    if output is Output.JSONL:
        from kraftwire.decode.jsonl import JsonLines

        return JsonLines(stream, is_live=is_live, settings=settings)
    if output is Output.LINE:
        from kraftwire.inspect.lines.line import LineWriter

        return LineWriter(stream, topics=topics, is_coloured=has_colour, is_live=is_live)
    if output is Output.COLUMNS:
        from kraftwire.inspect.lines.line import ColumnWriter

        return ColumnWriter(
            stream, columns=options["columns"] or _USUAL_COLUMNS, topics=topics,
            time_form=options["time_form"] or "clock", is_coloured=has_colour, is_live=is_live,
        )  # fmt: skip
    writer: type[ExchangeWriter]
    if output is Output.TREE:
        from kraftwire.inspect.tree import TreeWriter as writer
    else:
        from kraftwire.inspect.bytes import BytesWriter as writer
    # The first -v chooses the tree; the next one, and any with --bytes, cuts nothing.
    is_full = options["verbose"] > (output is Output.TREE)
    return writer(
        stream, topics=topics, is_coloured=has_colour, is_full=is_full, is_live=is_live,
        records=settings.records,
    )  # fmt: skip
