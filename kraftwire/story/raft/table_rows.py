"""Makes the story of a quorum from rows of tables instead of captured frames.

Owns the order of requests and responses, which share a row but not a time, and the places where
events were seen. Decodes the bytes of a row itself, so rows can come from another process.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from typing import Any

from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.capture.recorded import Recorded, Recordings
from kraftwire.controller.check import Contradiction
from kraftwire.decode.body.bodies import decode_payload
from kraftwire.decode.files.kinds import FileKind, parse_file_name
from kraftwire.decode.files.report import FileFinding
from kraftwire.decode.text import listed
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.records.messages import Decoded
from kraftwire.story.raft.coverage import Extent
from kraftwire.story.raft.metadata_log import contradiction_event
from kraftwire.story.raft.model import (
    QUORUM_APIS,
    LeaderOfEpoch,
    NodeId,
    RaftEvent,
    ReplicaFiles,
    Story,
    offsets_text,
)
from kraftwire.story.raft.replica_files import is_of_metadata_log
from kraftwire.story.raft.snapshots import SnapshotSummary
from kraftwire.story.raft.timeline import Timeline
from kraftwire.wire.message import Message
from kraftwire.wire.varint import uvarint_size

_SECOND_NS = 1_000_000_000

# Beside the ids of meta.properties: why a node does not start on the directory.
REFUSAL_KEY = "refusal"


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch of the metadata log; `records` are its control records with offset and time.

    Of a batch in a log file: `file`, and whether it `is_idle`: it has a NoOpRecord.
    """

    extent: Extent
    records: tuple[tuple[Decoded, int, float], ...] = ()
    file: str = ""
    is_idle: bool = False


@dataclass(frozen=True, slots=True)
class ExchangeRow:
    """A request with its response, None if that was not captured.

    `request` and `response` are header and body without the length. `batches` are the batches of
    the response, if their bytes were cut out of it; `response_size` is the length of the response
    before that, None if nothing was cut out. `position` is None where it is unknown;
    `response_file` is None where it equals `file`.

    Units: `time_ns` nanoseconds since the epoch of the request, `latency_ns` from there to the
    response.
    """

    time_ns: int
    connection: str
    api_key: int
    api_version: int
    correlation_id: int
    request: bytes
    response: bytes | None = None
    latency_ns: int | None = None
    file: str = ""
    position: int | None = None
    response_position: int | None = None
    cluster: str | None = None
    batches: tuple[BatchRow, ...] = ()
    response_size: int | None = None
    response_file: str | None = None


@dataclass(frozen=True, slots=True)
class LocatedEvent:
    """An event, its exact time, and the place of its first frame.

    `file` is empty where no frame shows it. `details` are those of the event; for a leader also
    when and how its epoch ended. Units: `time_ns` nanoseconds since the epoch.
    """

    event: RaftEvent
    time_ns: int
    details: dict[str, Any]
    file: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class _Response:
    """A response, kept until its time, with the request that it answers."""

    row: ExchangeRow
    request: Message | None
    time_ns: int


