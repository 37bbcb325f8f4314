"""Batches and records as JSON, as `kraftwire decode` prints them.

Damage never stops it: what cannot be read is null, and every reason is returned next to the JSON.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, overload

from kraftwire.errors import WireError
from kraftwire.records.control import decode_control
from kraftwire.records.limits import RECORD_PROBLEMS_MAX, RECORD_SHOWN_FREE, BombError
from kraftwire.records.messages import Decoded, decode_coordinator
from kraftwire.records.metadata import REMOTE_LOG_RECORDS, decode_metadata
from kraftwire.records.reader import Batch
from kraftwire.records.record import NO_HEADERS, Record
from kraftwire.records.salvage import bare

JsonRow = dict[str, Any]

# Bytes of a key and value that weigh as much as a row, and of a value that is decoded.
_PLAIN_BYTES = 1024
_DECODED_BYTES = 16

Detail = Literal["none", "summary", "full"]


class RecordRows(Sequence[JsonRow]):
    """A list of records in JSON form that each iteration makes again.

    `open_records` begins to read the batch, `form` makes the JSON form of a record; the
    batch keeps its bytes alive. Access by index reads all elements before it.
    """

    __slots__ = ("_change", "_count", "_form", "_open", "is_decoded")

    def __init__(
        self,
        count: int,
        open_records: Callable[[], Iterator[Record]],
        form: Callable[[Record], JsonRow],
        *,
        is_decoded: bool,
    ) -> None:
        """With `is_decoded`, the form includes the decoded messages of Kafka's own records."""
        self.is_decoded = is_decoded
        self._count = count
        self._open = open_records
        self._form = form
        self._change: Callable[[JsonRow], object] | None = None

    def change(self, change: Callable[[JsonRow], object]) -> None:
        """Apply a change to each record before it is returned, from now on."""
        self._change = change

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[JsonRow]:
        change = self._change
        for record in self._open():
            row = self._form(record)
            if change is not None:
                change(row)
            yield row

    @overload
    def __getitem__(self, index: int) -> JsonRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[JsonRow]: ...

    def __getitem__(self, index: int | slice) -> JsonRow | list[JsonRow]:
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


def weight_of(row: JsonRow) -> int:
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


class RecordError(WireError):
    """A record of a readable batch does not follow the schema of its topic."""


def decode_record(record: Record, family: str | None, *, is_control: bool) -> Decoded | None:
    """Decode a record of Kafka's own; None for a user's record.

    `family` as of `family_of_topic`. Raises: WireError if it cannot be read.
    """
    if is_control:
        return decode_control(record.key, record.value)
    if family is None:
        return None
    if family == "metadata":
        return decode_metadata(record.value)
    if family == "remote-log":
        return decode_metadata(record.value, REMOTE_LOG_RECORDS)
    return decode_coordinator(family, record.key, record.value)


def batch_to_json(
    batch: Batch,
    *,
    family: str | None = None,
    records: Detail = "full",
    rows_max: int | None = None,
    on_record: Callable[[int, Decoded | None], None] | None = None,
) -> tuple[dict[str, Any], list[WireError]]:
    """Return a batch as JSON, and everything in it that is wrong or unknown.

    `records` of the JSON is null with ``none``; with ``summary`` a list of offset,
    timestamp, sizes, header keys and type; with ``full`` of offset, timestamp, key, value,
    headers and the decoded message. The list ends before the first damaged record. For more than
    `rows_max` records it is a `RecordRows`, and only their first problems are reported; a record
    that is far longer than its compressed batch is then listed without its contents. `on_record`
    gets the offset and message of each record of Kafka's own, once, in order; None instead of the
    message where it cannot be decoded.
    """
    problems: list[WireError] = []
    rows: Sequence[Record] | None = None
    row_form = _RowForm(records, family, batch, is_bounded=rows_max is not None)
    row_form.on_record = on_record
    is_long = rows_max is not None and batch.magic == 2 and batch.count > rows_max
    if not is_long and (records != "none" or batch.magic < 2):
        rows, damage = _some_rows(batch, rows_max, is_decoded=row_form.is_decoded)
        if damage:
            problems.append(damage)
        is_long = rows is None
    json = _header(batch, rows)
    json["isValid"] = is_valid = batch.is_valid
    json["records"] = None
    if records != "none":
        if is_long:
            json["records"] = _long_rows(batch, row_form, problems)
        else:
            json["records"] = [row_form.row(row, problems) for row in rows or ()]
    if not is_valid:
        problems.insert(0, _crc_error(batch))
    return json, problems


def _some_rows(
    batch: Batch, rows_max: int | None, *, is_decoded: bool
) -> tuple[list[Record] | None, WireError | None]:
    """Return the records before the first damage, and the damage; None if they are too large."""
    if rows_max is None:
        return batch.salvage()
    found = batch.iter_salvage()
    rows: list[Record] = []
    for chunk in found.chunks():
        rows_max -= sum(weight(record, is_decoded=is_decoded) for record in chunk)
        if rows_max < 0:
            return None, None
        rows += chunk
    return rows, found.damage


