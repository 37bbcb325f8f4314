"""The story of a quorum from log directories: leaders, voters and snapshots without any capture."""

from __future__ import annotations

import io
import json
from pathlib import Path

from kraftwire.decode.files import FileOptions, FileReport, decode_file, walk
from kraftwire.inspect.stories.raft import RaftWriter
from tests.support.metadata.files import SOUND, WRONG, write_segment, write_snapshot

LOGS = Path(__file__).resolve().parents[3] / "golden" / "logs"
CONTROLLER = LOGS / "controller"


def _story_of(*paths: Path, as_json: bool = False) -> str:
    stream = io.StringIO()
    writer = RaftWriter(stream, as_json=as_json)
    for path in walk(list(paths), print):
        for line in decode_file(path, FileOptions(), FileReport()):
            writer.file_line(line)
    writer.finish()
    return stream.getvalue()


def test_a_controllers_folder_shows_leaders_and_snapshots() -> None:
    """After an incident only the disks are left."""
    story = json.loads(_story_of(CONTROLLER, as_json=True))
    assert [(e["epoch"], e["leader"], e["startOffset"]) for e in story["leaders"]] == [
        (1, 2, 0), (2, None, 810), (3, None, 848), (4, None, 878), (5, 1, None)
    ]
    snapshots = [each for each in story["events"] if each["event"] == "snapshot-file"]
    assert [(each["endOffset"], each["snapshotEpoch"]) for each in snapshots][-1] == (1156, 4)
    assert snapshots[-1]["voters"] == [1, 2, 3]


def test_records_of_snapshots_are_not_counted_with_those_of_the_log() -> None:
    """A snapshot repeats the log: its topics would be there twice."""
    with_snapshots = json.loads(_story_of(CONTROLLER, as_json=True))["log"]
    segments = sorted(CONTROLLER.rglob("*.log"))
    assert with_snapshots == json.loads(_story_of(*segments, as_json=True))["log"]


def test_a_snapshot_alone_stands_for_the_log() -> None:
    """A reader with only a snapshot still wants to know what is in it."""
    (snapshot,) = CONTROLLER.rglob("*1156-0000000004.checkpoint")
    text = _story_of(snapshot)
    assert "snapshot 1156-4 reaches to here (93 records" in text
    assert "topic" in text
    assert "What snapshot 1156-4 says: 97 records in 3 batches" in text
    assert "offsets 0" not in text
    assert "-0." not in text, "the story begins with the last record that the snapshot has"


def test_a_record_that_contradicts_the_log_is_told_as_that_and_not_as_a_fact(
    tmp_path: Path,
) -> None:
    """No broker 3 with epoch 99 was ever registered, so none was unfenced."""
    folder = tmp_path / "__cluster_metadata-0"
    write_segment(folder, [*SOUND, *WRONG])
    text = _story_of(folder)
    assert "broker 3 registers" in text
    assert "is unfenced" not in text
    at = len(SOUND)
    assert f"the record at offset {at} contradicts those before it" in text
    assert "broker 3 is registered with broker epoch 2" in text
    story = json.loads(_story_of(folder, as_json=True))
    told = [each for each in story["events"] if each["event"] == "contradiction"]
    assert [each["offset"] for each in told] == [at, at + 1, at + 2]
    (directory,) = story["directories"]
    wanted = f"lacks no record; its records contradict each other at offset {at}: no controller"
    assert directory["advice"].startswith(wanted)
    # A start reads a later snapshot instead.
    write_snapshot(folder, SOUND, len(SOUND) + len(WRONG))
    (directory,) = json.loads(_story_of(folder, as_json=True))["directories"]
    assert "contradict" not in directory["advice"]
    (folder / f"{len(SOUND) + len(WRONG):020}-{1:010}.checkpoint").unlink()
    # What the copies of a log say is told once.
    assert _story_of(folder, folder) == text


def test_a_contradiction_in_a_snapshot_names_the_snapshot(tmp_path: Path) -> None:
    """The log beside it may be right."""
    folder = tmp_path / "__cluster_metadata-0"
    snapshot = write_snapshot(folder, [*SOUND, *WRONG], 500)
    text = " ".join(_story_of(folder).split())
    assert text.count(f"snapshot {snapshot.name}: the record at offset") == len(WRONG)
    assert "is unfenced" not in text


def test_copies_of_a_log_count_once() -> None:
    """Three controllers have three copies of one history."""
    (first,) = CONTROLLER.rglob("00000000000000000000.log")
    once = json.loads(_story_of(first, as_json=True))
    assert json.loads(_story_of(first, first, as_json=True)) == once


def test_a_brokers_topics_show_no_quorum() -> None:
    """User topics and coordinators' topics are not the metadata log."""
    assert "nothing of a KRaft quorum was seen" in _story_of(LOGS / "broker" / "comp-gzip-0")
