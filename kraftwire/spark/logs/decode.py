"""Converts a file of a log directory to Arrow tables: batches, records, their meaning, byte counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.decode.files import FileKind, FileReport, open_source
from kraftwire.decode.files.report import FindingSink
from kraftwire.decode.files.scan import FoundBatch
from kraftwire.decode.files.source import ByteSource
from kraftwire.errors import StorageError, WireError
from kraftwire.records.limits import BombError
from kraftwire.records.reader import Batch, read_batches
from kraftwire.spark.columns import Batches, Columns, read_batch, read_cut
from kraftwire.spark.logs.accounts import Accounts, bad_rows, file_row
from kraftwire.spark.logs.meaning import meaning_of, without_secrets
from kraftwire.spark.logs.place import Place, cluster_of, place_of
from kraftwire.spark.logs.plan import CHUNK_BYTES, Piece, packing_of, pieces_of
from kraftwire.spark.logs.rows import BatchFacts, batch_row, batch_rows, record_rows
from kraftwire.spark.logs.transactions import Choice
from kraftwire.spark.paths import readable
from kraftwire.spark.tables import TABLES

__all__ = ["LOG_TABLES", "LogOptions", "Tables", "decode_pieces", "decode_tables"]

Tables = dict[str, Any]

_NAMES = ("batches", "records", "metadata_records", "bad_input", "files")

# The optional tables of a file.
LOG_TABLES = frozenset(_NAMES) - {"bad_input", "files"}


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What to decode from a file.

    `tables` names the requested tables, `bad_input` and `files` are always included; `family`
    overrides the family that the folder's name implies, as of `family_of_topic`; `choice` excludes
    batches from the tables, but never from the byte counts; a growing file is read as if it ended
    at `size_max`. Only the columns of `records` in `columns` are made.
    """

    tables: frozenset[str] = frozenset({"batches", "metadata_records"})
    show_secrets: bool = False
    family: str | None = None
    chunk_bytes: int = CHUNK_BYTES
    choice: Choice | None = None
    size_max: int | None = None
    columns: frozenset[str] | None = None


