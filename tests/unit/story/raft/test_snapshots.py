"""The Raft view of snapshots: who is sent to one, who fetches it and how far, who wrote it."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from kraftwire.decode.files import FileOptions, FileReport, decode_file, walk
from kraftwire.inspect.stories.raft import RaftWriter
from kraftwire.inspect.stories.raft_json import story_to_json
from kraftwire.log.format import bootstrap_checkpoint
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.fetch_response import SnapshotId
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_request import PartitionSnapshot as AskedSnapshot
from kraftwire.messages.fetch_snapshot_request import SnapshotId as AskedId
from kraftwire.messages.fetch_snapshot_request import TopicSnapshot as AskedTopic
from kraftwire.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    PartitionSnapshot,
    TopicSnapshot,
)
from kraftwire.messages.fetch_snapshot_response import SnapshotId as ToldId
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.story.raft.model import RaftEvent
from tests.support.captures.scripted_quorum import ScriptedQuorum

KIB = 1024
SIZE = 100 * KIB


def events(quorum: ScriptedQuorum, kind: str) -> list[RaftEvent]:
    """The events of a kind, in order."""
    return [each for each in quorum.timeline.story().events if each.kind == kind]


def slice_of(
    quorum: ScriptedQuorum, position: int, *, replica: int = 4, leader: int = 1, error: int = 0,
    is_answered: bool = True, is_top_level: bool = False,
) -> None:
    """A replica asks for the slice of snapshot 500-2 at a position, of 40 KiB at most."""
    id = AskedId(end_offset=500, epoch=2)
    requested = AskedSnapshot(snapshot_id=id, position=position)
    request = FetchSnapshotRequest(replica_id=replica, topics=[AskedTopic(partitions=[requested])])
    size = 0 if error else min(40 * KIB, SIZE - position)
    answered = PartitionSnapshot(
        error_code=error, snapshot_id=ToldId(end_offset=500, epoch=2), size=SIZE,
        position=position, unaligned_records=memoryview(bytes(size)),
    )
    response = FetchSnapshotResponse(topics=[TopicSnapshot(partitions=[answered])])
    if is_top_level:
        response = FetchSnapshotResponse(error_code=error)
    quorum.send(replica, leader, request, response if is_answered else None)


def lead(quorum: ScriptedQuorum, leader: int = 1) -> None:
    """Another replica's Fetch shows who leads."""
    quorum.fetch(2, leader, offset=500, epoch=2)


@pytest.mark.parametrize(
    ("log_start", "count", "text"),
    [
        (0, 1, "is told to load snapshot 500-2 first (asked for offset 7)"),
        (
            500,
            3,
            "is told to load snapshot 500-2 first "
            "(asked for offset 7, the leader's log begins at 500, 3 times)",
        ),
    ],
)
def test_an_instruction_says_why_and_how_often(log_start: int, count: int, text: str) -> None:
    """A replica that does not follow it would fill the page."""
    quorum = ScriptedQuorum()
    for _ in range(count):
        id = SnapshotId(epoch=2, end_offset=500)
        quorum.fetch(4, 1, offset=7, epoch=2, log_start_offset=log_start, snapshot_id=id)
    (event,) = events(quorum, "snapshot-needed")
    assert (event.text, event.node, event.epoch) == (text, 4, 2)
    assert event.details["count"] == count


def test_another_instruction_after_records_is_another_event() -> None:
    """A replica may fall that far behind more than once."""
    quorum = ScriptedQuorum()
    id = SnapshotId(epoch=2, end_offset=500)
    quorum.fetch(4, 1, offset=7, epoch=2, snapshot_id=id)
    quorum.fetch(4, 1, offset=500, epoch=2)
    quorum.fetch(4, 1, offset=7, epoch=2, snapshot_id=id)
    assert [each.details["count"] for each in events(quorum, "snapshot-needed")] == [1, 1]


def test_a_snapshot_of_many_slices_is_one_event() -> None:
    """It must not bury the rest."""
    quorum = ScriptedQuorum()
    lead(quorum)
    for position in (0, 40 * KIB, 80 * KIB):
        slice_of(quorum, position)
    (event,) = events(quorum, "snapshot")
    assert event.text == "fetches snapshot 500-2 from 1 (100.0 KiB in 3 slices, 30 ms)"
    assert event.details["isComplete"]


