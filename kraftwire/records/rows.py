"""The records of a batch in their JSON form, made while somebody iterates over them.

Owns what a batch of very many records costs: its bytes, and a bounded number of records at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, overload

from kraftwire.records.record import Record

__all__ = ["RecordRows", "plain"]

Row = dict[str, Any]


class RecordRows(Sequence[Row]):
    """A list of records in JSON form that is made anew by each iteration.

    `open_records` begins to read the batch, `form` makes the JSON form of a record; the
    batch keeps its bytes alive. Order: an element by its index costs reading those before it.
    """

    __slots__ = ("_change", "_count", "_form", "_open", "is_decoded")

    def __init__(
        self,
        count: int,
        open_records: Callable[[], Iterator[Record]],
        form: Callable[[Record], Row],
        *,
        is_decoded: bool,
    ) -> None:
        """`is_decoded` tells that the form has what records of Kafka's own mean."""
        self.is_decoded = is_decoded
        self._count = count
        self._open = open_records
        self._form = form
        self._change: Callable[[Row], object] | None = None

    def change(self, change: Callable[[Row], object]) -> None:
        """From now on do something to each record before it is handed out."""
        self._change = change

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        change = self._change
        for record in self._open():
            row = self._form(record)
            if change is not None:
                change(row)
            yield row

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            if step < 0:
                return list(self)[index]
            return list(islice(self, start, stop, step))
        places = range(self._count)
        return next(islice(self, places[index], None))


def plain(value: Any) -> Any:
    """A JSON form with its `RecordRows` made into lists, in place."""
    if isinstance(value, RecordRows):
        return list(value)
    if isinstance(value, dict | list):
        for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
            if isinstance(each, RecordRows | dict | list):
                value[key] = plain(each)
    return value
