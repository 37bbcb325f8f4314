"""The outputs of ``--print-data`` and ``--template``: a line for each record."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TextIO

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.exchange.paired import WholePaired
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.render.payload.lines import json_line, row_line
from kraftwire.decode.render.payload.rows import (
    Row,
    TopicTest,
    rows_of_exchange,
    rows_of_line,
)
from kraftwire.decode.render.payload.template import Template
from kraftwire.printable import printable_pieces

__all__ = ["DataJsonWriter", "DataWriter", "TemplateWriter"]

# A piece of a line, and whether it is the user's own text.
Piece = tuple[str, bool]

# So many records are written together; a batch may have millions.
_ROWS_TOGETHER = 256

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
        """Write to a stream. Shape: `is_wanted_topic` chooses records of bodies with several."""
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
        """A record with its line end; nothing if it is left out."""
        return [(row_line(row), False), ("\n", True)]

    def _put(self, rows: Iterable[Row]) -> None:
        has_any = False
        rows = iter(rows)
        while some := list(islice(rows, _ROWS_TOGETHER)):
            pieces = [piece for row in some for piece in self.pieces(row)]
            self._stream.write(printable_pieces(pieces))
            has_any = True
        if has_any and self._is_live:
            self._stream.flush()


class DataJsonWriter(DataWriter):
    """Writes a JSON object for each record."""

    def pieces(self, row: Row) -> list[Piece]:
        """The object."""
        return [(json_line(row), False), ("\n", True)]


class TemplateWriter(DataWriter):
    """Writes each record by a template."""

    def __init__(self, stream: TextIO, *, template: str, **options: object) -> None:
        """Prepare the template. Raises: UsageError if it makes no sense."""
        super().__init__(stream, **options)  # type: ignore[arg-type]
        self._template = Template(template)

    def pieces(self, row: Row) -> list[Piece]:
        """The record, by the template, whose own line ends and tabs stay.

        Shape: as with kcat, none of those that end transactions.
        """
        return [] if row.is_control else self._template.pieces(row)
