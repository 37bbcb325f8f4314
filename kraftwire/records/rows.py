"""The records of a batch in their JSON form, made during iteration.

Bounds the memory of a batch of very many records: its bytes, and a bounded number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, overload

from kraftwire.records.record import Record

__all__ = ["RecordRows", "plain", "weight", "weight_of"]

Row = dict[str, Any]

# Bytes of a key and value that weigh as much as a row, and of a value that is decoded.
_PLAIN_BYTES = 1024
_DECODED_BYTES = 16


class RecordRows(Sequence[Row]):
    """A list of records in JSON form that each iteration makes again.

    `open_records` begins to read the batch, `form` makes the JSON form of a record; the
    batch keeps its bytes alive. Access by index reads all elements before it.
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
        """With `is_decoded`, the form includes the decoded messages of Kafka's own records."""
        self.is_decoded = is_decoded
        self._count = count
        self._open = open_records
        self._form = form
        self._change: Callable[[Row], object] | None = None

    def change(self, change: Callable[[Row], object]) -> None:
        """Apply a change to each record before it is returned, from now on."""
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


def weight(record: Record, *, is_decoded: bool) -> int:
    """Return the memory of a record's JSON form, in units of an ordinary row without headers.

    With `is_decoded`, its value is decoded to objects far larger than their bytes.
    """
    size = len(record.key or b"") + len(record.value or b"")
    return 1 + len(record.headers) + size // (_DECODED_BYTES if is_decoded else _PLAIN_BYTES)


def weight_of(row: Row) -> int:
    """Return the memory of a JSON form that exists already, in the units of `weight`."""
    headers = row["headers"] if "headers" in row else row["headerKeys"]
    size = sum(len(row.get(name) or "") for name in ("key", "value")) * 3 // 4
    is_decoded = row.get("decoded") is not None
    return 1 + len(headers) + size // (_DECODED_BYTES if is_decoded else _PLAIN_BYTES)


def plain(value: Any) -> Any:
    """Convert the `RecordRows` in a JSON form to lists, in place."""
    if isinstance(value, RecordRows):
        return list(value)
    if isinstance(value, dict | list):
        for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
            if isinstance(each, RecordRows | dict | list):
                value[key] = plain(each)
    return value
