"""JSON lines: a frame, a batch, an index entry or a state file per line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, BinaryIO

from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.records import Settings
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.json_fast_path import OrdinaryLines
from kraftwire.decode.sinks import Sink
from kraftwire.printable import printable
from kraftwire.records.json_form import RecordRows, weight_of
from kraftwire.records.limits import RECORDS_CHUNK_COUNT

__all__ = ["JsonLines", "to_line"]

# The weight of the records of a long list that are encoded at a time.
_WEIGHT_AT_ONCE = RECORDS_CHUNK_COUNT // 8

# The one control character that JSON takes as it is.
_DELETE = "\x7f"


class _Encoder:
    """Encodes objects; the long lists of records in them are `rows`, and marks in the text.

    All values are made by the decoder and never contain themselves, so cycles are not checked.
    Everything outside ASCII is escaped: some readers break lines at more characters than the line
    feed.
    """

    def __init__(self) -> None:
        self.rows: list[RecordRows] = []
        self.mark = 0
        self._encode = json.JSONEncoder(
            separators=(",", ":"), check_circular=False, allow_nan=False, default=self._default
        ).encode

    def encode(self, data: object) -> str:
        """Return the text of an object, without characters that control a terminal."""
        text = self._encode(data)
        return printable(text) if _DELETE in text else text

    def encode_whole(self, data: object) -> str:
        """Return the text of an object. Raises: TypeError if it has a long list of records."""
        text = self.encode(data)
        if self.rows:
            self.rows = []
            raise TypeError("a long list of records is written piece by piece")
        return text

    def _default(self, value: object) -> str:
        if not isinstance(value, RecordRows):
            raise TypeError(f"{type(value).__name__} has no JSON form")
        self.rows.append(value)
        return self.mark_text

    @property
    def mark_text(self) -> str:
        """Return the mark that stands in the text for a long list."""
        return f"rows {self.mark}"


def to_line(data: dict[str, Any]) -> bytes:
    """One JSON object as a line."""
    parts: list[bytes] = []
    _write(parts.append, _Encoder(), data)
    return b"".join(parts)


class JsonLines(Sink):
    """The sink of ``--format jsonl``."""

    def __init__(
        self, out: BinaryIO, *, is_live: bool = False, settings: Settings | None = None
    ) -> None:
        """Write to a binary stream.

        `is_live` flushes each line, for an endless input. With the `settings` of the run
        ordinary frames take a fast path.
        """
        self._write = out.write
        self._flush = out.flush
        self._is_live = is_live
        self._encoder = _Encoder()
        self._short = OrdinaryLines(settings, _Encoder().encode_whole) if settings else None

    def quickly(self, frames: Sequence[Frame], number: int = 0, /) -> Iterator[bool]:
        """Write frames that are not decoded yet, if they are ordinary."""
        return map(self._quick, frames, count(number))

    def _quick(self, frame: Frame, number: int) -> bool:
        line = self._short.line(frame, number) if self._short else None
        if line is None:
            return False
        self._write(line)
        if self._is_live:
            self._flush()
        return True

    def frame(self, frame: DecodedFrame) -> None:
        """Write a frame."""
        self._line(frame.to_json())

    def file_line(self, line: FileLine) -> None:
        """Write a line of a file."""
        self._line(line.json)

    def _line(self, data: dict[str, Any]) -> None:
        _write(self._write, self._encoder, data)
        if self._is_live:
            self._flush()

    def finish(self) -> None:
        """Write what is buffered."""
        self._flush()


def _write(write: Callable[[bytes], object], encoder: _Encoder, data: dict[str, Any]) -> None:
    """Write an object and a line feed; long lists of records are written piece by piece."""
    text = encoder.encode(data)
    if not encoder.rows:
        write(text.encode("ascii") + b"\n")
        return
    rows, encoder.rows = encoder.rows, []
    # A text in the data may look like a mark; then another one is taken.
    while text.count(f'"{encoder.mark_text}"') != len(rows):
        encoder.mark += 1
        text = encoder.encode(data)
        rows, encoder.rows = encoder.rows, []
    first, *rest = text.split(f'"{encoder.mark_text}"')
    del text
    write(first.encode("ascii"))
    for each, after in zip(rows, rest, strict=True):
        _write_rows(write, encoder, each)
        write(after.encode("ascii"))
    write(b"\n")


def _write_rows(
    write: Callable[[bytes], object], encoder: _Encoder, rows: RecordRows
) -> None:
    between = b"["
    pending: list[dict[str, Any]] = []
    weight = 0
    for row in rows:
        pending.append(row)
        weight += weight_of(row)
        if weight >= _WEIGHT_AT_ONCE:
            write(between + encoder.encode(pending)[1:-1].encode("ascii"))
            between = b","
            pending, weight = [], 0
    if pending or between == b"[":
        write(between + encoder.encode(pending)[1:-1].encode("ascii"))
    write(b"]")
