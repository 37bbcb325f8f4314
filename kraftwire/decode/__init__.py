"""Captures and log files of Kafka, decoded: frames, exchanges, batches and records.

`open` gives the frames of a capture, `exchanges` its requests with their responses; `batches` and
`records` read segments and snapshots. Errors are `StorageError` for what cannot be opened or read,
`UsageError` for a call or an option that makes no sense, `WireError` for bytes of a message or
batch that break its format; `KraftwireError` is the base of all of them. Damage inside a capture
is not an error: frames have findings, and `health` has the totals. Examples are in README.md.

Importing this package loads none of the decoder.
"""

from __future__ import annotations

from kraftwire.lazy_names import load_name

# Imports for type checkers only are not executed, since importing must stay cheap.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from kraftwire.capture.framing.health import Health
    from kraftwire.capture.packets.series import in_time_order
    from kraftwire.capture.packets.source import CaptureInput
    from kraftwire.decode.api.captures import Frames
    from kraftwire.decode.api.logs import LogBatch, LogRecord, batches, records
    from kraftwire.decode.body.context import Memory
    from kraftwire.decode.body.findings import Finding
    from kraftwire.decode.body.frame import Frame
    from kraftwire.decode.exchange import Exchange
    from kraftwire.decode.options import FilterOptions, Options
    from kraftwire.errors import KraftwireError, StorageError, UsageError, WireError

__all__ = [
    "Exchange",
    "FilterOptions",
    "Finding",
    "Frame",
    "Frames",
    "Health",
    "KraftwireError",
    "LogBatch",
    "LogRecord",
    "Memory",
    "Options",
    "StorageError",
    "UsageError",
    "WireError",
    "batches",
    "exchanges",
    "in_time_order",
    "open",
    "records",
]

# Name -> module that defines it.
_HOMES = {
    "Exchange": "kraftwire.decode.exchange",
    "FilterOptions": "kraftwire.decode.options",
    "Finding": "kraftwire.decode.body.findings",
    "Frame": "kraftwire.decode.body.frame",
    "Frames": "kraftwire.decode.api.captures",
    "Health": "kraftwire.capture.framing.health",
    "KraftwireError": "kraftwire.errors",
    "LogBatch": "kraftwire.decode.api.logs",
    "LogRecord": "kraftwire.decode.api.logs",
    "Memory": "kraftwire.decode.body.context",
    "Options": "kraftwire.decode.options",
    "StorageError": "kraftwire.errors",
    "UsageError": "kraftwire.errors",
    "WireError": "kraftwire.errors",
    "batches": "kraftwire.decode.api.logs",
    "in_time_order": "kraftwire.capture.packets.series",
    "records": "kraftwire.decode.api.logs",
}


def open(
    *captures: CaptureInput,
    name: str | None = None,
    options: Options | None = None,
    memory: Memory | None = None,
) -> Frames:
    """The frames of a capture, or of several that are one recording, in order of completion.

    A capture is a path (``-`` is standard input), a readable binary stream or an iterable of
    pieces of bytes, compressed or not; `name` stands for its path. `options` choose frames and say
    what is shown, `memory` is what earlier runs have learned.
    Raises: StorageError if a file cannot be opened or is not a capture; UsageError for options that
    make no sense.
    """
    from kraftwire.decode.api.captures import Frames
    from kraftwire.decode.options import Options

    return Frames(captures, name, options or Options(), memory)


def exchanges(
    *captures: CaptureInput,
    name: str | None = None,
    options: Options | None = None,
    memory: Memory | None = None,
) -> Iterator[Exchange]:
    """Requests with their responses, in the order in which they are complete; as `open`."""
    return open(*captures, name=name, options=options, memory=memory).exchanges()


def __getattr__(name: str) -> Any:
    return load_name(__name__, _HOMES, name)
