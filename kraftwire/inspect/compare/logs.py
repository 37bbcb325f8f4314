"""Two log directories: for each partition the first batch that differs, and records that only one
has.

Owns the walk along both logs by offset. Replicas have the same batches, byte for byte, in segments
of other sizes perhaps; where cleaning has left other batches, their offsets are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kraftwire.decode.api.logs import LogBatch, batches
from kraftwire.decode.files.findings import FileFinding
from kraftwire.decode.files.names import parse_file_name
from kraftwire.decode.files.walk import walk
from kraftwire.errors import KraftwireError
from kraftwire.inspect.compare.difference import Comparison, Difference

__all__ = ["compare_logs"]

# Files by their folder, snapshots each by itself, segments in the order of their offsets.
_Logs = dict[str, list[Path]]

# How many differences of one partition are reported one by one.
_TOLD_MAX = 10
_LOG, _CHECKPOINT = "log", "checkpoint"


def compare_logs(first: Path, second: Path) -> Comparison:
    """Compare the files under two folders, or two segments."""
    made = Comparison("batches")
    logs = _found(first, made), _found(second, made)
    for key in sorted({*logs[0], *logs[1]}):
        made.subjects += 1
        sides = [each.get(key, []) for each in logs]
        # A folder that is a partition's itself goes by its own name.
        name = first.absolute().name + key[1:] if key.startswith(".") else key
        if not all(sides):
            which = "second" if sides[1] else "first"
            text = f"only in the {which}"
            made.differences.append(Difference(name, "onlyIn", text, {"onlyIn": which}))
        else:
            _Walk(name, made, sides[0], sides[1]).run()
    return made


def _found(path: Path, into: Comparison) -> _Logs:
    """The logs and snapshots under a path."""
    found: _Logs = {}
    is_alone = path.is_file()
    for file in walk([path], lambda error: into.note(str(error))):
        name = parse_file_name(file.name)
        is_wanted = name.suffix in (_LOG, _CHECKPOINT) and not name.state
        if not is_wanted and not is_alone:
            continue
        folder = "" if is_alone else file.parent.relative_to(path).as_posix()
        key = f"{folder}/{name.stem}" if name.suffix == _CHECKPOINT and not is_alone else folder
        found.setdefault(key, []).append(file)
    for files in found.values():
        files.sort(key=lambda each: each.name)
    return found


class _Side:
    """The batches of one side, one at a time."""

    def __init__(self, files: list[Path], into: Comparison) -> None:
        self._into = into
        self._batches = self._read(files)
        self.batch: LogBatch | None = None
        self.first = self.end = -1
        self.step()

    def _read(self, files: list[Path]) -> Iterator[LogBatch]:
        for file in files:
            try:
                yield from batches(file, self._note)
            except KraftwireError as error:
                self._into.note(str(error))

    def _note(self, finding: FileFinding) -> None:
        if finding.is_loss:
            self._into.note(str(finding))

    def step(self) -> None:
        """Go to the next batch."""
        self.batch = next(self._batches, None)
        if self.batch is not None:
            if self.first < 0:
                self.first = self.base
            self.end = max(self.end, self.last + 1)

    @property
    def base(self) -> int:
        """Offset of the batch's first record."""
        return self.batch.batch.base_offset if self.batch else -1

    @property
    def last(self) -> int:
        """Offset of the batch's last record."""
        return self.batch.batch.last_offset if self.batch else -1


@dataclass(slots=True)
class _Missing:
    """A range of consecutive offsets that only one side has."""

    which: str = ""
    start: int = 0
    end: int = 0
    records: int = 0


