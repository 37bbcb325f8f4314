"""Converts a file of a log directory to Arrow tables: batches, records, byte counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.decode.files import FileKind, FileReport, open_source
from kraftwire.decode.files.decode import way_out
from kraftwire.decode.files.report import FindingSink
from kraftwire.decode.files.scan import FoundBatch
from kraftwire.decode.files.source import ByteSource
from kraftwire.errors import StorageError, WireError
from kraftwire.records.limits import BombError
from kraftwire.records.reader import Batch, read_batches
from kraftwire.spark.columns import Batches, Columns, read_batch, read_cut
from kraftwire.spark.logs.accounts import FileAccounts
from kraftwire.spark.logs.metadata import metadata_rows, without_secrets
from kraftwire.spark.logs.place import LogPlace, cluster_of, place_of
from kraftwire.spark.logs.plan import CHUNK_BYTES, BatchPiece, packing_of, pieces_of
from kraftwire.spark.logs.rows import BatchFacts, batch_row, batch_rows, record_rows
from kraftwire.spark.logs.state import state_of, with_refusal
from kraftwire.spark.logs.transactions import BatchFilter
from kraftwire.spark.paths import readable
from kraftwire.spark.tables import TABLES
from kraftwire.spark.tables.files import FileBytes

LogTables = dict[str, Any]

_NAMES = ("batches", "records", "metadata_records", "bad_input", "files")

# The optional tables of a file.
LOG_TABLES = frozenset(_NAMES) - {"bad_input", "files"}


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What to decode from a file.

    `tables` names the requested tables, `bad_input` and `files` are always included; `family`
    overrides the family that the folder's name implies, as of `family_of_topic`;
    `batch_filter` excludes batches from the tables, but never from the byte counts; a growing file
    is read as if it ended at `size_max`. Only the columns of `records` in `columns` are made.
    """

    tables: frozenset[str] = frozenset({"batches", "metadata_records"})
    show_secrets: bool = False
    family: str | None = None
    chunk_bytes: int = CHUNK_BYTES
    batch_filter: BatchFilter | None = None
    size_max: int | None = None
    columns: frozenset[str] | None = None


def decode_tables(
    path: str | Path,
    *,
    records: bool = False,
    start: int = 0,
    end: int | None = None,
    options: LogOptions | None = None,
) -> LogTables:
    """Return the tables of a file by name: `batches`, `metadata_records`, `bad_input`, `files`.

    With `records`, that table too. For a segment or snapshot, the batches that begin in `[start,
    end)` are decoded, where a batch begins at `start` (see `plan`), and the row of `files` is about
    this range; other kinds of files give only that row. Problems are in `bad_input`: no state of a
    file raises an error. Memory: that of the tables; see `decode_pieces`.
    """
    options = options or LogOptions()
    if records:
        options = replace(options, tables=options.tables | {"records"})
    parts = list(decode_pieces(path, options, start, end))
    names = [name for name in _NAMES if name in options.tables or name in ("bad_input", "files")]
    return {
        name: pa.concat_tables(
            [part[name] for part in parts if name in part] or [TABLES[name].arrow.empty_table()]
        )
        for name in names
    }


def decode_pieces(
    path: str | Path, options: LogOptions, start: int = 0, end: int | None = None
) -> Iterator[LogTables]:
    """Yield the same in pieces, each of about one chunk; the row of `files` comes last."""
    file = readable(path)
    try:
        with open_source(Path(path)) as source:
            if not source.kind.has_batches:
                yield _without_batches(source, file, Path(path))
                return
            if options.size_max is not None:
                source.shorten(options.size_max)
            yield from _Decoder(source, file, options, start, end).tables()
    except StorageError as error:
        yield _unreadable(path, file, error, max(0, (end or 0) - start))