def _long_rows(batch: Batch, form: _RowForm, problems: list[WireError]) -> RecordRows:
    """Return the records of a batch one by one, after a first pass that collects problems."""
    if not form.is_decoded and not form.may_cut and _is_readable(batch):
        return _rows(batch, form, batch.count)
    found = batch.iter_salvage()
    count = more = 0
    bad: list[WireError] = []
    for count, record in enumerate(found, 1):  # noqa: B007 (how many there were)
        form.look_at(record, bad)
        while len(bad) > RECORD_PROBLEMS_MAX:
            bad.pop()
            more += 1
    form.on_record = None
    if found.damage and batch.magic == 2:
        problems.append(found.damage)
    problems += bad
    if more:
        problems.append(RecordError(f"{more} more records cannot be decoded"))
    return _rows(batch, form, count)


def _is_readable(batch: Batch) -> bool:
    try:
        batch.ensure_readable()
    except WireError:
        return False
    return batch.magic == 2


def _rows(batch: Batch, form: _RowForm, count: int) -> RecordRows:
    return RecordRows(
        count,
        lambda: iter(batch.iter_salvage()),
        lambda row: form.row(row, []),
        is_decoded=form.is_decoded,
    )


class _RowForm:
    """Makes the JSON form of the records of a batch."""

    def __init__(
        self, detail: Detail, family: str | None, batch: Batch, *, is_bounded: bool
    ) -> None:
        self.is_decoded = family is not None or batch.is_control
        self.may_cut = is_bounded and batch.codec != 0
        self.on_record: Callable[[int, Decoded | None], None] | None = None
        self._size_max = RECORD_SHOWN_FREE + batch.size
        self._form = _full if detail == "full" else _summary
        self._family = family
        self._batch = batch

    def row(self, record: Record, problems: list[WireError]) -> dict[str, Any]:
        """Return the form of a record; add to `problems` why it cannot be decoded or shown."""
        if self.may_cut and self._is_cut(record, problems):
            record = record._replace(key=None, value=None, headers=NO_HEADERS)
            return self._form(record, None)
        decoded = self.decoded(record, problems) if self.is_decoded else None
        return self._form(record, decoded)

    def look_at(self, record: Record, problems: list[WireError]) -> None:
        """Add to `problems` what `row` would add, without making the JSON form."""
        if not (self.may_cut and self._is_cut(record, problems)) and self.is_decoded:
            self.decoded(record, problems)

    def _is_cut(self, record: Record, problems: list[WireError]) -> bool:
        size = len(record.key or b"") + len(record.value or b"")
        size += sum(len(name) + len(value or b"") for name, value in record.headers)
        if size <= self._size_max:
            return False
        error = BombError(
            f"a record of {size} bytes, too many to show from a compressed batch of so few",
            path="records",
            offset=self._batch.position,
            expected=f"at most {self._size_max}",
            found=str(size),
        )
        problems.append(error)
        return True

    def decoded(self, record: Record, problems: list[WireError]) -> dict[str, Any] | None:
        """Decode a record of Kafka's own."""
        batch = self._batch
        try:
            found = decode_record(record, self._family, is_control=batch.is_control)
            if found is None:
                return None
            if self.on_record is not None:
                self.on_record(record.offset, found)
            return found.to_json()
        except WireError as error:
            problems.append(_at_record(error, record, batch))
            if self.on_record is not None:
                self.on_record(record.offset, None)
            return None


def _header(batch: Batch, rows: Sequence[Record] | None) -> dict[str, Any]:
    base_offset: int | None
    count: int | None
    if batch.magic == 2:
        base_offset, count = batch.base_offset, batch.count
    else:
        # A wrapper's header lacks these; an unreadable wrapper has none.
        base_offset, count = (rows[0].offset, len(rows)) if rows else (None, None)
    return {
        "position": batch.position,
        "baseOffset": base_offset,
        "lastOffset": batch.last_offset,
        "count": count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "timestampType": batch.timestamp_type,
        "maxTimestamp": batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compression": batch.compression,
        "crc": batch.crc,
    }


def _summary(record: Record, decoded: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "headerKeys": [key for key, _ in record.headers],
        "type": decoded["type"] if decoded else None,
    }


def _full(record: Record, decoded: dict[str, Any] | None) -> dict[str, Any]:
    offset, timestamp, key, value, headers, _ = record
    return {
        "offset": offset,
        "timestamp": timestamp,
        "key": None if key is None else b2a_base64(key, newline=False).decode(),
        "value": None if value is None else b2a_base64(value, newline=False).decode(),
        "headers": [
            {
                "key": name,
                "value": None if data is None else b2a_base64(data, newline=False).decode(),
            }
            for name, data in headers
        ],
        "decoded": decoded,
    }


def _crc_error(batch: Batch) -> WireError:
    try:
        batch.ensure_valid()
    except WireError as error:
        return bare(error)
    return WireError("the CRC of a batch is wrong", offset=batch.position)


def _at_record(error: WireError, record: Record, batch: Batch) -> RecordError:
    """Return the error with the place of the batch, as offsets inside a value mean nothing."""
    inside = "" if error.offset is None else f" (byte {error.offset} of its bytes)"
    return RecordError(
        f"record at offset {record.offset}: {error.problem}{inside}",
        message=error.message,
        version=error.version,
        path=error.path,
        offset=batch.position,
        expected=error.expected,
        found=error.found,
    )
