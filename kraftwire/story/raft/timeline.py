"""Makes the story of a quorum from the frames of a capture, or the batches of a metadata log.

Passes each frame to the parts that gather the story, and owns the order of the finished events.
Makes no decisions about the protocol and keeps no frames.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kraftwire.capture.framing.frames import Ending
from kraftwire.capture.recorded import Recordings, TimeSpan
from kraftwire.controller.check import Contradiction
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileFinding
from kraftwire.decode.text import duration_text, with_remarks
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.fetch_response import PartitionData as FetchedPartition
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.update_features_request import UpdateFeaturesRequest
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import Batch
from kraftwire.story.events import hole_facts
from kraftwire.story.raft.coverage import Backwards, Extent, LogSilence
from kraftwire.story.raft.elections import Elections, Leaders
from kraftwire.story.raft.metadata_log import MetadataLog, Place, extent_of
from kraftwire.story.raft.model import Event, NodeId, ObservedFrame, Silence, Story
from kraftwire.story.raft.nodes import SILENCE_S, Endings, Nodes
from kraftwire.story.raft.progress import Progress
from kraftwire.story.raft.replica_files import ReplicasOnDisk
from kraftwire.story.raft.snapshots import (
    Downloads,
    SnapshotFiles,
    SnapshotId,
    SnapshotSummary,
)
from kraftwire.story.raft.voters import CHANGES, Voters

_REGISTRATIONS = {
    "BrokerHeartbeatRequest": ("broker_id", "broker"),
    "BrokerRegistrationRequest": ("broker_id", "broker"),
    "ControllerRegistrationRequest": ("controller_id", "controller"),
}

# A controller that shuts down resigns and then waits at most 5 s for a successor.
_SHUTDOWN_S = 6.0


class Timeline:
    """Gathers the story of one quorum.

    Order: `on_frame`, or `on_batch`, as they come; then call `story` once.
    """

    def __init__(
        self, recordings: Recordings | None = None, *, show_secrets: bool = False
    ) -> None:
        """Begin a story. `recordings` are those of the frames, and grow while these come."""
        self._recordings = Recordings() if recordings is None else recordings
        self._nodes = Nodes(self._recordings)
        self._voters = Voters(self._nodes)
        self._downloads = Downloads(self._nodes)
        self._log = MetadataLog(
            self._on_control, self._voters.note_truncation, show_secrets=show_secrets
        )
        self._snapshots = SnapshotFiles(show_secrets=show_secrets)
        self._elections = Elections(self._nodes)
        self._leaders = Leaders(self._nodes, self._elections)
        self._progress = Progress(self._recordings)
        self._endings = Endings(self._nodes)
        self._files = ReplicasOnDisk()
        # The log file of the batch that is being read, empty for frames.
        self._file = ""
        self._events: list[Event] = []
        self._start: float | None = None
        self._end = 0.0
        # The times of the first and the last frame.
        self._first_frame: float | None = None
        self._last_frame = 0.0

    def on_frame(self, frame: ObservedFrame) -> None:
        """Add a frame."""
        self._file = ""
        self._note_time(frame.time)
        self._note_frame(frame)
        if frame.body is not None:
            if frame.is_request:
                self._on_request(frame, frame.body)
            else:
                self._on_response(frame, frame.body)
            self._endings.on_use(frame)
        self._nodes.on_frame(frame)

    def on_ending(self, ending: Ending) -> None:
        """Add the end of a connection."""
        self._endings.on_ending(ending)

    def on_batch(
        self, file: str, batch: Batch, contradictions: Sequence[Contradiction] = ()
    ) -> None:
        """Add a batch of a metadata log; its time is that of its records.

        `contradictions` are those of its records that contradict the records before them.
        """
        self._note_batch(batch)
        self._file = file
        self._files.on_batch(file, extent_of(batch, is_file=True))
        self._log.on_batch(batch, None, contradictions)
        self._note_contradictions(file, contradictions)

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
        self._files.on_batch(file, extent)
        self._log.on_control_records(extent, records, None)
        if is_idle and extent.last_time is not None:
            self._log.coverage.note_idle(extent.last_time)

    def on_snapshot_batch(
        self, file: str, batch: Batch, contradictions: Sequence[Contradiction] = ()
    ) -> None:
        """Add a batch of a snapshot file."""
        self._note_batch(batch)
        self._snapshots.on_batch(file, batch, contradictions)
        self._files.on_snapshot(file, is_whole=self._snapshots.is_whole(file))
        self._note_contradictions(file, contradictions)

    def on_contradiction(self, file: str, offset: int) -> None:
        """Note a record of a log file that contradicts those before it."""
        self._files.on_contradiction(file, offset)

    def on_snapshot_summary(self, file: str, summary: SnapshotSummary | None) -> None:
        """Add a snapshot file whose records were decoded elsewhere; None if it has no batch."""
        if summary is not None:
            for time in filter(None, (summary.first_time, summary.last_time)):
                self._note_time(time)
            self._snapshots.on_summary(file, summary)
        self._files.on_snapshot(file, is_whole=self._snapshots.is_whole(file))

    def on_file(self, file: str, kind: FileKind) -> None:
        """Note that there is a file next to a metadata log. Order: before what is read of it."""
        self._files.on_file(file, kind)

    def on_finding(self, finding: FileFinding, end_offset: int | None) -> None:
        """Add what is wrong with a segment of a metadata log.

        The batches before it in the segment end before `end_offset`, None if there are none.
        """
        self._files.on_finding(finding, end_offset)

    def on_state(self, kind: FileKind, file: str, data: dict[str, Any]) -> None:
        """Add a state file next to a metadata log."""
        self._files.on_state(kind, file, data)

    def on_directory(
        self, meta_properties: str, node: int | None, directory_id: str | None
    ) -> None:
        """Note the replica that a log directory belongs to, from its meta.properties."""
        self._files.on_owner(meta_properties, node, directory_id)
        if node is not None:
            self._snapshots.on_directory(meta_properties, node)

    def on_refusal(self, folder: str, refusal: str) -> None:
        """Note why a node does not start on a log directory."""
        self._files.on_refusal(folder, refusal)

    def _note_contradictions(self, file: str, found: Sequence[Contradiction]) -> None:
        for each in found:
            self._files.on_contradiction(file, each.offset)

    def _note_batch(self, batch: Batch) -> None:
        if batch.max_timestamp > 0:
            self._note_time(batch.max_timestamp / 1000)

    # -- requests ------------------------------------------------------------------------------

    def _on_request(self, frame: ObservedFrame, body: Any) -> None:
        match body:
            case FetchRequest():
                self._on_fetch(frame, body)
            case VoteRequest():
                self._elections.on_request(frame, body)
            case BeginQuorumEpochRequest():
                self._leaders.on_begin(frame, body)
            case EndQuorumEpochRequest():
                self._leaders.on_end(frame, body)
            case FetchSnapshotRequest():
                self._downloads.on_request(frame, body)
            case (
                AddRaftVoterRequest()
                | RemoveRaftVoterRequest()
                | UpdateRaftVoterRequest()
                | UpdateFeaturesRequest()
            ):
                self._voters.changes.on_request(frame, body)
            case _ if body.NAME in _REGISTRATIONS:
                attribute, kind = _REGISTRATIONS[body.NAME]
                node = getattr(body, attribute)
                self._nodes.learn_client(frame, node)
                self._nodes.kinds.setdefault(node, kind)

    def _on_fetch(self, frame: ObservedFrame, body: FetchRequest) -> None:
        requested = _requested_partition(body)
        replica = _replica_id(body)
        if requested is None or replica < 0:
            return
        self._nodes.learn_client(frame, replica)
        self._progress.on_fetch(replica, requested.fetch_offset, frame.time)

    # -- responses -----------------------------------------------------------------------------

    def _on_response(self, frame: ObservedFrame, body: Any) -> None:
        match body:
            case FetchResponse():
                self._on_fetched(frame, body)
            case VoteResponse():
                self._elections.on_response(frame, body)
            case BeginQuorumEpochResponse():
                self._leaders.on_begin_answer(frame, body)
            case EndQuorumEpochResponse():
                self._leaders.on_end_answer(frame, body)
            case FetchSnapshotResponse():
                self._downloads.on_response(frame, body)
            case DescribeQuorumResponse():
                self._on_described(frame, body)
            case _ if body.NAME.removesuffix("Response") in CHANGES:
                self._voters.changes.on_response(frame, body)
        endpoints = getattr(body, "node_endpoints", None)
        if endpoints:
            self._nodes.learn_endpoints((e.node_id, e.host, e.port) for e in endpoints)

    def _on_fetched(self, frame: ObservedFrame, body: FetchResponse) -> None:
        request = frame.request
        if not isinstance(request, FetchRequest) or _requested_partition(request) is None:
            return
        partition = _fetched_partition(body)
        if partition is None or partition.error_code or body.error_code:
            return
        requested = _requested_partition(request)
        epoch = requested.current_leader_epoch if requested else -1
        if partition.current_leader is not None and partition.current_leader.leader_id >= 0:
            current = partition.current_leader
            leader, epoch = current.leader_id, current.leader_epoch
            # Only the leader answers without an error.
            self._nodes.learn_server(frame.server, leader)
            self._leaders.note(epoch, leader, frame.time, "Fetch")
            self._leaders.note_high_watermark(epoch, partition.high_watermark)
        server = self._nodes.server(frame)
        self._elections.note_fetched(_replica_id(request), server, frame.time)
        self._progress.on_leader(server, partition.high_watermark, frame.time, epoch)
        self._voters.note_high_watermark(partition.high_watermark, frame.time)
        self._downloads.on_log_start(
            server, partition.log_start_offset, time=frame.time, epoch=epoch
        )
        self._note_refusals(frame, request, partition, epoch)
        if partition.records:
            end = self._log.on_bytes(partition.records, frame.time)
            self._progress.on_records(end, frame.time)

    def _note_refusals(
        self, frame: ObservedFrame, request: FetchRequest, partition: FetchedPartition, epoch: int
    ) -> None:
        """Note a leader's answer that names a diverging epoch or a snapshot instead of records."""
        replica = _replica_id(request)
        if partition.diverging_epoch is not None and partition.diverging_epoch.epoch >= 0:
            ended, end = partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset
            text = f"log diverges from the leader's: epoch {ended} ends at offset {end} there"
            details = {"divergingEpoch": ended, "endOffset": end}
            self._events.append(Event(frame.time, "diverging", text, epoch, replica, details))
        requested = _requested_partition(request)
        if (
            partition.snapshot_id is not None
            and partition.snapshot_id.epoch >= 0
            and requested is not None
        ):
            self._downloads.on_instruction(
                replica,
                SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
                time=frame.time,
                epoch=epoch,
                offset=requested.fetch_offset,
                log_start=partition.log_start_offset,
            )
        else:
            self._downloads.on_records(replica)

    def _on_described(self, frame: ObservedFrame, body: DescribeQuorumResponse) -> None:
        for topic in body.topics:
            for partition in topic.partitions:
                if partition.error_code or topic.topic_name != METADATA_TOPIC:
                    continue
                self._leaders.note(
                    partition.leader_epoch, partition.leader_id, frame.time, "DescribeQuorum"
                )
                self._voters.note_described(partition.current_voters, frame.time)
        listeners = ((n.node_id, each) for n in body.nodes or () for each in n.listeners)
        self._nodes.learn_endpoints((node, each.host, each.port) for node, each in listeners)

    def _on_control(self, decoded: Decoded, place: Place) -> None:
        message = decoded.message
        if isinstance(message, LeaderChangeMessage):
            # Every replica is a witness: another may have lost the record, or have another one.
            self._leaders.note_change(
                message, epoch=place.epoch, offset=place.offset, time=place.time
            )
            if self._file:
                self._files.on_leader(self._file, place.epoch, message.leader_id, place.offset)
        if not place.is_new:
            return
        if isinstance(message, VotersRecord):
            self._voters.note_record(message, offset=place.offset, time=place.time)
        elif isinstance(message, KRaftVersionRecord):
            level = message.kraft_version
            self._voters.note_version(level, offset=place.offset, time=place.time)

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
        labels = self._labels()
        start = self._start if self._start is not None else self._end
        events = [
            *self._events,
            *self._elections.events(),
            *self._leaders.events(self._elections.rounds),
            *self._voters.events(),
            *self._downloads.events(self._last_frame),
            *self._progress.events(),
            *self._log.events,
            *self._snapshots.events(start),
            *self._silence_events(),
            *map(self._log_silence_event, log_silences),
            *map(_backwards_event, self._log.coverage.backwards()),
            *self._arrivals(),
            *self._endings.events(),
        ]
        not_recorded = [] if self._first_frame is None else recorded.holes(start, self._end)
        events += map(_hole_event, not_recorded)
        events.sort(key=lambda each: each.time)
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
            labels=labels,
            event_overflow=max(0, len(events) - RAFT_EVENT_COUNT_MAX),
            files=self._files.replicas,
            contradictions=contradictions,
            majority=self._files.majority,
            not_recorded=not_recorded,
        )

    def _conclude_files(self, unowned: Collection[str]) -> list[str]:
        """Add the evidence of all files; return what they contradict."""
        if self._files.is_empty:
            return []
        self._files.finish(self._voter_directories(), unowned)
        found = [self._leaders.note_evidence(each) for each in self._files.evidence()]
        self._leaders.note_spans(self._log.coverage.spans)
        for epoch, time in self._snapshots.times():
            self._leaders.note_snapshot_time(epoch, time)
        return [*self._files.contradictions, *(text for text in found if text is not None)]

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

    def _arrivals(self) -> Iterator[Event]:
        for each in self._progress.replicas.values():
            kind = "broker" if self._nodes.kinds.get(each.node) == "broker" else "observer"
            if each.node in self._voters.voters_at(each.first_fetch):
                kind = "voter"
            # Where the time before is not recorded, it may have fetched all along.
            before = each.first_fetch - SILENCE_S
            begins = each.first_offset == 0 or (
                before > (self._first_frame or 0.0)
                and not self._recordings.pauses(before, each.first_fetch)
            )
            verb = "begins to fetch" if begins else "fetches"
            text = with_remarks(f"{verb} at offset {each.first_offset}", [kind])
            details = {"offset": each.first_offset, "kind": kind, "begins": begins}
            yield Event(each.first_fetch, "fetch", text, None, each.node, details)

    def _silence_events(self) -> list[Event]:
        return [self._silence_event(each) for each in self._nodes.silences]

    def _silence_event(self, silence: Silence) -> Event:
        led = [
            each.epoch
            for each in self._leaders.by_epoch.values()
            if each.leader == silence.node and each.end == silence.start
        ]
        epoch = led[0] if led else None
        remarks = []
        resigned = [
            each.epoch
            for each in self._leaders.by_epoch.values()
            if each.leader == silence.node
            and each.resigned is not None
            and 0 <= silence.start - each.resigned < _SHUTDOWN_S
        ]
        if resigned:
            remarks.append(f"after it resigned in epoch {resigned[0]}")
        if silence.unanswered:
            remarks.append(f"{silence.unanswered} requests to it without an answer")
        if silence.without_packets:
            paused = duration_text(silence.without_packets)
            remarks.append(f"no packet of anyone is recorded for {paused} of it")
        span = f"for {duration_text(silence.until - silence.start)}"
        if silence.end is None:
            span = f"for at least {duration_text(silence.until - silence.start)}"
            remarks.append("not recorded after that")
        text = with_remarks(f"{'leader ' if led else ''}falls silent {span}", remarks)
        seconds = None if silence.end is None else silence.end - silence.start
        details = {
            "seconds": seconds,
            "until": silence.until,
            "recordedSeconds": silence.until - silence.start - silence.without_packets,
            "unanswered": silence.unanswered,
            "wasLeader": bool(led),
        }
        return Event(silence.start, "silence", text, epoch, silence.node, details)

    def _log_silence_event(self, silence: LogSilence) -> Event:
        known = self._leaders.by_epoch.get(silence.epoch)
        seconds = silence.end - silence.start
        remark = f"the log has no record between offsets {silence.offset - 1} and {silence.offset}"
        if silence.is_replaced:
            remark = f"no replica has a record until that at offset {silence.offset}"
        text = with_remarks(f"leader falls silent for {duration_text(seconds)}", [remark])
        details = {"seconds": seconds, "unanswered": 0, "wasLeader": True, "seenIn": "log"}
        node = None if known is None else known.leader
        return Event(silence.start, "silence", text, silence.epoch, node, details)

    def _note_frame(self, frame: ObservedFrame) -> None:
        self._recordings.note_frame(frame.time, frame.connection)
        if self._first_frame is None or frame.time < self._first_frame:
            self._first_frame = frame.time
        self._last_frame = max(self._last_frame, frame.time)

    def _note_time(self, time: float) -> None:
        if self._start is None or time < self._start:
            self._start = time
        self._end = max(self._end, time)


def _hole_event(hole: TimeSpan) -> Event:
    text, details = hole_facts(hole)
    return Event(hole[0], "not-recorded", text, None, None, details)


def _backwards_event(step: Backwards) -> Event:
    seconds = step.before - step.time
    text = (
        f"the record at offset {step.offset} is {duration_text(seconds)} older than the one before "
        "it: times do not order these records"
    )
    details = {"offset": step.offset, "seconds": seconds}
    return Event(step.time, "clock", text, step.epoch, None, details)


def _replica_id(body: FetchRequest) -> int:
    """Return the id of the replica that fetches; the field moved in version 15."""
    state = body.replica_state
    return state.replica_id if state is not None and state.replica_id >= 0 else body.replica_id


def _requested_partition(body: FetchRequest) -> FetchPartition | None:
    """Return the partition of the metadata topic in a Fetch request, or None."""
    for topic in body.topics:
        if topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC:
            return topic.partitions[0] if topic.partitions else None
    return None


def _fetched_partition(body: FetchResponse) -> FetchedPartition | None:
    for topic in body.responses:
        if topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC:
            return topic.partitions[0] if topic.partitions else None
    return None