class _Decoder:
    """Builds the tables of one segment or snapshot, piece by piece."""

    def __init__(
        self, source: ByteSource, file: str, options: LogOptions, start: int, end: int | None
    ) -> None:
        self._source = source
        self._place = _placed(place_of(source, file), options)
        self._options = options
        self._start = start
        self._end = source.size if end is None else min(end, source.size)
        self._accounts = FileAccounts(file)
        self._sink = FileReport(self._accounts.note).sink(file)
        self._hides = not options.show_secrets
        self._is_metadata = self._place.family == "metadata"
        is_unknown = self._place.family is None and self._place.topic is None
        self._sink.hides_bytes = self._hides and (self._is_metadata or is_unknown)

    def tables(self) -> Iterator[LogTables]:
        """Yield all tables, and the row of `files`."""
        for piece in self._pieces():
            yield from self._piece(piece)
        kind = self._place.source
        size = max(0, self._end - self._start)
        cluster = cluster_of(self._source.path)
        accounts = self._accounts
        row = _file_row(accounts.file, size, kind, cluster=cluster, **accounts.sums())
        yield accounts.tables(row)

    def _pieces(self) -> Iterator[BatchPiece]:
        chunk = self._options.chunk_bytes
        return pieces_of(self._source, self._sink, self._start, self._end, chunk)

    def _piece(self, piece: BatchPiece) -> Iterator[LogTables]:
        if piece.batches is not None:
            yield from self._valid_batches(piece.batches, piece.position)
        elif piece.found is not None:
            yield from self._scanned_batch(piece.found)

    def _valid_batches(self, batches: Batches, position: int) -> Iterator[LogTables]:
        """Yield the tables of batches with correct CRCs."""
        self._accounts.batch_bytes += int(batches.sizes.sum())
        if self._options.batch_filter is not None:
            batches = batches.chosen(self._options.batch_filter.mask(batches))
        tables: LogTables = {}
        if "batches" in self._options.tables:
            tables["batches"] = batch_rows(self._place, batches, position)
        header = batches.header
        facts = BatchFacts(
            header["attributes"],
            header["leader_epoch"],
            header["producer_id"],
            batches.positions + position,
        )
        records = read_cut(batches) if self._wants_records else iter(())
        yield from self._with_records(tables, records, facts, batches.sizes)

    def _scanned_batch(self, found: FoundBatch) -> Iterator[LogTables]:
        """Yield the tables of one batch that the scanner found."""
        self._accounts.batch_bytes += found.header.size
        try:
            batch: Batch = next(read_batches(found.buffer, found.start))
        except (StopIteration, WireError) as error:
            # A message of an old magic whose key or value leads outside.
            if found.is_valid:
                self._count_bad("batch-damaged", found.position, found.header.size, str(error))
            return
        batch_filter = self._options.batch_filter
        if batch_filter is not None and not batch_filter.has(batch):
            return
        tables = {}
        if "batches" in self._options.tables:
            tables["batches"] = batch_row(
                self._place, batch, found.position, is_valid=found.is_valid
            )
        if self._wants_records and found.is_valid:
            cells = (
                batch.attributes, batch.partition_leader_epoch, batch.producer_id, found.position
            )  # fmt: skip
            facts = BatchFacts(*(np.array([each], np.int64) for each in cells))
            records = read_batch(batch, check_crc=False)
            yield from self._with_records(tables, records, facts, np.array([found.header.size]))
        elif tables:
            yield tables

    def _with_records(
        self, tables: LogTables, records: Iterator[Columns], facts: BatchFacts, sizes: Any
    ) -> Iterator[LogTables]:
        """Yield tables with those of the records of the same batches."""
        counted: set[int] = set()
        for columns in records:
            yield tables | self._record_tables(columns, facts, sizes, counted)
            tables = {}
            # One table is released before the next one is made.
            del columns
        if tables:
            yield tables

    @property
    def _wants_records(self) -> bool:
        wants_metadata = "metadata_records" in self._options.tables and self._place.family
        return bool("records" in self._options.tables or wants_metadata)

    def _record_tables(
        self, columns: Columns, facts: BatchFacts, sizes: Any, counted: set[int]
    ) -> LogTables:
        """Yield tables of some records; `counted` has the batches that already count as bad."""
        tables = {}
        for problem in columns.problems:
            if problem.batch in counted:
                continue
            position = int(facts.position[problem.batch])
            size = int(sizes[problem.batch])
            is_bomb = isinstance(problem.error, BombError)
            id = "batch-bomb" if is_bomb else "batch-damaged"
            self._count_bad(id, position, size, problem.error.problem)
            counted.add(problem.batch)
        if "records" in self._options.tables:
            values, names = None, self._options.columns
            if self._hides and (names is None or "value" in names):
                held = columns.table["value"]
                values = without_secrets(held, is_metadata=self._is_metadata)
            tables["records"] = record_rows(self._place, columns.table, facts, names, values)
        if "metadata_records" in self._options.tables and self._place.family:
            metadata = metadata_rows(
                self._place, columns.table, facts, show_secrets=self._options.show_secrets
            )
            tables["metadata_records"] = metadata.table
            for batch_index, error in metadata.problems:
                if batch_index not in counted:
                    position, size = int(facts.position[batch_index]), int(sizes[batch_index])
                    self._count_bad("record-undecoded", position, size, error.problem)
                counted.add(batch_index)
        return tables

    def _count_bad(self, id: str, position: int, size: int, detail: str) -> None:
        """Count the bytes of a batch as bad, unless they are counted already."""
        rows = self._accounts.rows
        if rows and rows[-1].id == "wrong-length" and rows[-1].position == position:
            size -= rows[-1].length
        head = self._source.read(position, min(size, 64))
        self._sink.add(id, position, detail, size=size, rest=head)


