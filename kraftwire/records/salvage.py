"""The records in front of the first damage, without holding them all.

Owns what is done about a batch that cannot be read as a whole: what the fast reader refuses is
read again record by record, up to the byte that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftwire.errors import WireError
from kraftwire.limits import RECORDS_CHUNK_COUNT
from kraftwire.records.bomb import BombError
from kraftwire.records.cursor import RecordCursor
from kraftwire.records.explain import iter_records
from kraftwire.records.record import Record, Section

__all__ = ["Salvage", "bare"]

Open = Callable[[], Section]
Check = Callable[[Section], None]


class Salvage:
    """Iterates over the records of a batch up to the first damage.

    `damage` says why the records end before they should have; it is None until the
    iteration has got there, and where nothing is wrong.
    """

    def __init__(self, count: int, count_max: int, section: Open, check: Check) -> None:
        """`section` opens the records' bytes, `check` refuses a count that cannot be; of
        such a batch `count_max` records are read at most.
        """
        self.damage: WireError | None = None
        self._count = count
        self._count_max = count_max
        self._section = section
        self._check = check

    def __iter__(self) -> Iterator[Record]:
        for rows in self._chunks():
            yield from rows

    def _chunks(self) -> Iterator[list[Record]]:
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
                rows = cursor.take(min(left, RECORDS_CHUNK_COUNT))
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
        """What the cursor refused, record by record."""
        rows: list[Record] = []
        left = min(self._count, self._count_max) - cursor.index
        try:
            for record, _ in iter_records(section, cursor.position, cursor.index, left):
                rows.append(record)
                if len(rows) == RECORDS_CHUNK_COUNT:
                    yield rows
                    rows = []
        except WireError as error:
            self.damage = bare(error)
        yield rows


def bare(error: WireError) -> WireError:
    """An error that is kept as a value: without the frames, and all they hold, that it passed."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