def test_a_lost_slice_is_asked_for_again_in_the_same_download() -> None:
    """A request that times out is repeated at the same position."""
    quorum = ScriptedQuorum()
    lead(quorum)
    slice_of(quorum, 0)
    slice_of(quorum, 40 * KIB, is_answered=False)
    for position in (40 * KIB, 80 * KIB):
        slice_of(quorum, position)
    (event,) = events(quorum, "snapshot")
    assert event.details["slices"] == 3


def test_a_download_that_breaks_off_continues_from_the_next_leader() -> None:
    """The same snapshot is the same file on each of them, or it begins again at 0."""
    quorum = ScriptedQuorum()
    lead(quorum)
    slice_of(quorum, 0)
    quorum.fetch(2, 3, offset=500, epoch=3)
    slice_of(quorum, 40 * KIB, leader=3)
    slice_of(quorum, 80 * KIB, leader=3)
    slice_of(quorum, 0, leader=3)
    first, second, third = events(quorum, "snapshot")
    assert first.text == (
        "fetches snapshot 500-2 from 1 (40.0 KiB of 100.0 KiB in 1 slice, broken off, 10 ms)"
    )
    assert second.text == (
        "goes on to fetch snapshot 500-2 from 3 at 40.0 KiB (100.0 KiB in 2 slices, 20 ms)"
    )
    assert (third.details["position"], third.details["received"]) == (0, 40 * KIB)


def test_a_download_that_starts_again_is_another_one() -> None:
    """A restart loses what had come; two of them are not one that is twice as large."""
    quorum = ScriptedQuorum()
    lead(quorum)
    slice_of(quorum, 0)
    slice_of(quorum, 0)
    first, second = events(quorum, "snapshot")
    assert "broken off" in first.text
    assert "the rest is not recorded" in second.text


def test_silence_in_the_middle_means_given_up() -> None:
    """At the end of a capture that is unknown, but after seconds it is clear."""
    quorum = ScriptedQuorum()
    lead(quorum)
    slice_of(quorum, 0)
    quorum.go_on(10)
    lead(quorum)
    assert "broken off" in events(quorum, "snapshot")[0].text


def test_a_download_across_a_hole_is_not_called_given_up() -> None:
    """It may have been completed while nothing was recorded."""
    quorum = ScriptedQuorum()
    lead(quorum)
    slice_of(quorum, 0)
    quorum.wait(1000)
    slice_of(quorum, 0)
    quorum.go_on(10)
    first, second = events(quorum, "snapshot")
    assert "the rest is not recorded" in first.text
    assert "broken off" in second.text


@pytest.mark.parametrize("is_top_level", [False, True])
def test_a_snapshot_that_the_leader_deleted_is_reported(is_top_level: bool) -> None:
    """The replica has to ask again where to begin."""
    quorum = ScriptedQuorum()
    lead(quorum)
    slice_of(quorum, 0)
    error = ErrorCode.SNAPSHOT_NOT_FOUND
    slice_of(quorum, 40 * KIB, error=error, is_top_level=is_top_level)
    (event,) = events(quorum, "snapshot")
    assert event.text == (
        "fetches snapshot 500-2 from 1 "
        "(40.0 KiB of 100.0 KiB in 1 slice, SNAPSHOT_NOT_FOUND, 20 ms)"
    )
    assert event.details["error"] == "SNAPSHOT_NOT_FOUND"


def test_a_request_without_any_answer_brought_nothing() -> None:
    """The leader may have died just then."""
    quorum = ScriptedQuorum()
    lead(quorum)
    slice_of(quorum, 0, is_answered=False)
    (event,) = events(quorum, "snapshot")
    assert "(nothing came, the rest is not recorded" in event.text
    assert event.details["size"] is None


