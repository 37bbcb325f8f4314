"""Partitions as written by a broker, and a stream that reads them without Spark."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadLimit

from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.spark.sources.log import LogDataSource

__all__ = ["Partition", "Stream", "batch"]

TIME = 1_760_000_000_000


def batch(offset: int, count: int = 10, *, epoch: int = 1, value: bytes = b"v") -> bytes:
    """A batch of records from an offset on."""
    records = [Record(offset + n, TIME + offset + n, None, value) for n in range(count)]
    return build_batch(records, BatchHeader(partition_leader_epoch=epoch))


class Partition:
    """The folder of a partition that is written to."""

    def __init__(self, root: Path, name: str = "orders-0", first: int = 0) -> None:
        self.folder = root / name
        self.folder.mkdir(parents=True)
        self.next_offset = first
        self.roll()

    def roll(self) -> Path:
        """Begin a new segment."""
        self.segment = self.folder / f"{self.next_offset:020}.log"
        self.segment.touch()
        return self.segment

    def append(self, count: int = 10, *, epoch: int = 1, value: bytes = b"v") -> None:
        """Write a batch."""
        self.write(batch(self.next_offset, count, epoch=epoch, value=value))
        self.next_offset += count

    def write(self, data: bytes) -> None:
        """Write any bytes."""
        with self.segment.open("ab") as file:
            file.write(data)

    def truncate(self, size: int) -> None:
        """Cut the segment."""
        with self.segment.open("r+b") as file:
            file.truncate(size)


class Stream:
    """A query over folders: what Spark does with a reader, one trigger at a time.

    `rows` are those of triggers that were committed; `log` has every offset that was
    reached, as the JSON that a checkpoint keeps.
    """

    def __init__(self, path: Path | str, **options: str) -> None:
        self._path = str(path)
        self._options = options
        self.rows: list[dict[str, Any]] = []
        self.log: list[str] = []
        self.committed = 0
        self.restart()

    def restart(self) -> None:
        """Forget everything that is not in the checkpoint."""
        source = LogDataSource({"path": self._path, **self._options})
        self.reader = source.streamReader(source.schema())
        if not self.log:
            self.log.append(json.dumps(self.reader.initialOffset()))

    def plan(self, limit: ReadLimit | None = None) -> bool:
        """Write the offset of the next trigger to the checkpoint; false if there is nothing new."""
        start = json.loads(self.log[-1])
        kept = copy.deepcopy(start)
        reached = self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())
        assert start == kept, "the reader has changed an offset that is not its own"
        if json.dumps(reached) == self.log[-1]:
            return False
        self.log.append(json.dumps(reached))
        return True

    def read(self) -> list[dict[str, Any]]:
        """Read the trigger that was planned last, which may fail or be done again."""
        start, end = map(json.loads, self.log[-2:])
        found = []
        for partition in self.reader.partitions(start, end):
            for one in self.reader.read(partition):
                found += one.to_pylist()
        return found

    def commit(self, rows: list[dict[str, Any]]) -> None:
        """Commit the rows of a trigger."""
        self.rows += rows
        self.committed = len(self.log) - 1

    def trigger(self) -> int:
        """Plan, read and commit; returns the number of rows."""
        if not self.plan():
            return 0
        rows = self.read()
        self.commit(rows)
        return len(rows)

    def drain(self) -> None:
        """Trigger until there is nothing new."""
        while self.plan():
            self.commit(self.read())

    @property
    def offsets(self) -> list[int]:
        """Offsets of all rows, in their order."""
        return [row["offset"] for row in self.rows]