def decode_tables(
    path: str | Path,
    *,
    records: bool = False,
    start: int = 0,
    end: int | None = None,
    options: LogOptions | None = None,
) -> Tables:
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
) -> Iterator[Tables]:
    """Yield the same in pieces, each of about one chunk; the row of `files` comes last."""
    file = readable(path)
    try:
        with open_source(Path(path)) as source:
            if not source.kind.has_batches:
                cluster = cluster_of(Path(path))
                kind = _named(source)
                yield {"files": file_row(file, kind, source.size, None, cluster)}
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
        self._accounts = Accounts(file)
        self._sink = FileReport(self._accounts.note).sink(file)
        self._hides = not options.show_secrets
        self._is_metadata = self._place.family == "metadata"
        is_unknown = self._place.family is None and self._place.topic is None
        self._sink.hides_bytes = self._hides and (self._is_metadata or is_unknown)

    def tables(self) -> Iterator[Tables]:
        """Yield all tables, and the row of `files`."""
        for piece in self._pieces():
            yield from self._piece(piece)
        kind = self._place.source
        size = max(0, self._end - self._start)
        cluster = cluster_of(self._source.path)
        row = file_row(self._place.file, kind, size, self._accounts, cluster)
        yield {"bad_input": self._accounts.take_rows(), "files": row}

    def _pieces(self) -> Iterator[Piece]:
        chunk = self._options.chunk_bytes
        return pieces_of(self._source, self._sink, self._start, self._end, chunk)

    def _piece(self, piece: Piece) -> Iterator[Tables]:
        if piece.batches is not None:
            yield from self._sound(piece.batches, piece.position)
        elif piece.found is not None:
            yield from self._judged(piece.found)

    def _sound(self, batches: Batches, position: int) -> Iterator[Tables]:
        """Yield the tables of batches with correct CRCs."""
        self._accounts.batch_bytes += int(batches.sizes.sum())
        if self._options.choice is not None:
            batches = batches.chosen(self._options.choice.mask(batches))
        tables: Tables = {}
        if "batches" in self._options.tables:
            tables["batches"] = batch_rows(self._place, batches, position)
        header = batches.header
        facts = BatchFacts(
            header["attributes"],
            header["leader_epoch"],
            header["producer_id"],
            batches.positions + position,
        )
        if self._wants_records:
            told: set[int] = set()
            for columns in read_cut(batches):
                yield tables | self._record_tables(columns, facts, batches.sizes, told)
                tables = {}
                # One table is released before the next one is made.
                del columns
        if tables:
            yield tables

    def _judged(self, found: FoundBatch) -> Iterator[Tables]:
        """Yield the tables of one batch from the scan."""
        self._accounts.batch_bytes += found.header.size
        try:
            batch: Batch = next(read_batches(found.buffer, found.start))
        except (StopIteration, WireError) as error:
            # A message of an old magic whose key or value leads outside.
            if found.is_valid:
                self._tell("batch-damaged", found.position, found.header.size, str(error))
            return
        choice = self._options.choice
        if choice is not None and not choice.has(batch):
            return
        tables = {}
        if "batches" in self._options.tables:
            tables["batches"] = batch_row(
                self._place, batch, found.position, is_valid=found.is_valid
            )
        if self._wants_records and found.is_valid:
            facts = BatchFacts(
                *(
                    np.array([each], np.int64)
                    for each in (
                        batch.attributes,
                        batch.partition_leader_epoch,
                        batch.producer_id,
                        found.position,
                    )
                )
            )
            told: set[int] = set()
            for columns in read_batch(batch, check_crc=False):
                yield tables | self._record_tables(
                    columns, facts, np.array([found.header.size]), told
                )
                tables = {}
                del columns
        if tables:
            yield tables

    @property
    def _wants_records(self) -> bool:
        wants_meaning = "metadata_records" in self._options.tables and self._place.family
        return bool("records" in self._options.tables or wants_meaning)

    def _record_tables(
        self, columns: Columns, facts: BatchFacts, sizes: Any, told: set[int]
    ) -> Tables:
        """Yield tables of some records; `told` has the batches that already count as bad."""
        tables = {}
        for problem in columns.problems:
            if problem.batch in told:
                continue
            position = int(facts.position[problem.batch])
            size = int(sizes[problem.batch])
            is_bomb = isinstance(problem.error, BombError)
            id = "batch-bomb" if is_bomb else "batch-damaged"
            self._tell(id, position, size, problem.error.problem)
            told.add(problem.batch)
        if "records" in self._options.tables:
            values, names = None, self._options.columns
            if self._hides and (names is None or "value" in names):
                held = columns.table["value"]
                values = without_secrets(held, is_metadata=self._is_metadata)
            tables["records"] = record_rows(self._place, columns.table, facts, names, values)
        if "metadata_records" in self._options.tables and self._place.family:
            meaning = meaning_of(
                self._place, columns.table, facts, show_secrets=self._options.show_secrets
            )
            tables["metadata_records"] = meaning.table
            for lane, error in meaning.problems:
                if lane not in told:
                    position, size = int(facts.position[lane]), int(sizes[lane])
                    self._tell("record-undecoded", position, size, error.problem)
                told.add(lane)
        return tables

    def _tell(self, id: str, position: int, size: int, detail: str) -> None:
        """Count the bytes of a batch as bad, unless they are counted already."""
        rows = self._accounts.rows
        if rows and rows[-1]["id"] == "wrong-length" and rows[-1]["position"] == position:
            size -= rows[-1]["length"]
        head = self._source.read(position, min(size, 64))
        self._sink.add(id, position, detail, size=size, rest=head)


def _named(source: ByteSource) -> str:
    """Return the kind of a file, or what it is compressed with if that is not read."""
    packing = packing_of(bytes(source.read(0, 4))) if source.kind is FileKind.UNKNOWN else None
    return packing or str(source.kind)


def _placed(place: Place, options: LogOptions) -> Place:
    if options.family is None:
        return place
    family = None if options.family == "none" else options.family
    return Place(
        place.file, place.source, place.topic, place.topic_id, place.partition, family
    )


def _unreadable(path: str | Path, file: str, error: StorageError, wanted: int) -> Tables:
    """Return the tables of a file that cannot be read; one that is gone had the wanted bytes."""
    try:
        size = os.path.getsize(path)
    except OSError:
        size = wanted
    accounts = Accounts(file)
    detail = str(error).removeprefix(error.file).lstrip(": ")
    FindingSink(file, accounts.note).add("unreadable-file", 0, detail, size=size)
    return {
        "bad_input": bad_rows(accounts.rows),
        "files": file_row(file, str(FileKind.UNKNOWN), size, accounts),
    }
