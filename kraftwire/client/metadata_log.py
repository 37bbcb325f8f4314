"""The leader's metadata log as a client sees it: its start offset and newest snapshot.

A Fetch at offset 0 without a replica id returns both: the answer has the log start offset, and
names the newest snapshot if there is one. The leader does not track such a Fetch (R-FET-7,
R-FET-12).
"""

from __future__ import annotations

from kraftwire.client.cluster import refusal
from kraftwire.client.results import LogInfo
from kraftwire.errors import ApiError
from kraftwire.messages import fetch_request
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse, PartitionData
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.config import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message


def log_request(leader_epoch: int) -> FetchRequest:
    """Ask the leader of an epoch for the beginning of its log, without waiting."""
    partition = fetch_request.FetchPartition(
        current_leader_epoch=leader_epoch, fetch_offset=0, last_fetched_epoch=0
    )
    # The name is for versions before 13; a version omits fields that it lacks.
    topic = fetch_request.FetchTopic(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=0, topics=[topic])


def log_info(response: Message) -> LogInfo:
    """Read the answer. Raises: ApiError if it is an error, or about another topic."""
    assert isinstance(response, FetchResponse)
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, None)
    partition = _partition(response)
    if partition.error_code != ErrorCode.NONE:
        raise refusal(partition.error_code, None)
    id = partition.snapshot_id
    snapshot = None
    if id is not None and id.end_offset >= 0 and id.epoch >= 0:
        snapshot = OffsetAndEpoch(id.end_offset, id.epoch)
    return LogInfo(max(0, partition.log_start_offset), partition.high_watermark, snapshot)


def _partition(response: FetchResponse) -> PartitionData:
    for topic in response.responses:
        if topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC:
            for partition in topic.partitions:
                return partition
    raise ApiError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer says nothing of partition {METADATA_TOPIC}-0"
    )
