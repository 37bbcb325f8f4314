"""The story of a quorum is the same from rows of a table as from the frames of a capture."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stories.raft import RaftWriter
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.versions import response_header_version
from kraftwire.records.json_form import decode_record
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import read_batches
from kraftwire.story.raft.metadata_log import Extent
from kraftwire.story.raft.model import QUORUM_APIS, RaftEvent
from kraftwire.story.raft.table_rows import BatchRow, ExchangeRow, QuorumRows, stories
from kraftwire.story.raft.timeline import Timeline

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[4]
CAPTURES = (
    ROOT / "tests" / "golden" / "captures" / "quorum.pcap.xz",
    ROOT / "tests" / "golden" / "captures" / "kraft_quorum.pcapng.xz",
    ROOT.parent / "shared" / "captures" / "a_kraft_quorum.pcapng.xz",
)
# These come from packets that end connections, which are in no row.
UNSEEN = frozenset({"disconnect"})


def _frames(path: Path) -> list[RawFrame]:
    return [frame for frame in Capture(str(path)) if frame.api_key is not None]


def _rows(frames: list[RawFrame]) -> list[ExchangeRow]:
    """A row for every request, as the table has them; answers have their record bytes cut off."""
    answers = {
        id(frame.request): frame
        for frame in frames
        if not frame.is_request and frame.request is not None
    }
    rows = []
    for frame in frames:
        if not frame.is_request:
            continue
        answer = answers.get(id(frame.request))
        response, batches = _cut(answer)
        rows.append(
            ExchangeRow(
                frame.time_ns, frame.connection, frame.api_key or 0, frame.api_version or 0,
                frame.correlation_id or 0, bytes(frame.data), response,
                None if answer is None else answer.time_ns - frame.time_ns,
                "here", frame.position, None if answer is None else answer.position, "c", batches,
                None if answer is None else answer.size,
            )
        )
    return rows


def _cut(answer: RawFrame | None) -> tuple[bytes | None, tuple[BatchRow, ...]]:
    if answer is None:
        return None, ()
    key, version = answer.api_key, answer.api_version
    if key not in (FetchResponse.API_KEY, FetchSnapshotResponse.API_KEY) or version is None:
        return bytes(answer.data), ()
    header_version = response_header_version(key, version)
    header, start = ResponseHeader.decode(answer.data, header_version)
    body: Any
    if key == FetchSnapshotResponse.API_KEY:
        body, _ = FetchSnapshotResponse.decode(answer.data, version, start)
        for partition in (p for topic in body.topics for p in topic.partitions):
            partition.unaligned_records = memoryview(b"")
        return header.encode(header_version) + body.encode(version), ()
    body, _ = FetchResponse.decode(answer.data, version, start)
    batches = []
    for partition in (p for topic in body.responses for p in topic.partitions):
        batches += [_batch(each) for each in read_batches(partition.records or b"")]
        partition.records = memoryview(b"")
    return header.encode(header_version) + body.encode(version), tuple(batches)


def _batch(batch: object) -> BatchRow:
    extent = Extent(batch.base_offset, batch.last_offset, batch.partition_leader_epoch)  # type: ignore[attr-defined]
    return BatchRow(extent, tuple(_controls(batch)))


def _controls(batch: object) -> Iterator[tuple[Decoded, int, float]]:
    if not batch.is_control:  # type: ignore[attr-defined]
        return
    for row in batch.salvage()[0]:  # type: ignore[attr-defined]
        decoded = decode_record(row, "metadata", is_control=True)
        assert decoded is not None
        yield decoded, row.offset, row.timestamp / 1000


def _story_of(events: list[RaftEvent]) -> list[tuple[float, str, int | None, object, str]]:
    return [
        (each.time, each.kind, each.epoch, each.node, each.text)
        for each in events
        if each.kind not in UNSEEN
    ]


@pytest.fixture(scope="module", params=CAPTURES, ids=lambda path: path.name)
def capture(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    if not path.exists():
        pytest.skip(f"{path.name} is missing")
    return path


def test_rows_give_the_story_that_frames_give(capture: Path) -> None:
    """Times, epochs, nodes and words of all events, except those of connections."""
    frames = _frames(capture)
    decoder, writer = FrameDecoder(Settings()), RaftWriter(io.StringIO())
    for frame in frames:
        writer.frame(decoder.decode(frame))
    expected = writer.timeline.story()
    found = stories(_rows(frames))["c"]
    assert _story_of(found.events) == _story_of(expected.events)
    assert [(each.epoch, each.leader, each.time, each.end) for each in found.leaders] == [
        (each.epoch, each.leader, each.time, each.end) for each in expected.leaders
    ]


def test_events_lead_to_their_frames(capture: Path) -> None:
    """An event refers to a frame of the same moment; old records have none."""
    frames = _frames(capture)
    times = {frame.position: frame.time for frame in frames}
    quorum = QuorumRows()
    for row in _rows(frames):
        quorum.on_exchange(row)
    seen = list(quorum.located_events())
    assert seen
    unplaced = {each.event.details.get("seenIn") for each in seen if not each.file}
    assert unplaced <= {"LeaderChange"}
    for each in (each for each in seen if each.file):
        assert times[each.position] == each.event.time


def test_a_leader_says_how_its_epoch_ended(capture: Path) -> None:
    """The table of leaders has it too, which rows do not provide."""
    rows = _rows(_frames(capture))
    quorum = QuorumRows()
    for row in rows:
        quorum.on_exchange(row)
    answered = [each.details for each in quorum.located_events() if each.event.kind == "leader"]
    leaders = stories(rows)["c"].leaders
    assert [(each["end"], each["ending"]) for each in answered] == [
        (each.end, each.ending or None) for each in sorted(leaders, key=lambda one: one.time)
    ]


def test_every_cluster_has_its_own_story() -> None:
    """Interleaved rows of two clusters are kept apart."""
    row = ExchangeRow(0, "a:1-b:2", min(QUORUM_APIS), 0, 1, b"", None, cluster="one")
    other = ExchangeRow(5 * 10**9, "a:1-b:2", min(QUORUM_APIS), 0, 1, b"", None, cluster="two")
    found = stories([row, other])
    assert {cluster: story.start for cluster, story in found.items()} == {"one": 0.0, "two": 5.0}


def test_batches_of_a_log_name_its_leaders() -> None:
    """Without any frame the records give the time, and a newer epoch rewrites the log."""
    quorum = QuorumRows()
    for offset, epoch, leader, time in ((0, 1, 2, 10.0), (5, 2, 3, 20.0), (3, 3, 1, 30.0)):
        message = LeaderChangeMessage(leader_id=leader)
        decoded = Decoded("LeaderChangeMessage", 0, message, control_type="LEADER_CHANGE")
        extent = Extent(offset, offset + 2, epoch)
        quorum.on_batch(BatchRow(extent, ((decoded, offset, time),)))
    story = quorum.story()
    assert [(each.epoch, each.leader, each.time) for each in story.leaders] == [
        (1, 2, 10.0), (2, 3, 20.0), (3, 1, 30.0),
    ]
    assert [(each.kind, each.time) for each in story.events if each.kind == "truncation"] == [
        ("truncation", 30.0)
    ]


def test_a_response_enters_the_story_at_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that comes between another one and its answer is shown before the answer."""
    answered: list[tuple[float, bool]] = []
    monkeypatch.setattr(
        Timeline,
        "on_frame",
        lambda _self, frame, *_bodies: answered.append((frame.time, frame.is_request)),
    )
    quorum, key = QuorumRows(), min(QUORUM_APIS)
    quorum.on_exchange(ExchangeRow(10**9, "a:1-b:2", key, 0, 1, b"", b"", 5 * 10**9))
    quorum.on_exchange(ExchangeRow(3 * 10**9, "a:1-b:2", key, 0, 2, b"", b"", 10**9))
    quorum.story()
    assert answered == [(1.0, True), (3.0, True), (4.0, False), (6.0, False)]
