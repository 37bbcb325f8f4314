"""The byte view: every field with its range, its bytes, its path and its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.layouts import Span
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.files.spans import line_spans
from kraftwire.decode.render.exchange import ExchangeWriter
from kraftwire.decode.render.frame_spans import frame_spans, span_text
from kraftwire.decode.render.text import DIM, paint
from kraftwire.decode.render.tree import batch_text
from kraftwire.printable import printable

__all__ = ["BytesWriter", "hexdump"]

_ROW = 8
_ROWS_SHOWN = 32
_HIDDEN_BYTE = "**"


class BytesWriter(ExchangeWriter):
    """Writes the bytes of requests and responses, and of lines of files."""

    def frame_lines(self, decoded: DecodedFrame) -> Iterator[str]:
        """The frame from its length prefix to its last byte."""
        data = decoded.frame.size.to_bytes(4, "big", signed=True) + decoded.frame.data
        found = frame_spans(decoded, self._topics)
        return self._lines(found, data, -4, "    ")

    def file_lines(self, line: FileLine) -> Iterator[str]:
        """The line's bytes, counted from the start of the file."""
        what = batch_text(line.json) if line.batch is not None else ""
        yield f"{line.json['file']}  {what}".rstrip()
        found = (
            replace(each, value=span_text(each, self._topics)) for each in line_spans(line)
        )
        yield from self._lines(found, bytes(line.data), line.position, "  ")
        yield ""

    def _lines(self, found: Iterable[Span], data: bytes, start: int, indent: str) -> Iterator[str]:
        for line in hexdump(found, data, start, is_full=self._is_full):
            place, bar, rest = line.partition(")")
            shown = printable(rest)
            yield indent + paint(place + bar, DIM, is_wanted=self._is_coloured) + shown


def hexdump(
    found: Iterable[Span], data: bytes, start: int = 0, *, is_full: bool = False
) -> Iterator[str]:
    """The lines of spans: range, bytes in hex and as text, path and value.

    Shape: `start` is the position of the first byte of `data`. Long fields are cut unless
    `is_full`.
    """
    width = max(len(str(start)), len(str(start + len(data))))
    for span in found:
        yield from _span_lines(span, data[span.start - start : span.end - start], width, is_full)


def _span_lines(span: Span, data: bytes, width: int, is_full: bool) -> Iterator[str]:
    value = f" = {span.value}" if span.value != "" else ""
    rows = range(0, len(data), _ROW)
    shown = rows if is_full or len(rows) <= _ROWS_SHOWN else rows[:_ROWS_SHOWN]
    for row in shown:
        piece = data[row : row + _ROW]
        if row == 0:
            place = f"[{span.start:>{width}}, {span.end:>{width}})"
            text = f"  {span.path}{value}"
        else:
            place, text = " " * (2 * width + 4), ""
        yield f"{place}  {_hex(piece, span.is_hidden)}  {_ascii(piece, span.is_hidden)}{text}"
    if len(shown) < len(rows):
        rest = len(data) - len(shown) * _ROW
        yield f"{' ' * (2 * width + 4)}  ... {rest:,} bytes more, -v shows all"


def _hex(data: bytes, is_hidden: bool) -> str:
    text = " ".join([_HIDDEN_BYTE] * len(data)) if is_hidden else data.hex(" ")
    return text.ljust(_ROW * 3 - 1)


def _ascii(data: bytes, is_hidden: bool) -> str:
    if is_hidden:
        return ("*" * len(data)).ljust(_ROW)
    return "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in data).ljust(_ROW)