def _without_batches(source: ByteSource, file: str, path: Path) -> LogTables:
    """Return the tables of a file of another kind: its row of `files`, with its state if it has
    one that can be read.
    """
    state, bad = None, FileAccounts(file)
    try:
        state = state_of(source)
    except WireError as error:
        FindingSink(file, bad.note).add("unreadable-state", error.offset or 0, str(error))
    if source.kind is FileKind.META_PROPERTIES:
        state = with_refusal(state, path)
    kind = _named(source)
    is_foreign = source.kind.is_unknown and kind == source.kind and path.suffix != ".properties"
    if is_foreign and (text := way_out(source)) is not None:
        FindingSink(file, bad.note).add("unknown-file", 0, text)
    cluster = cluster_of(path)
    size = source.size
    return bad.tables(
        _file_row(file, size, kind, cluster=cluster, other_bytes=size, state=state)
    )


def _named(source: ByteSource) -> str:
    """Return the kind of a file, or what it is compressed with if that is not read."""
    packing = packing_of(bytes(source.read(0, 4))) if source.kind is FileKind.UNKNOWN else None
    return packing or str(source.kind)


def _placed(place: LogPlace, options: LogOptions) -> LogPlace:
    if options.family is None:
        return place
    family = None if options.family == "none" else options.family
    return LogPlace(
        place.file, place.source, place.topic, place.topic_id, place.partition, family
    )


def _unreadable(path: str | Path, file: str, error: StorageError, wanted: int) -> LogTables:
    """Return the tables of a file that cannot be read; one that is gone had the wanted bytes."""
    try:
        size = os.path.getsize(path)
    except OSError:
        size = wanted
    accounts = FileAccounts(file)
    detail = str(error).removeprefix(error.file).lstrip(": ")
    FindingSink(file, accounts.note).add("unreadable-file", 0, detail, size=size)
    return accounts.tables(_file_row(file, size, str(FileKind.UNKNOWN), **accounts.sums()))


def _file_row(file: str, size: int, kind: str, **more: Any) -> FileBytes:
    return FileBytes(file, size, kind, copied_packets=0, translated_connections=0, **more)
