"""Following a growing segment, with a script of changes in place of a clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kraftwire.decode.files.growing_segment import follow
from kraftwire.decode.files.report import FileFinding, FileReport
from kraftwire.decode.files.segment import FileOptions
from kraftwire.errors import UsageError
from tests.support.logs.bytes import batch, segment

Change = Callable[[], object]


@dataclass
class Followed:
    """What following a file through a script of changes gave."""

    offsets: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [finding.id for finding in self.findings]


def run(path: Path, *changes: Change) -> Followed:
    """Follow a path; each time nothing is new one change is made, then the reader is stopped."""
    result = Followed()
    script: Iterator[Change] = iter(changes)

    def wait() -> bool:
        change = next(script, None)
        if change is None:
            return False
        change()
        return True

    report = FileReport(result.findings.append)
    for line in follow(path, FileOptions(), report, wait):
        result.offsets.append(line.json["baseOffset"])
        result.files.append(Path(line.json["file"]).name)
    return result


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "topic-0" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(segment(0, 2)))
    return path


def append(path: Path, data: bytes) -> Change:
    def change() -> None:
        with path.open("ab") as file:
            file.write(data)

    return change


def test_new_batches_are_shown_as_they_come(log: Path) -> None:
    """Each batch once, in order."""
    parts = segment(0, 5)
    result = run(log, append(log, parts[2]), append(log, parts[3] + parts[4]))
    assert result.offsets == [0, 3, 6, 9, 12]
    assert result.findings == []


def test_a_batch_is_shown_when_its_last_byte_is_there(log: Path) -> None:
    """A reader may see a write half done, cut anywhere."""
    part = segment(0, 3)[2]
    for cut in (1, 8, 12, 17, 60, 61, 62, len(part) - 1):
        log.write_bytes(b"".join(segment(0, 2)))
        result = run(log, append(log, part[:cut]), append(log, part[cut:]))
        assert result.offsets == [0, 3, 6], cut
        assert result.findings == [], cut


def test_a_preallocated_tail_is_waited_at(log: Path) -> None:
    """With log.preallocate the batch is written over existing zeros."""
    parts = segment(0, 3)
    log.write_bytes(b"".join(parts[:2]) + bytes(10_000))

    def write() -> None:
        with log.open("r+b") as file:
            file.seek(len(parts[0]) + len(parts[1]))
            file.write(parts[2])

    result = run(log, write)
    assert result.offsets == [0, 3, 6]
    assert result.findings == []


def test_truncation_and_what_replaces_it_are_shown(log: Path) -> None:
    """A new leader makes a follower truncate its log and write other batches there."""
    parts = segment(0, 4)
    log.write_bytes(b"".join(parts))
    other = batch(6, [b"of another leader"] * 3, leader_epoch=1)
    keep = len(parts[0]) + len(parts[1])
    result = run(log, lambda: os.truncate(log, keep), append(log, other))
    assert result.offsets == [0, 3, 6, 9, 6]
    assert [(f.id, f.position, f.is_loss) for f in result.findings] == [("truncated", keep, False)]


def test_a_truncation_between_two_looks_is_seen_too(log: Path) -> None:
    """The file may be longer than before when the reader looks again."""
    parts = segment(0, 4)
    log.write_bytes(b"".join(parts))
    other = batch(6, [b"x" * 500] * 3, leader_epoch=1)

    def truncate_and_write() -> None:
        log.write_bytes(parts[0] + parts[1] + other)

    result = run(log, truncate_and_write)
    assert result.offsets == [0, 3, 6, 9, 6]
    assert result.ids == ["truncated"]


def test_the_reader_rolls_to_the_next_segment(log: Path) -> None:
    """The last batches of the old one are not missed."""
    parts = segment(0, 4)
    following = log.with_name(f"{9:020d}.log")

    def roll() -> None:
        append(log, parts[2])()
        following.write_bytes(parts[3])

    result = run(log, roll, append(following, segment(0, 5)[4]))
    assert result.offsets == [0, 3, 6, 9, 12]
    assert result.files == [log.name] * 3 + [following.name] * 2
    assert result.findings == []


def test_an_unfinished_batch_before_a_roll_is_reported(log: Path) -> None:
    """The old segment will not grow any more."""
    parts = segment(0, 4)

    def roll() -> None:
        append(log, parts[2][:30])()
        log.with_name(f"{9:020d}.log").write_bytes(parts[3])

    result = run(log, roll)
    assert result.offsets == [0, 3, 9]
    assert result.ids == ["batch-cut"]


def test_a_folder_stands_for_its_last_segment(log: Path) -> None:
    """That is the one that grows."""
    log.with_name(f"{6:020d}.log").write_bytes(segment(6, 1)[0])
    log.with_name(f"{9:020d}.log.deleted").write_bytes(b"")
    assert run(log.parent).offsets == [6]


def test_a_folder_of_partitions_stands_for_its_metadata_log(log: Path) -> None:
    """log.dirs names such a folder, and a controller has no other log."""
    log.parent.rename(log.parent.with_name("__cluster_metadata-0"))
    (log.parent.parent / "bootstrap.checkpoint").write_bytes(b"")
    other = log.parent.parent / "topic-1" / log.name
    other.parent.mkdir()
    other.write_bytes(segment(50, 1)[0])
    assert run(log.parent.parent).offsets == [0, 3]


def test_a_folder_with_one_partition_stands_for_it(log: Path) -> None:
    """There is nothing to choose from."""
    (log.parent.parent / "empty-0").mkdir()
    assert run(log.parent.parent).offsets == [0, 3]


def test_a_folder_of_many_partitions_asks_for_one(log: Path) -> None:
    """Following an accidental one would look like a quiet log."""
    for number in range(1, 6):
        other = log.parent.parent / f"topic-{number}" / log.name
        other.parent.mkdir()
        other.write_bytes(segment(50, 1)[0])
    with pytest.raises(UsageError, match=r"6 partitions \(topic-0, .*, topic-3, \.\.\.\)"):
        run(log.parent.parent)


def test_a_deleted_segment_is_left_for_the_next(log: Path) -> None:
    """Retention deletes from the front; a log restarted after a snapshot begins again."""

    def restart() -> None:
        log.rename(log.with_name(log.name + ".deleted"))
        log.with_name(f"{90:020d}.log").write_bytes(segment(90, 1)[0])

    assert run(log, restart).offsets == [0, 3, 90]


def test_a_replaced_file_is_read_from_its_start(log: Path) -> None:
    """The same name, another file."""

    def replace() -> None:
        log.unlink()
        log.write_bytes(segment(0, 1)[0])

    result = run(log, replace)
    assert result.offsets == [0, 3, 0]
    assert result.ids == ["replaced"]


def test_damage_in_the_middle_is_skipped(log: Path) -> None:
    """Once something follows, it cannot be a batch that is still being written."""
    parts = segment(0, 4)
    damaged = bytearray(parts[2])
    damaged[70] ^= 1
    result = run(log, append(log, bytes(damaged)), append(log, parts[3]))
    assert result.offsets == [0, 3, 6, 9]
    assert result.ids == ["batch-crc"]


def test_a_folder_without_segments_cannot_be_followed(tmp_path: Path) -> None:
    """Say so instead of waiting for ever."""
    with pytest.raises(UsageError, match="no segment"):
        run(tmp_path)


@pytest.mark.parametrize("head", [b"\x0a\x0d\x0d\x0a", b"\x1f\x8b\x08\x00"])
def test_only_a_segment_can_be_followed(tmp_path: Path, head: bytes) -> None:
    """A capture or a compressed file would be one long stretch of garbage."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(head + bytes(100))
    with pytest.raises(UsageError, match="only a segment"):
        run(path)


def test_what_is_not_a_file_cannot_be_followed(tmp_path: Path) -> None:
    """Standard input and names that do not exist."""
    with pytest.raises(UsageError, match="not a segment"):
        run(tmp_path / "-")
