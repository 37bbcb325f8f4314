"""The story of a quorum from log directories: leaders, voters and snapshots without any capture."""

from __future__ import annotations

import io
import json
from pathlib import Path

from kraftwire.decode.files import FileOptions, FileReport, decode_file, walk
from kraftwire.inspect.stories.raft import RaftJsonWriter, RaftWriter

LOGS = Path(__file__).resolve().parents[3] / "golden" / "logs"
CONTROLLER = LOGS / "controller"


def _story_of(*paths: Path, as_json: bool = False) -> str:
    stream = io.StringIO()
    writer = RaftJsonWriter(stream) if as_json else RaftWriter(stream)
    for path in walk(list(paths), print):
        for line in decode_file(path, FileOptions(), FileReport()):
            writer.file_line(line)
    writer.finish()
    return stream.getvalue()


def test_a_controllers_folder_shows_leaders_and_snapshots() -> None:
    """After an incident only the disks are left."""
    story = json.loads(_story_of(CONTROLLER, as_json=True))
    assert [(e["epoch"], e["leader"], e["startOffset"]) for e in story["leaders"]] == [(1, 2, 0)]
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
    assert "offsets 0 to 96 in 3 batches" in text


def test_copies_of_a_log_count_once() -> None:
    """Three controllers have three copies of one history."""
    (first,) = CONTROLLER.rglob("00000000000000000000.log")
    once = json.loads(_story_of(first, as_json=True))
    assert json.loads(_story_of(first, first, as_json=True)) == once


def test_a_brokers_topics_show_no_quorum() -> None:
    """User topics and coordinators' topics are not the metadata log."""
    assert "nothing of a KRaft quorum was seen" in _story_of(LOGS / "broker" / "comp-gzip-0")