class QuorumRows:
    """Makes the story of one cluster.

    Order: `on_exchange` by time and, for the same time, by position; `on_batch` for the batches of
    log files by offset; then call `story`, or `located_events`, once.
    """

    def __init__(self) -> None:
        self._recordings = Recordings()
        self._timeline = Timeline(self._recordings)
        self._waiting: list[tuple[int, int, int, _Response]] = []
        self._count = 0
        self._first_frames = _FramePositions()
        # Contradictions between records, each once however many replicas have it.
        self._wrong: dict[Contradiction, LocatedEvent] = {}

    def on_recording(self, recorded: Recorded) -> None:
        """Add a recording of exchanges. Order: before these."""
        self._recordings.add(recorded)

    def on_exchange(self, row: ExchangeRow) -> None:
        """Add an exchange."""
        position = row.position or 0
        self._answer_before(row.time_ns, position)
        body = _body(row, row.request, is_request=True)
        self._timeline.on_frame(_frame(row, row.time_ns, "request"), body)
        if row.position is not None:
            self._first_frames.note_frame(row.time_ns, row.file, row.position)
        if row.response is None or row.latency_ns is None:
            return
        if row.response_position is not None:
            position = row.response_position
        answer = _Response(row, body, row.time_ns + row.latency_ns)
        self._count += 1
        heappush(self._waiting, (answer.time_ns, position, self._count, answer))

    def on_batch(self, batch: BatchRow) -> None:
        """Add a batch of a log file; its time is that of its records."""
        self._timeline.on_file_records(
            batch.file, batch.extent, batch.records, is_idle=batch.is_idle
        )

    def on_state(self, kind: FileKind, file: str, data: dict[str, Any]) -> None:
        """Add a state file of a log directory, with what it says.

        Of meta.properties its ids, and as `REFUSAL_KEY` why a node does not start on the directory.
        """
        is_owner, files = kind is FileKind.META_PROPERTIES, self._timeline.files
        if is_owner or is_of_metadata_log(file) is not False:
            files.on_state(kind, file, data)
        if is_owner and REFUSAL_KEY in data:
            files.on_refusal(file.rpartition("/")[0], data[REFUSAL_KEY])

    def on_file(self, kind: FileKind, file: str) -> None:
        """Note that a metadata log has a file, even if nothing in it can be read."""
        if is_of_metadata_log(file):
            self._timeline.files.on_file(file, kind)

    def on_finding(self, finding: FileFinding, end_offset: int | None) -> None:
        """Add a finding about bytes of a segment. Arguments: as for `ReplicasOnDisk.on_finding`."""
        if is_of_metadata_log(finding.file):
            self._timeline.files.on_finding(finding, end_offset)

    def on_contradiction(
        self, found: Contradiction, file: str, position: int, time_ns: int, epoch: int
    ) -> None:
        """Add a record of a log file, in the batch at a position, that contradicts others."""
        self._timeline.files.on_contradiction(file, found.offset)
        event = contradiction_event(found, time_ns / _SECOND_NS, epoch)
        name = parse_file_name(file.rpartition("/")[2])
        if name.suffix == "checkpoint":
            event = replace(event, text=f"snapshot {name.stem}: {event.text}")
        located = LocatedEvent(event, time_ns, event.details, file, position)
        if len(self._wrong) < RAFT_EVENT_COUNT_MAX:
            self._wrong.setdefault(found, located)

    def on_snapshot(self, file: str, summary: SnapshotSummary | None) -> None:
        """Add a snapshot. Arguments: as for `Timeline.on_snapshot_summary`."""
        self._timeline.on_snapshot_summary(file, summary)

    def on_ending(self, ending: Ending, file: str, position: int) -> None:
        """Add the end of a connection, and the place where it is seen.

        Order: among the exchanges, by time.
        """
        self._answer_before(ending.time_ns + 1, 0)
        self._timeline.on_ending(ending)
        self._first_frames.note_frame(ending.time_ns, file, position)

    def story(self) -> Story:
        """Return the story, in order of time."""
        self._answer_before(None, 0)
        return self._timeline.story()

    def located_events(self) -> Iterator[LocatedEvent]:
        """Yield the events of the story, each with the place of its first frame."""
        story = self.story()
        leaders: dict[tuple[int | None, NodeId | None], LeaderOfEpoch] = {
            (each.epoch, each.leader): each for each in story.leaders
        }
        for event in story.events:
            details = event.details
            if event.kind in ("leader", "epoch"):
                leader = leaders[event.epoch, event.node]
                details = {
                    **details,
                    "end": leader.end,
                    "ending": leader.ending or None,
                    "leaderless": leader.leaderless,
                }
            time_ns, file, position = self._first_frames.find_frame(event.time)
            yield LocatedEvent(event, time_ns, details, file, position)
        yield from self._wrong.values()
        for event in _conclusions(story):
            yield LocatedEvent(event, round(event.time * _SECOND_NS), event.details)

    def _answer_before(self, time_ns: int | None, position: int) -> None:
        waiting = self._waiting
        while waiting and (time_ns is None or waiting[0][:2] <= (time_ns, position)):
            self._answer(heappop(waiting)[3])

    def _answer(self, answer: _Response) -> None:
        row, time = answer.row, answer.time_ns / _SECOND_NS
        if row.response is None:
            return
        body = _body(row, row.response, is_request=False)
        if isinstance(body, FetchSnapshotResponse) and row.response_size is not None:
            _restore_slice(body, row.response_size - len(row.response))
        frame = _frame(row, answer.time_ns, "response")
        self._timeline.on_frame(frame, body, answer.request)
        for batch in row.batches:
            self._timeline.on_control_records(batch.extent, batch.records, time)
        if row.response_position is not None:
            file = row.response_file or row.file
            self._first_frames.note_frame(answer.time_ns, file, row.response_position)


