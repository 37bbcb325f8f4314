"""The metadata log of a live quorum as a source of a run: read from where the last run stopped, up
to the high watermark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kraftwire.client import Admin
from kraftwire.client.cluster import is_temporary
from kraftwire.client.metadata_log import Position, QuorumReader
from kraftwire.client.security import Given
from kraftwire.errors import ApiError
from kraftwire.spark.quorum import log_rows, snapshot_rows
from kraftwire.spark.run.manifest import Source, TablePart
from kraftwire.spark.run.parts import PartWriter
from kraftwire.spark.tables import find_table

_TABLE = "metadata_records"

# How long a round waits for a leader.
_PATIENCE_S = 30.0
# How long the first look at a quorum takes; what is refused is refused sooner.
_LOOK_S = 5.0

# This many parts are merged into one: a reader of the table opens each.
_PARTS_MAX = 64


@dataclass(slots=True)
class QuorumRead:
    """The result of a read: the updated source, and parts that are not committed yet.

    There is no source if nothing was committed since the last read, or with a `problem` that may be
    temporary.
    """

    source: Source | None = None
    parts: list[TablePart] = field(default_factory=list)
    problem: str = ""


def check_access(quorums: Sequence[str], security: Given = None) -> None:
    """Check that quorums grant access, before anything expensive begins.

    One that is unreachable may come back. Raises: ApiError if one refuses, SecurityError if
    `security` does not let connections pass.
    """
    for bootstrap in quorums:
        admin = Admin(bootstrap_controllers=bootstrap, timeout_s=_LOOK_S, security=security)
        try:
            admin.describe_cluster()
        except ApiError as error:
            if not is_temporary(error):
                raise


def read_live(
    folder: Path,
    bootstrap: str,
    sources: dict[str, Source],
    tags: Mapping[str, str],
    security: Given = None,
) -> QuorumRead:
    """Read what a quorum has committed since the last read, and write it aside.

    The cluster id identifies a quorum, whatever addresses are given. Raises: ApiError if
    it refuses, SecurityError if `security` does not let its connections pass, LogMovedError if the
    log is not the one that was read.
    """
    try:
        return _read(folder, bootstrap, sources, tags, security)
    except ApiError as error:
        if not is_temporary(error):
            raise
        return QuorumRead(problem=f"{bootstrap}: {error.detail}")


def _read(
    folder: Path,
    bootstrap: str,
    sources: dict[str, Source],
    tags: Mapping[str, str],
    security: Given,
) -> QuorumRead:
    admin = Admin(bootstrap_controllers=bootstrap, timeout_s=_PATIENCE_S, security=security)
    cluster = admin.describe_cluster().cluster_id
    name = "quorum-" + hashlib.sha256(cluster.encode()).hexdigest()[:16]
    source = sources.get(name) or Source(name, [])
    with QuorumReader(bootstrap, patience_s=_PATIENCE_S, security=security) as reader:
        start = Position(**source.state) if source.state else None
        snapshot = None
        if start is None:
            start, snapshot = reader.begin()
        end = max(reader.high_watermark(start), start.next_offset)
        if source.state and end == start.next_offset:
            return QuorumRead()
        target = Position(reader.epoch_before(end), end)
        kept = source.parts if len(source.parts) < _PARTS_MAX else []
        with PartWriter(folder, f"{name}-{end}", 0, tags) as writer:
            for part in source.parts[len(kept) :]:
                for batch in _batches(folder, part):
                    writer.write(_TABLE, batch)
            if snapshot is not None:
                for table in snapshot_rows(reader, snapshot):
                    writer.write(_TABLE, table)
            for table in log_rows(reader, start, target):
                writer.write(_TABLE, table)
    made = Source(name, [], list(kept), target._asdict())
    return QuorumRead(made, writer.parts)


def _batches(folder: Path, part: TablePart) -> Iterator[Any]:
    columns = find_table(part.table).arrow.names
    yield from pq.ParquetFile(folder / part.table / part.path).iter_batches(columns=columns)
