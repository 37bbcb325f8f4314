"""`kraftwire stats`: latencies, sizes and errors by client and API, and batches by partition."""

from __future__ import annotations

from typing import Any, get_args

import click

from kraftwire.cli.decoding import (
    GroupedCommand,
    input_options,
    log_file_options,
    quiet_option,
    reading,
    show,
)
from kraftwire.inspect.stats.writer import Sort


@click.command(cls=GroupedCommand)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with all rows.")
@click.option("--sort", type=click.Choice(get_args(Sort)), default="p99", show_default=True,
              help="Order of the tables.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Rows of each table.")
@input_options
@log_file_options
@quiet_option
def stats(as_json: bool, sort: Sort, top: int | None, **options: Any) -> int:
    """Latency, size and error statistics per client and API; batches per partition.

    FILE is a capture, a file of a log directory, or a folder of these; - is
    standard input. The exit code is that of decode.

    \b
      kraftwire stats trace.pcapng
      kraftwire stats trace.pcapng --sort errors --top 5
      kraftwire stats trace.pcapng --client-id 'app-*' --json
      kraftwire stats /var/lib/kafka/data
    """
    from kraftwire.inspect.stats.writer import StatsJsonWriter, StatsWriter

    writer = StatsJsonWriter if as_json else StatsWriter
    what = reading(options, is_brief=True)
    return show(what, lambda _, stream: writer(stream, sort=sort, top=top))
