"""The outputs of `kraftwire records`: a line for each record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.exchange.paired import WholePaired
from kraftwire.decode.files.report import FileLine
from kraftwire.inspect.payload.lines import json_line, row_line
from kraftwire.inspect.payload.rows import (
    Row,
    TopicTest,
    rows_of_exchange,
    rows_of_line,
)
from kraftwire.inspect.payload.template import Template
from kraftwire.printable import printable_pieces

__all__ = ["DataJsonWriter", "DataWriter", "TemplateWriter"]

# A piece of a line, and whether it is text of the template.
Piece = tuple[str, bool]

# Records are written together up to this many characters; a batch may have millions.
_TEXT_TOGETHER = 64 * 1024

# Produce, Fetch, FetchSnapshot and ShareFetch: no other bodies hold records.
_RECORD_APIS = frozenset({0, 1, 59, 78})


def _any_topic(_topic: str | None, _partition: int | None) -> bool:
    return True


class DataWriter(WholePaired):
    """Writes the records of exchanges and files."""

    def __init__(
        self,
        stream: TextIO,
        *,
        is_live: bool = False,
        is_wanted_topic: TopicTest = _any_topic,
        **_options: object,
    ) -> None:
        """Write to a stream. `is_wanted_topic` selects records of bodies with several topics."""
        super().__init__()
        self._stream = stream
        self._is_live = is_live
        self._is_wanted = is_wanted_topic

    def frame(self, decoded: DecodedFrame) -> None:
        """Take the next frame; bodies without records are not decoded."""
        if decoded.frame.api_key in _RECORD_APIS:
            super().frame(decoded)

    def exchange(
        self, asked: DecodedFrame | None, answered: DecodedFrame | None, _is_awaited: bool, /
    ) -> None:
        """Write the records of an exchange."""
        self._put(rows_of_exchange(asked, answered, self._is_wanted))

    def file_line(self, line: FileLine) -> None:
        """Write the records of a batch."""
        self._put(rows_of_line(line, self._is_wanted))

    def finish(self) -> None:
        """Write the records of requests that never got an answer."""
        super().finish()
        self._stream.flush()

    def pieces(self, row: Row) -> list[Piece]:
        """Return a record's line with its line end; empty if the record is left out."""
        return [(row_line(row), False), ("\n", True)]

    def _put(self, rows: Iterable[Row]) -> None:
        has_any = False
        pieces: list[Piece] = []
        size = 0
        for row in rows:
            has_any = True
            for piece in self.pieces(row):
                pieces.append(piece)
                size += len(piece[0])
            if size > _TEXT_TOGETHER:
                self._stream.write(printable_pieces(pieces))
                pieces, size = [], 0
        self._stream.write(printable_pieces(pieces))
        if has_any and self._is_live:
            self._stream.flush()


class DataJsonWriter(DataWriter):
    """Writes a JSON object for each record."""

    def pieces(self, row: Row) -> list[Piece]:
        """Return the JSON object of a record."""
        return [(json_line(row), False), ("\n", True)]


class TemplateWriter(DataWriter):
    """Writes each record by a template."""

    def __init__(self, stream: TextIO, *, template: str, **options: object) -> None:
        """Parse the template. Raises: UsageError if it is wrong."""
        super().__init__(stream, **options)  # type: ignore[arg-type]
        self._template = Template(template)

    def pieces(self, row: Row) -> list[Piece]:
        """Return a record in the form of the template, whose own line ends and tabs stay.

        As in kcat, transaction markers are left out.
        """
        return [] if row.is_control else self._template.pieces(row)
