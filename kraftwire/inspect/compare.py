"""Compares two captures of the same traffic, or two log directories, and reports differences."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from kraftwire import messages
from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.tls import KeyLog
from kraftwire.decode.api.logs import LogBatch, batches
from kraftwire.decode.files.folders import walk
from kraftwire.decode.files.kinds import parse_file_name
from kraftwire.decode.files.report import FileFinding
from kraftwire.decode.text import count_text
from kraftwire.errors import KraftwireError

# The memory for the frames of a capture that is compared with another one: COMPARED_BYTES_FREE,
# and COMPARED_BYTES_RATIO for each byte of its file. COMPARED_PROBLEMS_MAX problems are kept, and
# the rest counted.
COMPARED_BYTES_FREE = 12 * 1024 * 1024
COMPARED_BYTES_RATIO = 4
COMPARED_PROBLEMS_MAX = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the two sides differ.

    `subject` is a partition, a file or a connection; `kind` is the key of `details` in JSON
    and `text` the words for people. `first` and `second` are what each side has.
    """

    subject: str
    kind: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The difference as a JSON object."""
        return {"subject": self.subject, "difference": self.kind, **self.details}


@dataclass(slots=True)
class Comparison:
    """The result of a comparison: the differences, and how much was compared.

    `compared` counts what both sides have: batches, or frames; `incomplete` counts what both have,
    but of which one lacks bytes. `problems` are what could not be read, the first of them, and
    `more_problems` counts the others.
    """

    noun: str
    differences: list[Difference] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    subjects: int = 0
    compared: int = 0
    incomplete: int = 0
    more_problems: int = 0

    def note(self, problem: str) -> None:
        """Keep a problem, or only count it if there are many."""
        if len(self.problems) < COMPARED_PROBLEMS_MAX:
            self.problems.append(problem)
        else:
            self.more_problems += 1


_SHOWN_MAX = 3

# The memory that is kept for a frame, and for a direction of a connection by itself.
_FRAME_BYTES = 200
_LINE_BYTES = 800

# Digest, API key, version and size of a frame. No key is as low as that of a token.
_FACTS = struct.Struct(">12shhi")
_DIGEST_SIZE = 12
_TOKEN = -(2**15)
_UNKNOWN = bytes(_DIGEST_SIZE)

# Correlation id, and how often it has come before.
_Key = int | None | tuple[int | None, int]


@dataclass(slots=True)
class _Direction:
    """The frames of one direction of a connection, by correlation id.

    `times` counts those whose id has come before.
    """

    frames: dict[_Key, bytes] = field(default_factory=dict)
    times: dict[int | None, int] = field(default_factory=dict)

    def add(self, frame: RawFrame) -> None:
        """Add the next frame."""
        number = frame.correlation_id
        key: _Key = number
        if number in self.frames:
            count = self.times[number] = self.times.get(number, 0) + 1
            key = number, count
        digest = _UNKNOWN
        if not frame.missing:
            digest = blake2b(frame.data, digest_size=_DIGEST_SIZE).digest()
        api = _TOKEN if frame.api_key is None else frame.api_key
        self.frames[key] = _FACTS.pack(digest, api, frame.api_version or 0, frame.size)


def _frame_text(subject: str, key: _Key, facts: bytes) -> str:
    """Describe a frame in words."""
    _, api, version, size = _FACTS.unpack(facts)
    name = "token" if api == _TOKEN else f"{messages.API_NAMES.get(api, api)} v{version}"
    number = key[0] if isinstance(key, tuple) else key
    return f"{name} {subject.rpartition(' ')[2].removesuffix('s')} {number}, {size} bytes"


def compare_captures(first: Path, second: Path, keys: KeyLog | None = None) -> Comparison:
    """Compare two captures. Raises: StorageError if one of them cannot be read."""
    made = Comparison("frames")
    sides = [_read(path, keys, made.note) for path in (first, second)]
    for connection in sorted({*sides[0], *sides[1]}):
        made.subjects += 1
        one, other = sides[0].get(connection), sides[1].get(connection)
        if one is None or other is None:
            which = "first" if other is None else "second"
            count = len((one or other or _Direction()).frames)
            text = f"only in the {which}, {count_text(count, 'frame')}"
            details = {"onlyIn": which, "frames": count}
            made.differences.append(Difference(connection, "onlyIn", text, details))
        else:
            _compare(connection, one, other, made)
    return made


def _read(path: Path, keys: KeyLog | None, tell: Callable[[str], None]) -> dict[str, _Direction]:
    """The frames of a capture by connection and direction."""
    found: dict[str, _Direction] = {}
    capture = Capture(str(path), keys=keys)
    room = COMPARED_BYTES_FREE + COMPARED_BYTES_RATIO * path.stat().st_size
    for frame in capture:
        subject = f"{frame.connection} {frame.direction}s"
        direction = found.get(subject)
        if direction is None:
            direction = found[subject] = _Direction()
            room -= _LINE_BYTES
        direction.add(frame)
        room -= _FRAME_BYTES
        if room < 0:
            tell(f"{path}: too many frames for so small a file, the rest is not compared")
            capture.close()
            break
    if capture.health.is_damaged:
        tell(f"{path}: {capture.health.problem}")
    return found


def _compare(subject: str, one: _Direction, other: _Direction, into: Comparison) -> None:
    changed = []
    for key, facts in one.frames.items():
        others_facts = other.frames.get(key)
        if others_facts is None:
            continue
        digests = facts[:_DIGEST_SIZE], others_facts[:_DIGEST_SIZE]
        if _UNKNOWN in digests:
            # The content of a frame with missing bytes is unknown.
            into.incomplete += 1
            continue
        into.compared += 1
        if digests[0] != digests[1]:
            changed.append(key)
    if changed:
        key = changed[0]
        first_text, second_text = (
            _frame_text(subject, key, each.frames[key]) for each in (one, other)
        )
        text = f"{first_text}: the first frame that differs"
        if first_text != second_text:
            text += f"; in the second {second_text}"
        if len(changed) > 1:
            text += f"; {len(changed) - 1:,} more differ"
        details = {"first": first_text, "second": second_text, "count": len(changed)}
        into.differences.append(Difference(subject, "frame", text, details))
    for which, mine, theirs in (("first", one, other), ("second", other, one)):
        lone = [key for key in mine.frames if key not in theirs.frames]
        if lone:
            first = [_frame_text(subject, key, mine.frames[key]) for key in lone[:_SHOWN_MAX]]
            shown = "; ".join(first)
            more = f"; {len(lone) - _SHOWN_MAX:,} more" if len(lone) > _SHOWN_MAX else ""
            text = f"{count_text(len(lone), 'frame')} only in the {which}: {shown}{more}"
            details = {"onlyIn": which, "count": len(lone), "frames": first}
            into.differences.append(Difference(subject, "frames", text, details))


# Files by their folder, snapshots each by itself, segments in the order of their offsets.
_Logs = dict[str, list[Path]]

# How many differences of one partition are reported one by one.
_DIFFERENCES_SHOWN = 10
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
            _LogComparison(name, made, sides[0], sides[1]).run()
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


class _LogComparison:
    """Compares both logs of a partition, batch by batch."""

    def __init__(
        self, subject: str, into: Comparison, first: list[Path], second: list[Path]
    ) -> None:
        self._subject = subject
        self._into = into
        self._first, self._second = _Side(first, into), _Side(second, into)
        self._missing = _Missing()
        self._difference_count = 0

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
        self._report_missing()
        if self._difference_count > _DIFFERENCES_SHOWN:
            more = self._difference_count - _DIFFERENCES_SHOWN
            self._add("more", f"{more:,} more differences", {"count": more})

    def _both(self, one: LogBatch, other: LogBatch) -> None:
        self._into.compared += 1
        self._report_missing()
        words = _differing(one, other)
        if not words:
            return
        self._difference_count += 1
        if self._difference_count <= _DIFFERENCES_SHOWN:
            which = (
                "the first batch that differs" if self._difference_count == 1 else "also differs"
            )
            offset = max(one.batch.base_offset, other.batch.base_offset)
            places = f"{one.file} at {one.position}, {other.file} at {other.position}"
            details = {"offset": offset, "first": _facts(one), "second": _facts(other)}
            self._add("batch", f"offset {offset}: {which}, in {words} ({places})", details)

    def _only(self, which: str, side: _Side) -> None:
        """Note the present batch, which only one side has."""
        assert side.batch is not None
        missing = self._missing
        if missing.which != which:
            self._report_missing()
            self._missing = missing = _Missing(which, side.base)
        missing.end = side.last
        missing.records += side.batch.batch.count
        side.step()

    def _report_missing(self) -> None:
        missing, self._missing = self._missing, _Missing()
        if not missing.which:
            return
        self._difference_count += 1
        if self._difference_count > _DIFFERENCES_SHOWN:
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
    content = batch.batch
    return {
        "file": batch.file,
        "position": batch.position,
        "baseOffset": content.base_offset,
        "lastOffset": content.last_offset,
        "partitionLeaderEpoch": content.partition_leader_epoch,
        "crc": content.crc,
        "size": content.size,
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