def test_a_log_prefix_that_is_deleted_is_reported_once_per_leader() -> None:
    """This is how a capture shows that a leader has written a snapshot."""
    quorum = ScriptedQuorum()
    for start in (0, 0, 500, 500, 800):
        quorum.fetch(2, 1, offset=900, epoch=2, log_start_offset=start)
    quorum.fetch(2, 3, offset=900, epoch=3, log_start_offset=500)
    assert [(each.node, each.text) for each in events(quorum, "log-start")] == [
        (
            1,
            "drops its log before offset 500 (it began at 0, what was before is in a snapshot)",
        ),
        (
            1,
            "drops its log before offset 800 (it began at 500, what was before is in a snapshot)",
        ),
        (3, "has dropped its log before offset 500 (what was before is in a snapshot)"),
    ]


def write_snapshot(folder: Path, node: int | None, time_ms: int) -> Path:
    """A controller's directory with snapshot 500-2, written at a time."""
    partition = folder / "__cluster_metadata-0"
    partition.mkdir(parents=True)
    if node is not None:
        (folder / "meta.properties").write_text(f"version=1\nnode.id={node}\n")
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    path = partition / "00000000000000000500-0000000002.checkpoint"
    path.write_bytes(bootstrap_checkpoint([(record, 0)], time_ms))
    return path


def answered(*paths: Path) -> list[RaftEvent]:
    """The events of files."""
    writer = RaftWriter(io.StringIO())
    for path in walk(list(paths), print):
        for line in decode_file(path, FileOptions(), FileReport()):
            writer.file_line(line)
    return writer.timeline.story().events


def test_who_wrote_a_snapshot_follows_from_its_bytes(tmp_path: Path) -> None:
    """Two that write the same state do so at different times; what was fetched is the same."""
    first = write_snapshot(tmp_path / "1", 1, 1_000_000)
    write_snapshot(tmp_path / "2", 2, 1_000_500)
    write_snapshot(tmp_path / "3", 3, 0).write_bytes(first.read_bytes())
    found = [each for each in answered(tmp_path) if each.kind == "snapshot-written"]
    assert [(each.time, each.node, each.text) for each in found] == [
        (1000.0, None, "snapshot 500-2 is written (1 record, 249 B, the same bytes on 1, 3)"),
        (1000.5, 2, "writes snapshot 500-2 (1 record, 249 B)"),
    ]
    assert found[0].details["owners"] == [1, 3]


def test_a_snapshot_in_a_folder_without_an_owner_is_named_by_the_folder(tmp_path: Path) -> None:
    """People copy single folders from incidents."""
    path = write_snapshot(tmp_path / "x", None, 1_000_000)
    (event,) = (each for each in answered(path, path) if each.kind == "snapshot-written")
    assert event.text == f"snapshot 500-2 is written (1 record, 249 B, in {tmp_path}/x)"
    shutil.copytree(tmp_path / "x", tmp_path / "y")
    (event,) = (each for each in answered(tmp_path) if each.kind == "snapshot-written")
    assert event.text.endswith(f"the same bytes in {tmp_path}/x, {tmp_path}/y)")


def test_a_snapshot_without_a_time_comes_first(tmp_path: Path) -> None:
    """A time of 0 means none: the history does not begin in 1970."""
    write_snapshot(tmp_path / "1", 1, 1_000_000)
    (tmp_path / "1/bootstrap.checkpoint").write_bytes(bootstrap_checkpoint([], 0))
    found = answered(tmp_path)
    assert [each.kind for each in found] == ["snapshot-file"] * 2 + ["snapshot-written"]
    assert {each.time for each in found} == {1000.0}


def test_the_json_form_has_downloads_and_instructions() -> None:
    """A script that watches replacements reads these."""
    quorum = ScriptedQuorum()
    lead(quorum)
    quorum.fetch(4, 1, offset=0, epoch=2, snapshot_id=SnapshotId(epoch=2, end_offset=500))
    slice_of(quorum, 0)
    found = {each["event"]: each for each in story_to_json(quorum.timeline.story())["events"]}
    needed, download = found["snapshot-needed"], found["snapshot"]
    assert (needed["endOffset"], needed["snapshotEpoch"], needed["offset"]) == (500, 2, 0)
    assert (download["from"], download["received"], download["size"]) == (1, 40 * KIB, SIZE)
    assert download["isComplete"] is False
