"""The records before the first damage, without holding them all.

Owns the handling of a batch that cannot be read as a whole: what the fast reader refuses is read
again record by record, up to the wrong byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftwire.errors import WireError
from kraftwire.records.cursor import RecordCursor, iter_records
from kraftwire.records.limits import RECORDS_CHUNK_BYTES, RECORDS_CHUNK_COUNT, BombError
from kraftwire.records.record import Record, Section

Open = Callable[[], Section]
Check = Callable[[Section], None]


class Salvage:
    """Iterates over the records of a batch up to the first damage.

    `damage` says why the records end early; it is None until the iteration gets there, and if
    nothing is wrong.
    """

    def __init__(self, count: int, count_max: int, section: Open, check: Check) -> None:
        """`section` opens the records' bytes, `check` refuses an impossible count; at most
        `count_max` records of such a batch are read.
        """
        self.damage: WireError | None = None
        self._count = count
        self._count_max = count_max
        self._section = section
        self._check = check

    def __iter__(self) -> Iterator[Record]:
        for rows in self.chunks():
            yield from rows

    def chunks(self) -> Iterator[list[Record]]:
        """Yield the same records in lists of bounded size."""
        self.damage = None
        if not self._count:
            return
        try:
            section = self._section()
            cursor = RecordCursor(section)
            self._check(section)
        except BombError as error:
            self.damage = bare(error)
            return
        except WireError as error:
            self.damage = bare(error)
            if error.path == "count":
                yield from self._slowly(section, cursor)
            return
        while left := self._count - cursor.index:
            try:
                rows = cursor.take_some(left)
            except WireError as error:
                self.damage = bare(error)
                yield from self._slowly(section, cursor)
                return
            yield rows
        try:
            cursor.check_end()
        except WireError as error:
            self.damage = bare(error)

    def _slowly(self, section: Section, cursor: RecordCursor) -> Iterator[list[Record]]:
        """Yield what the cursor refused, record by record."""
        rows: list[Record] = []
        left = min(self._count, self._count_max) - cursor.index
        begin = cursor.position
        try:
            for record, end in iter_records(section, begin, cursor.index, left):
                rows.append(record)
                if len(rows) == RECORDS_CHUNK_COUNT or end - begin >= RECORDS_CHUNK_BYTES:
                    yield rows
                    rows, begin = [], end
        except WireError as error:
            self.damage = bare(error)
        yield rows


def bare(error: WireError) -> WireError:
    """Return an error without its traceback, so that it can be kept without the frames' data."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
