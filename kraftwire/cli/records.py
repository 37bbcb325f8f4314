"""`kraftwire records`: keys, values and headers of records as text, a line for each record."""

from __future__ import annotations

from typing import Any

import click

from kraftwire.cli.decoding import (
    GroupedCommand,
    count_option,
    input_options,
    log_file_options,
    quiet_option,
    reading,
    secrets_option,
    show,
)
from kraftwire.decode.body.records import Settings
from kraftwire.decode.filters.frames import topic_test
from kraftwire.decode.sinks import Sink
from kraftwire.errors import UsageError


@click.command(cls=GroupedCommand)
@click.option("--json", "as_json", is_flag=True, help="A JSON object per record.")
@click.option("--template", metavar="TEXT",
              help="Format as of kcat's -f: %t %p %o %T %k %s %h, %K %S sizes, \\n \\t.")
@input_options
@log_file_options
@secrets_option
@click.option("-f", "--follow", is_flag=True, help="Keep reading as a segment grows.")
@count_option
@quiet_option
def records(as_json: bool, template: str | None, **options: Any) -> int:
    """Print records of traffic or segments, one per line.

    FILE is a capture, a file of a log directory, or a folder of these; - is
    standard input. The exit code is that of decode.

    \b
      kraftwire records trace.pcapng --topic orders
      kraftwire records trace.pcapng --template '%t %p %o %k %s\\n'
      kraftwire records orders-0/ --offset 100-200 --json

    Keys, values and headers are shown as applications wrote them, personal
    data included. Secrets of Kafka's own records are hidden.
    """
    if as_json and template is not None:
        raise UsageError("--json and --template exclude each other")
    from kraftwire.inspect.records import DataJsonWriter, DataWriter, TemplateWriter

    what = reading(options, records="full")
    is_wanted_topic = topic_test(what.options.filters)

    def make_sink(_settings: Settings, stream: Any) -> Sink:
        if template is not None:
            return TemplateWriter(
                stream, template=template, is_live=what.is_live, is_wanted_topic=is_wanted_topic
            )
        writer = DataJsonWriter if as_json else DataWriter
        return writer(stream, is_live=what.is_live, is_wanted_topic=is_wanted_topic)

    return show(what, make_sink)