class _Walk:
    """Walks along both logs of a partition."""

    def __init__(
        self, subject: str, into: Comparison, first: list[Path], second: list[Path]
    ) -> None:
        self._subject = subject
        self._into = into
        self._first, self._second = _Side(first, into), _Side(second, into)
        self._missing = _Missing()
        self._told = 0

    def run(self) -> None:
        """Compare batch by batch."""
        one, other = self._first, self._second
        while one.batch is not None or other.batch is not None:
            if one.batch is None or (other.batch is not None and other.last < one.base):
                self._only("second", other)
            elif other.batch is None or one.last < other.base:
                self._only("first", one)
            else:
                self._both(one.batch, other.batch)
                # Batches of other borders: the one that ends first is skipped.
                ends = one.last, other.last
                if ends[0] <= ends[1]:
                    one.step()
                if ends[1] <= ends[0]:
                    other.step()
        self._tell_missing()
        if self._told > _TOLD_MAX:
            more = self._told - _TOLD_MAX
            self._add("more", f"{more:,} more differences", {"count": more})

    def _both(self, one: LogBatch, other: LogBatch) -> None:
        self._into.compared += 1
        self._tell_missing()
        words = _differing(one, other)
        if not words:
            return
        self._told += 1
        if self._told <= _TOLD_MAX:
            which = "the first batch that differs" if self._told == 1 else "also differs"
            offset = max(one.batch.base_offset, other.batch.base_offset)
            places = f"{one.file} at {one.position}, {other.file} at {other.position}"
            details = {"offset": offset, "first": _facts(one), "second": _facts(other)}
            self._add("batch", f"offset {offset}: {which}, in {words} ({places})", details)

    def _only(self, which: str, side: _Side) -> None:
        """Note the present batch, which only one side has."""
        assert side.batch is not None
        missing = self._missing
        if missing.which != which:
            self._tell_missing()
            self._missing = missing = _Missing(which, side.base)
        missing.end = side.last
        missing.records += side.batch.batch.count
        side.step()

    def _tell_missing(self) -> None:
        missing, self._missing = self._missing, _Missing()
        if not missing.which:
            return
        self._told += 1
        if self._told > _TOLD_MAX:
            return
        other = self._second if missing.which == "first" else self._first
        name = "second" if missing.which == "first" else "first"
        place = f"missing inside the {name}"
        if other.end < 0:
            place = f"the {name} is empty"
        elif other.batch is None and other.end <= missing.start:
            place = f"after the end of the {name} at {other.end}"
        elif missing.end < other.first:
            place = f"before the {name} begins at {other.first}"
        count = f"{missing.records:,} record{'s' * (missing.records != 1)}"
        where = f"offsets {missing.start}-{missing.end}"
        text = f"{where}: {count} only in the {missing.which}, {place}"
        details = {"firstOffset": missing.start, "lastOffset": missing.end,
                   "records": missing.records, "onlyIn": missing.which}  # fmt: skip
        self._add("records", text, details)

    def _add(self, kind: str, text: str, details: dict[str, object]) -> None:
        self._into.differences.append(Difference(self._subject, kind, text, details))


def _facts(batch: LogBatch) -> dict[str, object]:
    """Return where a batch is, and what distinguishes it from other batches."""
    held = batch.batch
    return {
        "file": batch.file,
        "position": batch.position,
        "baseOffset": held.base_offset,
        "lastOffset": held.last_offset,
        "partitionLeaderEpoch": held.partition_leader_epoch,
        "crc": held.crc,
        "size": held.size,
    }


def _differing(one: LogBatch, other: LogBatch) -> str:
    """Return how two batches of the same offsets differ; empty if they do not."""
    if bytes(one.batch.raw) == bytes(other.batch.raw):
        return ""
    facts, others = _facts(one), _facts(other)
    found = []
    if (facts["baseOffset"], facts["lastOffset"]) != (others["baseOffset"], others["lastOffset"]):
        found.append(
            f"offsets {facts['baseOffset']}-{facts['lastOffset']} and "
            f"{others['baseOffset']}-{others['lastOffset']}"
        )
    for key, word in (("partitionLeaderEpoch", "leader epoch"), ("size", "size")):
        if facts[key] != others[key]:
            found.append(f"{word} {facts[key]} and {others[key]}")
    if facts["crc"] != others["crc"]:
        found.append(f"crc {facts['crc']:08x} and {others['crc']:08x}")
    return ", ".join(found) or "its bytes"
