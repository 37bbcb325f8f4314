"""Records of the metadata log that contradict those before them: where they are told, where not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kraftwire.decode.files import (
    ExitCode,
    FileFinding,
    FileOptions,
    FileReport,
    decode_file,
    follow,
    walk,
)
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.records.builder import BatchHeader, build_columns
from tests.support.metadata.files import (
    SOUND,
    WRONG,
    batch_of,
    values_of,
    write_segment,
    write_snapshot,
)

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "logs"
NAME = "__cluster_metadata-0"
TOLD = [
    "offset {}: BrokerRegistrationChangeRecord is of broker 3 with broker epoch 99, but broker 3 "
    "is registered with broker epoch 2",
    "offset {}: PartitionChangeRecord is of partition 0 of topic id AgICAgICAgICAgICAgICAg, but no "
    "topic has that id",
    "offset {}: PartitionChangeRecord is of partition 4 of topic orders, but that topic has no "
    "such partition",
]


def _decode(*paths: Path, **options: str) -> list[FileFinding]:
    findings: list[FileFinding] = []
    report = FileReport(findings.append)
    for path in walk(paths, print):
        for _ in decode_file(path, FileOptions(**options), report):  # type: ignore[arg-type]
            pass
    assert report.exit_code is not ExitCode.PARTIAL
    return [each for each in findings if each.id == "contradiction"]


def _told(findings: Sequence[FileFinding]) -> list[str]:
    return [finding.detail for finding in findings]


def _expected(base_offset: int) -> list[str]:
    return [text.format(base_offset + at) for at, text in enumerate(TOLD)]


def test_a_log_from_offset_0_is_checked(tmp_path: Path) -> None:
    """Each record is named with its offset and both sides, at the place of its batch."""
    path = write_segment(tmp_path / NAME, [*SOUND, *WRONG])
    findings = _decode(tmp_path)
    assert _told(findings) == _expected(len(SOUND))
    sound = sum(len(batch_of([record], 0)) for record in SOUND)
    assert findings[0].position == sound
    assert findings[0].file == str(path)
    assert not findings[0].is_loss


@pytest.mark.slow
def test_a_batch_of_many_records_is_checked_once(tmp_path: Path) -> None:
    """Long batches are read twice: to find what is wrong with them, and to show them."""
    folder = tmp_path / NAME
    folder.mkdir()
    records = [*SOUND, *[NoOpRecord()] * 70_000, *WRONG]
    (folder / f"{0:020d}.log").write_bytes(batch_of(records, 0))
    assert _told(_decode(tmp_path)) == _expected(len(records) - len(WRONG))


def test_the_check_goes_on_in_the_next_segment(tmp_path: Path) -> None:
    """A log is one sequence of records, however it is cut into files."""
    write_segment(tmp_path / NAME, SOUND)
    write_segment(tmp_path / NAME, WRONG, len(SOUND))
    assert _told(_decode(tmp_path)) == _expected(len(SOUND))


def test_two_logs_of_one_run_are_checked_by_themselves(tmp_path: Path) -> None:
    """The directories of several nodes hold the same records."""
    for node in ("1", "2"):
        write_segment(tmp_path / node / NAME, [*SOUND, *WRONG])
    assert _told(_decode(tmp_path)) == _expected(len(SOUND)) * 2


def test_the_log_after_a_snapshot_is_checked(tmp_path: Path) -> None:
    """The snapshot is read first, whatever the order of the files."""
    write_snapshot(tmp_path / NAME, SOUND, 500)
    path = write_segment(tmp_path / NAME, WRONG, 500)
    assert _told(_decode(tmp_path)) == _expected(500)
    assert _told(_decode(path)) == _expected(500)


def test_a_snapshot_counts_from_its_end_offset_on(tmp_path: Path) -> None:
    """Before it, entities may exist that the deleted part of the log created."""
    write_snapshot(tmp_path / NAME, SOUND, 500)
    write_segment(tmp_path / NAME, [*WRONG, NoOpRecord(), *WRONG], 496)
    assert _told(_decode(tmp_path)) == _expected(500)


def test_a_log_without_its_beginning_is_not_checked(tmp_path: Path) -> None:
    """Absence is no contradiction: the part that was deleted had it."""
    write_segment(tmp_path / NAME, WRONG, 500)
    assert _decode(tmp_path) == []


def test_a_snapshot_that_is_not_whole_does_not_count(tmp_path: Path) -> None:
    """Its missing records may be those that created what is absent."""
    snapshot = write_snapshot(tmp_path / NAME, SOUND, 500)
    snapshot.write_bytes(snapshot.read_bytes()[:-10])
    assert _decode(write_segment(tmp_path / NAME, WRONG, 500)) == []


def test_records_after_a_gap_are_not_checked_against_those_before(tmp_path: Path) -> None:
    """A missing segment may hold what is absent."""
    write_segment(tmp_path / NAME, SOUND)
    write_segment(tmp_path / NAME, WRONG, 100)
    assert _decode(tmp_path) == []


@pytest.mark.parametrize("damage", ["crc", "type"])
def test_an_unreadable_record_may_be_what_is_missing(tmp_path: Path, damage: str) -> None:
    """It may be the one that created what is absent."""
    path = write_segment(tmp_path / NAME, [*SOUND, NoOpRecord(), *WRONG])
    content = bytearray(path.read_bytes())
    at = content.index(batch_of([NoOpRecord()], len(SOUND)))
    if damage == "crc":
        content[at + 17] ^= 1
    else:
        header = BatchHeader(base_offset=len(SOUND), partition_leader_epoch=1)
        bad = build_columns([1], [None], [b"\x01\x7f\x00\x00"], header=header)
        content[at : at + len(batch_of([NoOpRecord()], len(SOUND)))] = bad
    path.write_bytes(content)
    findings: list[FileFinding] = []
    list(decode_file(path, FileOptions(), FileReport(findings.append)))
    assert [each.id for each in findings] == [
        {"crc": "batch-crc", "type": "record-undecoded"}[damage]
    ]


def test_an_unreadable_record_may_be_what_is_missing_in_its_own_batch(tmp_path: Path) -> None:
    """The records of a batch are checked one after the other."""
    folder = tmp_path / NAME
    folder.mkdir()
    values = [*values_of(SOUND), b"\x01\x7f\x00\x00", *values_of(WRONG)]
    header = BatchHeader(base_offset=0, partition_leader_epoch=1)
    path = folder / f"{0:020d}.log"
    path.write_bytes(build_columns([1] * len(values), [None] * len(values), values, header=header))
    findings: list[FileFinding] = []
    list(decode_file(path, FileOptions(), FileReport(findings.append)))
    assert [each.id for each in findings] == ["record-undecoded"]


def test_a_snapshot_itself_is_checked(tmp_path: Path) -> None:
    """Its offsets are its own."""
    write_snapshot(tmp_path / NAME, [*SOUND, *WRONG], 500)
    assert _told(_decode(tmp_path)) == _expected(len(SOUND) + 1)


def test_a_log_is_checked_with_the_records_summarized_but_not_without_them(tmp_path: Path) -> None:
    """Only what is decoded anyway is checked."""
    write_segment(tmp_path / NAME, [*SOUND, *WRONG])
    assert len(_decode(tmp_path, records="summary")) == len(WRONG)
    assert _decode(tmp_path, records="none") == []


def test_a_followed_log_is_checked(tmp_path: Path) -> None:
    """What is written while one looks is checked too."""
    path = write_segment(tmp_path / NAME, SOUND)
    findings: list[FileFinding] = []
    steps = iter([WRONG])

    def wait() -> bool:
        records = next(steps, None)
        if records is None:
            return False
        with path.open("ab") as file:
            for at, record in enumerate(records, len(SOUND)):
                file.write(batch_of([record], at))
        return True

    list(follow(path, FileOptions(), FileReport(findings.append), wait))
    assert _told(findings) == _expected(len(SOUND))


def test_records_of_real_clusters_fit(tmp_path: Path) -> None:
    """Real logs, whole, without their beginning, and snapshots."""
    assert _decode(GOLDEN) == []
    (segment,) = GOLDEN.rglob(f"controller/{NAME}/{0:020d}.log")
    copy = tmp_path / NAME / segment.name
    copy.parent.mkdir()
    copy.write_bytes(segment.read_bytes()[10_000:])
    findings: list[FileFinding] = []
    list(decode_file(copy, FileOptions(), FileReport(findings.append)))
    assert "contradiction" not in {each.id for each in findings}
