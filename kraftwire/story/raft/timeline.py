"""Makes the story of a quorum from the frames of a capture, or the batches of a metadata log.

Passes each frame to the parts that gather the story, and owns the order of the finished events.
Makes no decisions about the protocol and keeps no frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kraftwire.capture.framing.frames import Ending
from kraftwire.decode.body.context import METADATA_TOPIC, METADATA_TOPIC_ID
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
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import Batch
from kraftwire.story.raft.elections import Elections, Leaders
from kraftwire.story.raft.metadata_log import Extent, MetadataLog, Place
from kraftwire.story.raft.model import Event, NodeId, ObservedFrame, Silence, Story
from kraftwire.story.raft.nodes import Endings, Nodes
from kraftwire.story.raft.progress import Progress
from kraftwire.story.raft.snapshots import Downloads, SnapshotFiles, SnapshotId
from kraftwire.story.raft.voters import CHANGES, Voters

__all__ = ["Timeline"]

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

    def __init__(self, *, show_secrets: bool = False) -> None:
        self._nodes = Nodes()
        self._voters = Voters(self._nodes)
        self._downloads = Downloads(self._nodes)
        self._log = MetadataLog(
            self._on_control, self._voters.note_truncation, show_secrets=show_secrets
        )
        self._snapshots = SnapshotFiles(show_secrets=show_secrets)
        self._elections = Elections(self._nodes)
        self._leaders = Leaders(self._nodes, self._elections)
        self._progress = Progress()
        self._endings = Endings(self._nodes)
        self._events: list[Event] = []
        self._start: float | None = None
        self._end = 0.0

    def on_frame(self, frame: ObservedFrame) -> None:
        """Add a frame."""
        self._note_time(frame.time)
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

    def on_batch(self, batch: Batch) -> None:
        """Add a batch of a metadata log; its time is that of its records."""
        self._note_batch(batch)
        self._log.on_batch(batch)

    def on_control_records(
        self, extent: Extent, records: Iterable[tuple[Decoded, int, float]], time: float | None
    ) -> None:
        """Add the control records of a batch of the metadata log that was decoded elsewhere.

        Arguments: as for `MetadataLog.on_control_records`. Without `time`, the records' own times
        count.
        """
        rows = list(records)
        for _, _, written in rows if time is None else ():
            self._note_time(written)
        self._log.on_control_records(extent, rows, time)
        if time is not None:
            self._progress.on_records(extent.last_offset + 1, time)

    def on_snapshot_batch(self, file: str, batch: Batch) -> None:
        """Add a batch of a snapshot file."""
        self._note_batch(batch)
        self._snapshots.on_batch(file, batch)

    def on_directory(self, meta_properties: str, node: int) -> None:
        """Note the node that a log directory belongs to, from its meta.properties."""
        self._snapshots.on_directory(meta_properties, node)

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
            self._leaders.note_change(
                message, epoch=place.epoch, offset=place.offset, time=place.time
            )
        elif isinstance(message, VotersRecord):
            self._voters.note_record(message, offset=place.offset, time=place.time)
        elif isinstance(message, KRaftVersionRecord):
            level = message.kraft_version
            self._voters.note_version(level, offset=place.offset, time=place.time)

    # -- the end -------------------------------------------------------------------------------

    def story(self) -> Story:
        """Return the story so far, in order of time."""
        self._nodes.finish(self._end)
        self._leaders.finish(self._nodes.silences)
        self._progress.finish(self._end)
        labels = self._labels()
        start = self._start if self._start is not None else self._end
        events = [
            *self._events,
            *self._elections.events(),
            *self._leaders.events(self._elections.rounds),
            *self._voters.events(),
            *self._downloads.events(self._end),
            *self._progress.events(),
            *self._log.events,
            *self._snapshots.events(start),
            *self._silence_events(),
            *self._arrivals(),
            *self._endings.events(),
        ]
        events.sort(key=lambda each: each.time)
        log = self._log
        if log.is_empty and self._snapshots.latest is not None:
            log = self._snapshots.latest
        return Story(
            start=start,
            end=self._end,
            events=events[:RAFT_EVENT_COUNT_MAX],
            leaders=[self._leaders.by_epoch[epoch] for epoch in sorted(self._leaders.by_epoch)],
            rounds=self._elections.rounds,
            silences=self._nodes.silences,
            replicas=sorted(self._progress.replicas.values(), key=lambda each: str(each.node)),
            voters=self._voters.voter_sets,
            log=log.summary(),
            labels=labels,
            event_overflow=max(0, len(events) - RAFT_EVENT_COUNT_MAX),
        )

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
            text = with_remarks(f"begins to fetch at offset {each.first_offset}", [kind])
            details = {"offset": each.first_offset, "kind": kind}
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
        span = "for good"
        if silence.end is not None:
            span = f"for {duration_text(silence.end - silence.start)}"
        text = with_remarks(f"{'leader ' if led else ''}falls silent {span}", remarks)
        seconds = None if silence.end is None else silence.end - silence.start
        details = {
            "seconds": seconds,
            "unanswered": silence.unanswered,
            "wasLeader": bool(led),
        }
        return Event(silence.start, "silence", text, epoch, silence.node, details)

    def _note_time(self, time: float) -> None:
        if self._start is None or time < self._start:
            self._start = time
        self._end = max(self._end, time)


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
