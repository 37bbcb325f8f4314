"""An annotated hex dump: every field with its range, bytes, path and value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.layouts import Span
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.text import DIM, paint
from kraftwire.inspect.bytes.file_spans import line_spans
from kraftwire.inspect.bytes.frame_spans import frame_spans, span_text
from kraftwire.inspect.exchange_blocks import ExchangeWriter
from kraftwire.inspect.trees.tree import batch_text
from kraftwire.printable import printable

__all__ = ["BytesWriter", "hexdump"]

_ROW = 8
_ROWS_SHOWN = 32
_HEX_WIDTH = _ROW * 3 - 1
_HIDDEN_BYTE = "**"
# Data up to this size is turned into text at once, not span by span.
_AT_ONCE_MAX = 64 * 1024
# Bytes as text, with a dot for each byte that is not a printable ASCII character.
_SHOWN = bytes(each if 0x20 <= each < 0x7F else ord(".") for each in range(256))


class BytesWriter(ExchangeWriter):
    """Writes the bytes of requests and responses, and of lines of files."""

    def frame_lines(self, decoded: DecodedFrame) -> Iterator[str]:
        """Yield the lines of the frame, from its length prefix to its last byte."""
        data = decoded.frame.size.to_bytes(4, "big", signed=True) + decoded.frame.data
        found = frame_spans(decoded, self._topics)
        return self._lines(found, data, -4, "    ")

    def file_lines(self, line: FileLine) -> Iterator[str]:
        """Yield the lines of a file's line; positions count from the start of the file."""
        what = batch_text(line.json) if line.batch is not None else ""
        yield f"{line.json['file']}  {what}".rstrip()
        found = (
            each._replace(value=span_text(each, self._topics)) for each in line_spans(line)
        )
        yield from self._lines(found, bytes(line.data), line.position, "  ")
        yield ""

    def _lines(self, found: Iterable[Span], data: bytes, start: int, indent: str) -> Iterator[str]:
        lines = hexdump(found, data, start, is_full=self._is_full, indent=indent)
        # Without colours, the whole output is escaped later.
        return map(self._painted, lines) if self._is_coloured else lines

    def _painted(self, line: str) -> str:
        place, bar, rest = line.partition(")")
        return paint(place + bar, DIM, is_wanted=True) + printable(rest)


def hexdump(
    found: Iterable[Span], data: bytes, start: int = 0, *, is_full: bool = False, indent: str = ""
) -> Iterator[str]:
    """Yield the lines of spans: range, bytes in hex and as text, path and value.

    `start` is the position of the first byte of `data`. Long fields are cut unless `is_full`.
    """
    width = max(len(str(start)), len(str(start + len(data))))
    line = f"{indent}[%{width}d, %{width}d)  %-{_HEX_WIDTH}s  %-{_ROW}s  %s"
    is_small = len(data) <= _AT_ONCE_MAX
    hexes, texts = _columns(data) if is_small else ("", "")
    for path, low, high, value, is_hidden in found:
        text = path if value == "" else f"{path} = {value}"
        is_short = high - low <= _ROW
        at, end = low - start, (high if is_short else low + _ROW) - start
        if is_hidden:
            yield line % (low, high, _hidden(data[at:end]), "*" * (end - at), text)
        elif is_small:
            yield line % (low, high, hexes[3 * at : 3 * end - 1], texts[at:end], text)
        else:
            yield line % (low, high, *_columns(data[at:end]), text)
        if not is_short:
            span = Span(path, low, high, value, is_hidden)
            yield from _more(span, data[low - start : high - start], width, is_full, indent)


def _more(span: Span, data: bytes, width: int, is_full: bool, indent: str) -> Iterator[str]:
    """Yield the lines of a long field after the first."""
    place = indent + " " * (2 * width + 4)
    rows = range(0, len(data), _ROW)
    shown = rows if is_full or len(rows) <= _ROWS_SHOWN else rows[:_ROWS_SHOWN]
    for row in shown[1:]:
        piece = data[row : row + _ROW]
        if span.is_hidden:
            hex_text, text = _hidden(piece), "*" * len(piece)
        else:
            hex_text, text = _columns(piece)
        yield f"{place}  {hex_text:{_HEX_WIDTH}}  {text:{_ROW}}"
    if len(shown) < len(rows):
        rest = len(data) - len(shown) * _ROW
        yield f"{place}  ... {rest:,} bytes more, -v shows all"


def _columns(data: bytes) -> tuple[str, str]:
    """Return bytes in hex and as text."""
    return data.hex(" "), data.translate(_SHOWN).decode("ascii")


def _hidden(data: bytes) -> str:
    return " ".join([_HIDDEN_BYTE] * len(data))