def _conclusions(story: Story) -> Iterator[RaftEvent]:
    """Yield conclusions from the files of all replicas, as events at the end of the story."""
    told = {event.epoch for event in story.events if event.kind in ("leader", "epoch")}
    for each in story.leaders:
        if each.epoch not in told:
            text = f"is known from {listed(each.sources)}; when it began is not"
            details = {"startOffset": each.start_offset, "sources": each.sources}
            kind = "epoch-known"
            yield RaftEvent(story.end, kind, text, each.epoch, each.leader, details)
    # A capture need not show every offset; a log has to have them.
    for first, end in story.log.missing if story.files else ():
        text = f"the metadata log lacks {offsets_text([(first, end)])}"
        details = {"first": first, "end": end}
        yield RaftEvent(story.end, "missing-offsets", text, None, None, details)
    for text in story.contradictions:
        yield RaftEvent(story.end, "contradiction", text)
    for files in story.files:
        yield from _unread_events(story.end, files)
    yield from map(partial(_replica_event, story.end), story.files)


def _unread_events(time: float, files: ReplicaFiles) -> Iterator[RaftEvent]:
    for each in files.unread:
        details = {
            "folder": files.folder,
            "finding": each.id,
            "position": each.position,
            "size": each.size,
            "endOffset": each.offset,
        }
        yield RaftEvent(time, "unread-bytes", each.text, None, files.node, details)


def _replica_event(time: float, files: ReplicaFiles) -> RaftEvent:
    end = files.end
    details: dict[str, Any] = {
        "folder": files.folder,
        "directoryId": files.directory_id,
        "start": files.start,
        "end": None if end is None else {"offset": end.offset, "epoch": end.epoch},
        "flushed": files.flushed,
        "votedFor": (files.election or {}).get("votedId"),
        "missing": [[first, stop] for first, stop in files.missing],
        "verdict": files.verdict,
    }
    epoch = None if end is None else end.epoch
    return RaftEvent(
        time, "replica-files", f"{files.verdict}: {files.advice}", epoch, files.node, details
    )


class _FramePositions:
    """The place of the first frame at each time, in 20 bytes a frame, as a capture has millions."""

    def __init__(self) -> None:
        self._times = array("q")
        self._positions = array("q")
        self._files = array("i")
        self._numbers: dict[str, int] = {}

    def note_frame(self, time_ns: int, file: str, position: int) -> None:
        """Add a frame. Order: by time."""
        if self._times and self._times[-1] >= time_ns:
            return
        self._times.append(time_ns)
        self._positions.append(position)
        self._files.append(self._numbers.setdefault(file, len(self._numbers)))

    def find_frame(self, time: float) -> tuple[int, str, int]:
        """Return a time in nanoseconds, with file and position of its first frame, if any."""
        index = bisect_left(self._times, time, key=lambda time_ns: time_ns / _SECOND_NS)
        if index == len(self._times) or self._times[index] / _SECOND_NS != time:
            return round(time * _SECOND_NS), "", 0
        file = list(self._numbers)[self._files[index]]
        return self._times[index], file, self._positions[index]


def stories(rows: Iterable[ExchangeRow]) -> dict[str | None, Story]:
    """Return the story of every cluster, by its id. Order: `rows` are in order of time."""
    quorums: dict[str | None, QuorumRows] = {}
    for row in rows:
        quorums.setdefault(row.cluster, QuorumRows()).on_exchange(row)
    return {cluster: quorum.story() for cluster, quorum in quorums.items()}


def _restore_slice(body: FetchSnapshotResponse, missing: int) -> None:
    """Put zeros in place of the bytes of a snapshot, as their number is part of the story.

    `missing` counts these bytes, and the bytes of their length beyond the first.
    """
    for partition in (p for topic in body.topics for p in topic.partitions):
        size = missing
        while size > 0 and size + uvarint_size(size + 1) - 1 > missing:
            size -= 1
        partition.unaligned_records = memoryview(bytes(size))


def _frame(row: ExchangeRow, time_ns: int, direction: str) -> RawFrame:
    """Return a frame of a row, as far as a story needs it: who spoke to whom, and when."""
    frame = RawFrame()
    frame.connection, frame.direction, frame.time_ns = row.connection, direction, time_ns
    frame.api_key, frame.api_version = row.api_key, row.api_version
    frame.correlation_id = row.correlation_id
    frame.request = None
    return frame


def _body(row: ExchangeRow, data: bytes, *, is_request: bool) -> Message | None:
    """Return the body of a request or response; None if the story does not need it."""
    if row.api_key not in QUORUM_APIS:
        return None
    api = row.api_key, row.api_version
    return decode_payload(data, is_request=is_request, api=api).body
