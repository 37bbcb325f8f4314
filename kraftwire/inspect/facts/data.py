"""Facts of the APIs that move records: Produce, Fetch, ListOffsets and related ones."""

from __future__ import annotations

from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.inspect.facts.phrases import bytes_text, counted, id_text, partitions_text

_SPECIAL_TIMESTAMPS = {
    -1: "latest",
    -2: "earliest",
    -3: "largest timestamp",
    -4: "earliest local",
    -5: "latest tiered",
    -6: "earliest pending upload",
}


def fetch_request(body: Any, names: TopicNames) -> str:
    """Give partition, offset, epoch and replica."""
    topics = body.topics
    replica = body.replica_id
    if replica < 0 and body.replica_state is not None:
        replica = body.replica_state.replica_id
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        topic, partition = topics[0], topics[0].partitions[0]
        name = topic.topic or id_text(topic.topic_id, names)
        text = f"{name}-{partition.partition} @{partition.fetch_offset}"
        if partition.current_leader_epoch >= 0:
            text += f" epoch {partition.current_leader_epoch}"
    elif topics:
        text = partitions_text(topics, names, "partitions")
    else:
        text = f"session {body.session_id}/{body.session_epoch}"
    return f"{text} replica {replica}" if replica >= 0 else text


def fetch_response(body: Any, _names: TopicNames) -> str:
    """Give the high watermark and the bytes of records."""
    size = count = 0
    partition = None
    for topic in body.responses:
        for partition in topic.partitions:
            count += 1
            records = partition.records
            if records is not None:
                size += len(records)
    data = bytes_text(size) if size else "no records"
    if partition is None:
        return "nothing"
    if count > 1:
        return f"{data} of {count} partitions"
    text = f"hw {partition.high_watermark}, {data}"
    if partition.diverging_epoch is not None or partition.snapshot_id is not None:
        text += _refusal(partition)
    return text


def _refusal(partition: Any) -> str:
    if partition.snapshot_id is not None and partition.snapshot_id.epoch >= 0:
        return f", snapshot {partition.snapshot_id.end_offset}-{partition.snapshot_id.epoch}"
    diverging = partition.diverging_epoch
    if diverging is not None and diverging.epoch >= 0:
        return f", diverging epoch {diverging.epoch} ends at {diverging.end_offset}"
    return ""


def produce_request(body: Any, names: TopicNames) -> str:
    """Give partition, acks and bytes of records."""
    topics = body.topic_data
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        topic, partition = topics[0], topics[0].partition_data[0]
        name = topic.name or id_text(topic.topic_id, names)
        size = 0 if partition.records is None else len(partition.records)
        text = f"{name}-{partition.index} acks {body.acks}, {bytes_text(size)}"
    else:
        partitions = [each for topic in topics for each in topic.partition_data]
        size = sum(len(each.records or b"") for each in partitions)
        text = partitions_text(topics, names, "partition_data") or "no partitions"
        text = f"{text} acks {body.acks}, {bytes_text(size)}"
    return f"{text}, transaction {body.transactional_id}" if body.transactional_id else text


def produce_response(body: Any, _names: TopicNames) -> str:
    """Give the base offset, if there is only one partition."""
    topics = body.responses
    if len(topics) == 1 and len(topics[0].partition_responses) == 1:
        return f"base offset {topics[0].partition_responses[0].base_offset}"
    return counted([each for topic in topics for each in topic.partition_responses], "partitions")


def list_offsets_request(body: Any, names: TopicNames) -> str:
    """Give the partition and the kind of offset that the client asks for."""
    text = partitions_text(body.topics, names, "partitions") or "no partitions"
    if not body.topics or not body.topics[0].partitions:
        return text
    timestamp = body.topics[0].partitions[0].timestamp
    return f"{text} {_SPECIAL_TIMESTAMPS.get(timestamp, f'at {timestamp}')}"


def list_offsets_response(body: Any, _names: TopicNames) -> str:
    """Give the offset, if there is only one partition."""
    partitions = [each for topic in body.topics for each in topic.partitions]
    if len(partitions) != 1:
        return counted(partitions, "partitions")
    found = partitions[0].old_style_offsets or [partitions[0].offset]
    return f"offset {found[0]}"


def offset_for_leader_epoch_request(body: Any, names: TopicNames) -> str:
    """Give partition and epoch."""
    text = partitions_text(body.topics, names, "partitions") or "no partitions"
    if body.topics and body.topics[0].partitions:
        text += f" epoch {body.topics[0].partitions[0].leader_epoch}"
    return text


def offset_for_leader_epoch_response(body: Any, _names: TopicNames) -> str:
    """Give the end offset of the epoch, if there is only one partition."""
    partitions = [each for topic in body.topics for each in topic.partitions]
    if len(partitions) != 1:
        return counted(partitions, "partitions")
    return f"epoch {partitions[0].leader_epoch} ends at {partitions[0].end_offset}"
