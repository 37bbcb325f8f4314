"""Makes the story of a quorum from the frames of a capture, or the batches of a metadata log.

Passes each frame to the parts that gather the story, and owns the order of the finished events.
Makes no decisions about the protocol and keeps no frames.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.capture.recorded import Recordings, TimeSpan
from kraftwire.controller.check import Contradiction
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import Batch
from kraftwire.story.events import hole_facts
from kraftwire.story.raft.coverage import Extent, LogSilence
from kraftwire.story.raft.downloads import Downloads
from kraftwire.story.raft.elections import Elections
from kraftwire.story.raft.fetches import Fetches
from kraftwire.story.raft.leaders import Leaders
from kraftwire.story.raft.metadata_log import MetadataLog, RecordPosition, clock_event, extent_of
from kraftwire.story.raft.model import NodeId, RaftEvent, Story
from kraftwire.story.raft.nodes import Endings, Nodes
from kraftwire.story.raft.progress import ReplicaProgress
from kraftwire.story.raft.replica_files import ReplicasOnDisk
from kraftwire.story.raft.silences import log_silence_event, silence_event
from kraftwire.story.raft.snapshots import SnapshotFiles, SnapshotSummary
from kraftwire.story.raft.voters import Voters
from kraftwire.wire.message import Message

_OnRequest = Callable[[RawFrame, Any], None]
_OnResponse = Callable[[RawFrame, Any, Message | None], None]


class Timeline:
    """Gathers the story of one quorum.

    Order: `on_frame`, or `on_batch`, as they come; then call `story` once. `files` takes what else
    there is beside a metadata log.
    """

    def __init__(
        self, recordings: Recordings | None = None, *, show_secrets: bool = False
    ) -> None:
        """Begin a story. `recordings` are those of the frames, and grow while these come."""
        self.files = ReplicasOnDisk()
        self._recordings = Recordings() if recordings is None else recordings
        self._nodes = nodes = Nodes(self._recordings)
        self._voters = Voters(nodes)
        self._downloads = Downloads(nodes)
        self._log = MetadataLog(
            self._on_control, self._voters.note_truncation, show_secrets=show_secrets
        )
        self._snapshots = SnapshotFiles(self.files.owners, show_secrets=show_secrets)
        self._elections = Elections(nodes)
        self._leaders = Leaders(nodes, self._elections)
        self._progress = ReplicaProgress(self._recordings)
        self._fetches = Fetches(
            nodes, self._voters, self._downloads, self._elections, self._leaders, self._progress,
            self._log,
        )
        self._endings = Endings(nodes)
        changes = self._voters.changes
        # Name of a message -> who takes it.
        self._on_request: dict[str, _OnRequest] = {
            "AddRaftVoterRequest": changes.on_request,
            "BeginQuorumEpochRequest": self._leaders.on_begin,
            "BrokerHeartbeatRequest": nodes.on_registration,
            "BrokerRegistrationRequest": nodes.on_registration,
            "ControllerRegistrationRequest": nodes.on_registration,
            "EndQuorumEpochRequest": self._leaders.on_end,
            "FetchRequest": self._fetches.on_request,
            "FetchSnapshotRequest": self._downloads.on_request,
            "RemoveRaftVoterRequest": changes.on_request,
            "UpdateFeaturesRequest": changes.on_request,
            "UpdateRaftVoterRequest": changes.on_request,
            "VoteRequest": self._elections.on_request,
        }
        self._on_response: dict[str, _OnResponse] = {
            "AddRaftVoterResponse": changes.on_response,
            "BeginQuorumEpochResponse": self._leaders.on_begin_answer,
            "DescribeQuorumResponse": self._on_described,
            "EndQuorumEpochResponse": self._leaders.on_end_answer,
            "FetchResponse": self._fetches.on_response,
            "FetchSnapshotResponse": self._downloads.on_response,
            "RemoveRaftVoterResponse": changes.on_response,
            "UpdateFeaturesResponse": changes.on_response,
            "UpdateRaftVoterResponse": changes.on_response,
            "VoteResponse": self._elections.on_response,
        }
        # The log file of the batch that is being read, empty for frames.
        self._file = ""
        self._start: float | None = None
        self._end = 0.0
        # The times of the first and the last frame.
        self._first_frame: float | None = None
        self._last_frame = 0.0

    def on_frame(
        self, frame: RawFrame, body: Any = None, request: Message | None = None
    ) -> None:
        """Add a frame.

        `body` is what it carries, of an envelope the body inside; None where the story does not
        read it. A response comes with the body of its `request`, if known.
        """
        self._file = ""
        self._note_frame(frame)
        if body is not None:
            self._on_body(frame, body, request)
            self._endings.on_use(frame)
        self._nodes.on_frame(frame)

    def _on_body(self, frame: RawFrame, body: Any, request: Message | None) -> None:
        if frame.is_request:
            on_request = self._on_request.get(body.NAME)
            if on_request is not None:
                on_request(frame, body)
            return
        on_response = self._on_response.get(body.NAME)
        if on_response is not None:
            on_response(frame, body, request)
        endpoints = getattr(body, "node_endpoints", None)
        if endpoints:
            self._nodes.learn_endpoints((e.node_id, e.host, e.port) for e in endpoints)

    def on_ending(self, ending: Ending) -> None:
        """Add the end of a connection."""
        self._endings.on_ending(ending)

    def on_batch(
        self, file: str, batch: Batch, contradictions: Sequence[Contradiction] = ()
    ) -> None:
        """Add a batch of a metadata log; its time is that of its records.

        `contradictions` are those of its records that contradict the records before them.
        """
        self._note_batch(file, batch, contradictions)
        self._file = file
        self.files.on_batch(file, extent_of(batch, is_file=True))
        self._log.on_batch(batch, None, contradictions)

    def on_snapshot_batch(
        self, file: str, batch: Batch, contradictions: Sequence[Contradiction] = ()
    ) -> None:
        """Add a batch of a snapshot file."""
        self._note_batch(file, batch, contradictions)
        self._snapshots.on_batch(file, batch, contradictions)
        self.files.on_snapshot(file, is_whole=self._snapshots.is_whole(file))

    def on_control_records(
        self, extent: Extent, records: Iterable[tuple[Decoded, int, float]], time: float
    ) -> None:
        """Add the control records of a batch that a frame brought, and that was decoded elsewhere.

        Arguments: as for `MetadataLog.on_control_records`.
        """
        self._file = ""
        self._log.on_control_records(extent, records, time)
        self._progress.on_records(extent.last_offset + 1, time)

    def on_file_records(
        self,
        file: str,
        extent: Extent,
        records: Iterable[tuple[Decoded, int, float]],
        *,
        is_idle: bool,
    ) -> None:
        """Add the control records of a batch of a log file that was decoded elsewhere.

        `is_idle` says whether it has a NoOpRecord.
        """
        if extent.last_time is not None:
            self._note_time(extent.last_time)
        self._file = file
        self.files.on_batch(file, extent)
        self._log.on_control_records(extent, records, None)
        if is_idle and extent.last_time is not None:
            self._log.coverage.note_idle(extent.last_time)

    def on_snapshot_summary(self, file: str, summary: SnapshotSummary | None) -> None:
        """Add a snapshot file whose records were decoded elsewhere; None if it has no batch."""
        if summary is not None:
            for time in filter(None, (summary.first_time, summary.last_time)):
                self._note_time(time)
            self._snapshots.on_summary(file, summary)
        self.files.on_snapshot(file, is_whole=self._snapshots.is_whole(file))

    def _on_described(
        self, frame: RawFrame, body: DescribeQuorumResponse, _request: Message | None
    ) -> None:
        for topic in body.topics:
            for partition in topic.partitions:
                if partition.error_code or topic.topic_name != METADATA_TOPIC:
                    continue
                self._leaders.note_leader(
                    partition.leader_epoch, partition.leader_id, frame.time, "DescribeQuorum"
                )
                self._voters.note_described(partition.current_voters, frame.time)
        listeners = ((n.node_id, each) for n in body.nodes or () for each in n.listeners)
        self._nodes.learn_endpoints((node, each.host, each.port) for node, each in listeners)

    def _on_control(self, decoded: Decoded, position: RecordPosition) -> None:
        message = decoded.message
        if isinstance(message, LeaderChangeMessage):
            # Every replica is a witness: another may have lost the record, or have another one.
            self._leaders.note_change(
                message, epoch=position.epoch, offset=position.offset, time=position.time
            )
            if self._file:
                self.files.on_leader(self._file, position.epoch, message.leader_id, position.offset)
        if not position.is_new:
            return
        if isinstance(message, VotersRecord):
            self._voters.note_record(message, offset=position.offset, time=position.time)
        elif isinstance(message, KRaftVersionRecord):
            level = message.kraft_version
            self._voters.note_version(level, offset=position.offset, time=position.time)

    # -- the end -------------------------------------------------------------------------------

    def story(self, unowned: Collection[str] = ()) -> Story:
        """Return the story so far, in order of time.

        `unowned` are log directories that may be of another cluster.
        """
        if self._log.is_empty:
            for _, time in self._snapshots.times():
                self._note_time(time)
        contradictions = self._conclude_files(unowned)
        log_silences = list(self._log.coverage.silences())
        self._nodes.finish(self._last_frame, self._leaders.beginnings())
        recorded = self._recordings.and_also(self._log.coverage.recorded())
        self._elections.finish()
        self._leaders.finish(self._nodes.silences, log_silences, recorded, self._end)
        self._progress.finish(self._last_frame)
        start = self._start if self._start is not None else self._end
        not_recorded = [] if self._first_frame is None else recorded.holes(start, self._end)
        events = self._events(start, log_silences, not_recorded)
        log = self._log.summary()
        if self._log.is_empty and self._snapshots.latest is not None:
            log = self._snapshots.latest.summary()
            log.snapshot = self._snapshots.latest_name
        return Story(
            start=start,
            end=self._end,
            events=events[:RAFT_EVENT_COUNT_MAX],
            leaders=[self._leaders.by_epoch[epoch] for epoch in sorted(self._leaders.by_epoch)],
            rounds=self._elections.rounds,
            silences=self._nodes.silences,
            replicas=sorted(self._progress.replicas.values(), key=lambda each: str(each.node)),
            voters=self._voters.voter_sets,
            log=log,
            labels=self._labels(),
            event_overflow=max(0, len(events) - RAFT_EVENT_COUNT_MAX),
            files=self.files.replicas,
            contradictions=contradictions,
            majority=self.files.majority,
            not_recorded=not_recorded,
        )

    def _events(
        self, start: float, log_silences: Iterable[LogSilence], not_recorded: Iterable[TimeSpan]
    ) -> list[RaftEvent]:
        """Return all events by time; those of one moment in the order of their sources here."""
        led = self._leaders.by_epoch
        leaders = {epoch: each.leader for epoch, each in led.items()}
        first_frame = self._first_frame or 0.0
        sources: tuple[Iterable[RaftEvent], ...] = (
            self._fetches.events,
            self._elections.events(),
            self._leaders.events(),
            self._voters.events(),
            self._downloads.events(self._last_frame),
            self._progress.events(),
            self._log.events,
            self._snapshots.events(start),
            (silence_event(each, led.values()) for each in self._nodes.silences),
            (log_silence_event(each, leaders.get(each.epoch)) for each in log_silences),
            map(clock_event, self._log.coverage.backwards()),
            self._progress.arrivals(self._nodes.kinds, self._voters.voters_at, first_frame),
            self._endings.events(),
            map(_hole_event, not_recorded),
        )
        events = [event for source in sources for event in source]
        return sorted(events, key=lambda each: each.time)

    def _conclude_files(self, unowned: Collection[str]) -> list[str]:
        """Add the evidence of all files; return what they contradict."""
        if self.files.is_empty:
            return []
        self.files.finish(self._voter_directories(), unowned)
        found = [self._leaders.note_evidence(each) for each in self.files.evidence()]
        self._leaders.note_spans(self._log.coverage.spans)
        for epoch, time in self._snapshots.times():
            self._leaders.note_snapshot_time(epoch, time)
        return [*self.files.contradictions, *(text for text in found if text is not None)]

    def _voter_directories(self) -> Mapping[int, str]:
        """Return the newest voters, with directory ids where known.

        A VotersRecord of the log, or the newest snapshot's if that is later; else those that a
        LeaderChange record names, as with static voters.
        """
        latest, snapshot = self._voters.latest(), self._snapshots.newest_voters()
        if latest is not None and (
            snapshot is None or latest.offset is None or latest.offset >= snapshot[0].offset
        ):
            return {node: latest.directories.get(node, "") for node in latest.voters}
        if snapshot is not None:
            return snapshot[1]
        return dict.fromkeys(self._leaders.last_voters(), "")

    def _labels(self) -> dict[NodeId, str]:
        voters = {node for each in self._voters.voter_sets for node in each.voters}
        labels: dict[NodeId, str] = dict.fromkeys(self._progress.replicas, "observer")
        labels |= self._nodes.kinds
        labels |= dict.fromkeys(voters, "former voter")
        return labels | dict.fromkeys(self._voters.voters, "voter")

    def _note_frame(self, frame: RawFrame) -> None:
        self._note_time(frame.time)
        self._recordings.note_frame(frame.time, frame.connection)
        if self._first_frame is None or frame.time < self._first_frame:
            self._first_frame = frame.time
        self._last_frame = max(self._last_frame, frame.time)

    def _note_batch(
        self, file: str, batch: Batch, contradictions: Sequence[Contradiction]
    ) -> None:
        if batch.max_timestamp > 0:
            self._note_time(batch.max_timestamp / 1000)
        for each in contradictions:
            self.files.on_contradiction(file, each.offset)

    def _note_time(self, time: float) -> None:
        if self._start is None or time < self._start:
            self._start = time
        self._end = max(self._end, time)


def _hole_event(hole: TimeSpan) -> RaftEvent:
    text, details = hole_facts(hole)
    return RaftEvent(hole[0], "not-recorded", text, None, None, details)
