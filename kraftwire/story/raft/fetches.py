"""Fetch requests and their answers as evidence of replicas, leaders and the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.fetch_response import PartitionData as FetchedPartition
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.story.raft.downloads import Downloads
from kraftwire.story.raft.elections import Elections
from kraftwire.story.raft.leaders import Leaders
from kraftwire.story.raft.metadata_log import MetadataLog
from kraftwire.story.raft.model import RaftEvent
from kraftwire.story.raft.nodes import Nodes
from kraftwire.story.raft.progress import ReplicaProgress
from kraftwire.story.raft.voters import Voters
from kraftwire.wire.message import Message


@dataclass(slots=True)
class Fetches:
    """Takes each Fetch of the metadata log apart for the parts of the story."""

    nodes: Nodes
    voters: Voters
    downloads: Downloads
    elections: Elections
    leaders: Leaders
    progress: ReplicaProgress
    log: MetadataLog
    # Answers that name a diverging epoch.
    events: list[RaftEvent] = field(default_factory=list)

    def on_request(self, frame: RawFrame, body: FetchRequest) -> None:
        """Add a replica's request."""
        requested, replica = _partition(body.topics), _replica_id(body)
        if requested is None or replica < 0:
            return
        self.nodes.learn_client(frame, replica)
        self.progress.on_fetch(replica, requested.fetch_offset, frame.time)

    def on_response(
        self, frame: RawFrame, body: FetchResponse, request: Message | None
    ) -> None:
        """Add a leader's answer."""
        if not isinstance(request, FetchRequest):
            return
        requested, partition = _partition(request.topics), _partition(body.responses)
        if requested is None or partition is None or partition.error_code or body.error_code:
            return
        replica, epoch = _replica_id(request), requested.current_leader_epoch
        if partition.current_leader is not None and partition.current_leader.leader_id >= 0:
            current = partition.current_leader
            leader, epoch = current.leader_id, current.leader_epoch
            # Only the leader answers without an error.
            self.nodes.learn_server(frame.server, leader)
            self.leaders.note_leader(epoch, leader, frame.time, "Fetch")
            self.leaders.note_high_watermark(epoch, partition.high_watermark)
        server = self.nodes.server(frame)
        self.elections.note_fetched(replica, server, frame.time)
        self.progress.on_leader(server, partition.high_watermark, frame.time, epoch)
        self.voters.note_high_watermark(partition.high_watermark, frame.time)
        self.downloads.on_log_start(
            server, partition.log_start_offset, time=frame.time, epoch=epoch
        )
        self._note_refusals(frame.time, replica, requested, partition, epoch)
        if partition.records:
            end = self.log.on_bytes(partition.records, frame.time)
            self.progress.on_records(end, frame.time)

    def _note_refusals(
        self,
        time: float,
        replica: int,
        requested: FetchPartition,
        partition: FetchedPartition,
        epoch: int,
    ) -> None:
        """Note a leader's answer that names a diverging epoch or a snapshot instead of records."""
        diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
        if diverging is not None and diverging.epoch >= 0:
            ended, end = diverging.epoch, diverging.end_offset
            text = f"log diverges from the leader's: epoch {ended} ends at offset {end} there"
            details = {"divergingEpoch": ended, "endOffset": end}
            self.events.append(RaftEvent(time, "diverging", text, epoch, replica, details))
        if snapshot is None or snapshot.epoch < 0:
            self.downloads.on_records(replica)
            return
        self.downloads.on_instruction(
            replica,
            OffsetAndEpoch(snapshot.end_offset, snapshot.epoch),
            time=time,
            epoch=epoch,
            offset=requested.fetch_offset,
            log_start=partition.log_start_offset,
        )


def _replica_id(body: FetchRequest) -> int:
    """Return the id of the replica that fetches; the field moved in version 15."""
    state = body.replica_state
    return state.replica_id if state is not None and state.replica_id >= 0 else body.replica_id


def _partition(topics: Any) -> Any:
    """Return the partition of the metadata topic among those of a request or response, or None."""
    for topic in topics:
        if topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC:
            return topic.partitions[0] if topic.partitions else None
    return None
