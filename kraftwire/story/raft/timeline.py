"""Turns the frames of a capture, or the batches of a metadata log, into the story of a quorum.

Passes each frame to the parts that gather the story, and owns the order of the finished events.
Makes no decisions about the protocol and keeps no frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kraftwire.capture.connections.frame_queue import Ending
from kraftwire.decode.body.topics import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.decode.text import duration_text, words
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
from kraftwire.records.decoded import Decoded
from kraftwire.records.reader import Batch
from kraftwire.story.raft.elections import Elections, Leaders
from kraftwire.story.raft.metadata_log import Extent, MetadataLog, Place
from kraftwire.story.raft.model import Event, NodeId, Sighting, Silence, Story
from kraftwire.story.raft.nodes import Endings, Nodes
from kraftwire.story.raft.progress import Progress
from kraftwire.story.raft.snapshots import Downloads, SnapshotFiles, SnapshotId
from kraftwire.story.raft.voters import CHANGES, Members

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

    Order: `see` frames, or `see_batch` batches, as they come; then call `story` once.
    """

    def __init__(self, *, show_secrets: bool = False) -> None:
        self._nodes = Nodes()
        self._members = Members(self._nodes)
        self._downloads = Downloads(self._nodes)
        self._log = MetadataLog(
            self._see_control, self._members.note_truncation, show_secrets=show_secrets
        )
        self._snapshots = SnapshotFiles(show_secrets=show_secrets)
        self._elections = Elections(self._nodes)
        self._leaders = Leaders(self._nodes, self._elections)
        self._progress = Progress()
        self._endings = Endings(self._nodes)
        self._events: list[Event] = []
        self._start: float | None = None
        self._end = 0.0

    def see(self, seen: Sighting) -> None:
        """Add a frame."""
        self._note_time(seen.time)
        if seen.body is not None:
            if seen.is_request:
                self._see_request(seen, seen.body)
            else:
                self._see_response(seen, seen.body)
            self._endings.see_use(seen)
        self._nodes.see(seen)

    def see_ending(self, ending: Ending) -> None:
        """Add the end of a connection."""
        self._endings.see(ending)

    def see_batch(self, batch: Batch) -> None:
        """Add a batch of a metadata log; its time is that of its records."""
        self._note_batch(batch)
        self._log.see_batch(batch)

    def see_control_records(
        self, extent: Extent, records: Iterable[tuple[Decoded, int, float]], time: float | None
    ) -> None:
        """Add the control records of a batch of the metadata log that was decoded elsewhere.

        Arguments: as for `MetadataLog.see_control_records`. Without `time`, the records' own times
        count.
        """
        rows = list(records)
        for _, _, written in rows if time is None else ():
            self._note_time(written)
        self._log.see_control_records(extent, rows, time)
        if time is not None:
            self._progress.see_records(extent.last_offset + 1, time)

    def see_snapshot_batch(self, file: str, batch: Batch) -> None:
        """Add a batch of a snapshot file."""
        self._note_batch(batch)
        self._snapshots.see_batch(file, batch)

    def see_directory(self, meta_properties: str, node: int) -> None:
        """Note the node that a log directory belongs to, from its meta.properties."""
        self._snapshots.see_directory(meta_properties, node)

    def _note_batch(self, batch: Batch) -> None:
        if batch.max_timestamp > 0:
            self._note_time(batch.max_timestamp / 1000)

    # -- requests ------------------------------------------------------------------------------

    def _see_request(self, seen: Sighting, body: Any) -> None:
        match body:
            case FetchRequest():
                self._see_fetch(seen, body)
            case VoteRequest():
                self._elections.see_request(seen, body)
            case BeginQuorumEpochRequest():
                self._leaders.see_begin(seen, body)
            case EndQuorumEpochRequest():
                self._leaders.see_end(seen, body)
            case FetchSnapshotRequest():
                self._downloads.see_request(seen, body)
            case (
                AddRaftVoterRequest()
                | RemoveRaftVoterRequest()
                | UpdateRaftVoterRequest()
                | UpdateFeaturesRequest()
            ):
                self._members.changes.see_request(seen, body)
            case _ if body.NAME in _REGISTRATIONS:
                attribute, kind = _REGISTRATIONS[body.NAME]
                node = getattr(body, attribute)
                self._nodes.learn_client(seen, node)
                self._nodes.kinds.setdefault(node, kind)

    def _see_fetch(self, seen: Sighting, body: FetchRequest) -> None:
        asked = _asked_partition(body)
        replica = _replica_id(body)
        if asked is None or replica < 0:
            return
        self._nodes.learn_client(seen, replica)
        self._progress.see_fetch(replica, asked.fetch_offset, seen.time)

    # -- responses -----------------------------------------------------------------------------

    def _see_response(self, seen: Sighting, body: Any) -> None:
        match body:
            case FetchResponse():
                self._see_fetched(seen, body)
            case VoteResponse():
                self._elections.see_response(seen, body)
            case BeginQuorumEpochResponse():
                self._leaders.see_begin_answer(seen, body)
            case EndQuorumEpochResponse():
                self._leaders.see_end_answer(seen, body)
            case FetchSnapshotResponse():
                self._downloads.see_response(seen, body)
            case DescribeQuorumResponse():
                self._see_described(seen, body)
            case _ if body.NAME.removesuffix("Response") in CHANGES:
                self._members.changes.see_response(seen, body)
        endpoints = getattr(body, "node_endpoints", None)
        if endpoints:
            self._nodes.learn_endpoints((e.node_id, e.host, e.port) for e in endpoints)

    def _see_fetched(self, seen: Sighting, body: FetchResponse) -> None:
        request = seen.request
        if not isinstance(request, FetchRequest) or _asked_partition(request) is None:
            return
        told = _fetched_partition(body)
        if told is None or told.error_code or body.error_code:
            return
        asked = _asked_partition(request)
        epoch = asked.current_leader_epoch if asked else -1
        if told.current_leader is not None and told.current_leader.leader_id >= 0:
            leader, epoch = told.current_leader.leader_id, told.current_leader.leader_epoch
            # Only the leader answers without an error.
            self._nodes.learn_server(seen.server, leader)
            self._leaders.note(epoch, leader, seen.time, "Fetch")
            self._leaders.note_high_watermark(epoch, told.high_watermark)
        server = self._nodes.server(seen)
        self._elections.note_fetched(_replica_id(request), server, seen.time)
        self._progress.see_leader(server, told.high_watermark, seen.time, epoch)
        self._members.note_high_watermark(told.high_watermark, seen.time)
        self._downloads.see_log_start(
            server, told.log_start_offset, time=seen.time, epoch=epoch
        )
        self._note_refusals(seen, request, told, epoch)
        if told.records:
            end = self._log.see_bytes(told.records, seen.time)
            self._progress.see_records(end, seen.time)

    def _note_refusals(
        self, seen: Sighting, request: FetchRequest, told: FetchedPartition, epoch: int
    ) -> None:
        """Note a leader's answer that names a diverging epoch or a snapshot instead of records."""
        replica = _replica_id(request)
        if told.diverging_epoch is not None and told.diverging_epoch.epoch >= 0:
            ended, end = told.diverging_epoch.epoch, told.diverging_epoch.end_offset
            text = f"log diverges from the leader's: epoch {ended} ends at offset {end} there"
            details = {"divergingEpoch": ended, "endOffset": end}
            self._events.append(Event(seen.time, "diverging", text, epoch, replica, details))
        asked = _asked_partition(request)
        if told.snapshot_id is not None and told.snapshot_id.epoch >= 0 and asked is not None:
            self._downloads.see_instruction(
                replica,
                SnapshotId(told.snapshot_id.end_offset, told.snapshot_id.epoch),
                time=seen.time,
                epoch=epoch,
                offset=asked.fetch_offset,
                log_start=told.log_start_offset,
            )
        else:
            self._downloads.see_records(replica)

    def _see_described(self, seen: Sighting, body: DescribeQuorumResponse) -> None:
        for topic in body.topics:
            for partition in topic.partitions:
                if partition.error_code or topic.topic_name != METADATA_TOPIC:
                    continue
                self._leaders.note(
                    partition.leader_epoch, partition.leader_id, seen.time, "DescribeQuorum"
                )
                self._members.note_described(partition.current_voters, seen.time)
        listeners = ((n.node_id, each) for n in body.nodes or () for each in n.listeners)
        self._nodes.learn_endpoints((node, each.host, each.port) for node, each in listeners)

    def _see_control(self, decoded: Decoded, place: Place) -> None:
        message = decoded.message
        if isinstance(message, LeaderChangeMessage):
            self._leaders.note_change(
                message, epoch=place.epoch, offset=place.offset, time=place.time
            )
        elif isinstance(message, VotersRecord):
            self._members.note_record(message, offset=place.offset, time=place.time)
        elif isinstance(message, KRaftVersionRecord):
            level = message.kraft_version
            self._members.note_version(level, offset=place.offset, time=place.time)

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
            *self._members.events(),
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
            voters=self._members.voter_sets,
            log=log.summary(),
            labels=labels,
            event_overflow=max(0, len(events) - RAFT_EVENT_COUNT_MAX),
        )

    def _labels(self) -> dict[NodeId, str]:
        voters = {node for each in self._members.voter_sets for node in each.voters}
        labels: dict[NodeId, str] = dict.fromkeys(self._progress.replicas, "observer")
        labels |= self._nodes.kinds
        labels |= dict.fromkeys(voters, "former voter")
        return labels | dict.fromkeys(self._members.voters, "voter")

    def _arrivals(self) -> Iterator[Event]:
        for each in self._progress.replicas.values():
            kind = "broker" if self._nodes.kinds.get(each.node) == "broker" else "observer"
            if each.node in self._members.voters_at(each.first_fetch):
                kind = "voter"
            text = words(f"begins to fetch at offset {each.first_offset}", [kind])
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
        text = words(f"{'leader ' if led else ''}falls silent {span}", remarks)
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


def _asked_partition(body: FetchRequest) -> FetchPartition | None:
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
