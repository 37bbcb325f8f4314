"""JSON lines: a frame, a batch, an index entry or a state file per line."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.files.report import FileLine
from kraftwire.printable import printable

__all__ = ["JsonLines", "to_line"]

# What is encoded is made here and never holds itself, so looking for circles is wasted. Everything
# outside ASCII is escaped: some readers break lines at more characters than the line feed.
_encode = json.JSONEncoder(
    separators=(",", ":"), check_circular=False, allow_nan=False
).encode

# The one control character that JSON takes as it is.
_DELETE = "\x7f"


def to_line(data: dict[str, Any]) -> bytes:
    """One JSON object as a line."""
    text = _encode(data)
    if _DELETE in text:
        text = printable(text)
    return text.encode("ascii") + b"\n"


class JsonLines:
    """The sink behind ``--format jsonl``."""

    def __init__(self, out: BinaryIO, *, is_live: bool = False) -> None:
        """Write to a binary stream. Shape: `is_live` flushes each line, for an endless input."""
        self._write = out.write
        self._flush = out.flush
        self._is_live = is_live

    def frame(self, frame: DecodedFrame) -> None:
        """Write a frame."""
        self._write(to_line(frame.to_json()))
        if self._is_live:
            self._flush()

    def file_line(self, line: FileLine) -> None:
        """Write a line of a file."""
        self._write(to_line(line.json))
        if self._is_live:
            self._flush()

    def finish(self) -> None:
        """Write what is buffered."""
        self._flush()
