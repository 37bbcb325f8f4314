"""Facts of groups of every kind, share state and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.inspect.facts.phrases import (
    MORE_THAN,
    bytes_text,
    counted,
    each_partition,
    named,
    partitions_text,
    place_text,
    some,
    topics_text,
)

_KEY_TYPES = {0: "group", 1: "transaction", 2: "share"}


def find_coordinator_request(body: Any, _names: TopicNames) -> str:
    """List the keys whose coordinators are wanted."""
    keys = body.coordinator_keys or [body.key]
    return f"{_KEY_TYPES.get(body.key_type, f'type {body.key_type}')} {some(keys)}"


def find_coordinator_response(body: Any, _names: TopicNames) -> str:
    """Give the addresses of the coordinators."""
    nodes = body.coordinators or [body]
    return some(
        [f"node {each.node_id} {each.host}:{each.port}" for each in nodes if each.node_id >= 0]
    )


def group_request(body: Any, _names: TopicNames) -> str:
    """Give group, member and generation, as far as the request has them."""
    text = f"group {named(body.group_id)}"
    member = getattr(body, "member_id", "")
    generation = getattr(body, "generation_id", None)
    if generation is not None:
        text += f" generation {generation}"
    return f"{text} member {member}" if member else text


def join_group_request(body: Any, names: TopicNames) -> str:
    """Give group, member and protocols."""
    protocols = some([each.name for each in body.protocols])
    text = group_request(body, names)
    return f"{text} protocols {protocols}" if protocols else f"{text}, no protocols"


def join_group_response(body: Any, _names: TopicNames) -> str:
    """Give generation, leader and protocol."""
    if body.generation_id < 0:
        # The member only gets the id with which it has to send the request again.
        return f"member {body.member_id}" if body.member_id else ""
    text = f"generation {body.generation_id}"
    text += f" protocol {body.protocol_name}" if body.protocol_name else ""
    text += f" leader {body.leader}" if body.leader else ""
    return f"{text}, {counted(body.members, 'members')}" if body.members else text


def sync_group_request(body: Any, names: TopicNames) -> str:
    """Give group, member and number of assignments."""
    text = group_request(body, names)
    return f"{text}, {counted(body.assignments, 'assignments')}" if body.assignments else text


def leave_group_request(body: Any, _names: TopicNames) -> str:
    """Give group and members."""
    # An administrator names a member with an instance id by that id alone.
    members = [each.member_id or each.group_instance_id or "" for each in body.members]
    members = list(filter(None, members or [body.member_id]))
    return f"group {named(body.group_id)} {f'member {some(members)}' if members else 'no members'}"


def group_heartbeat_request(body: Any, _names: TopicNames) -> str:
    """Give group, member and member epoch."""
    member = f" member {body.member_id}" if body.member_id else ""
    text = f"group {named(body.group_id)}{member} epoch {body.member_epoch}"
    topics = getattr(body, "subscribed_topic_names", None)
    return f"{text}, subscribes {some(topics)}" if topics else text


def group_heartbeat_response(body: Any, names: TopicNames) -> str:
    """Give member epoch and assignment."""
    text = f"epoch {body.member_epoch}"
    assignment = getattr(body, "assignment", None)
    if assignment is None:
        return text
    partitions = partitions_text(assignment.topic_partitions, names, "partitions")
    return f"{text}, assigned {partitions or 'nothing'}"


def streams_heartbeat_request(body: Any, names: TopicNames) -> str:
    """Give group, member, member epoch, and the tasks that the member has."""
    return ", ".join([group_heartbeat_request(body, names), *_tasks(body)])


def streams_heartbeat_response(body: Any, _names: TopicNames) -> str:
    """Give the member epoch, and the tasks that the member is to have."""
    return ", ".join([f"epoch {body.member_epoch}", *_tasks(body)])


def _tasks(body: Any) -> Iterator[str]:
    """Yield active, standby and warm-up tasks; null, which stands for no change, is left out."""
    if body.active_tasks is not None:
        ids = _task_ids(body.active_tasks)
        yield f"active {ids}" if ids else "no active tasks"
    for words, tasks in (("standby", body.standby_tasks), ("warm-up", body.warmup_tasks)):
        if ids := _task_ids(tasks or ()):
            yield f"{words} {ids}"


def _task_ids(tasks: Iterable[Any]) -> str:
    return some([f"{each.subtopology_id}_{index}" for each in tasks for index in each.partitions])


def offset_commit_request(body: Any, names: TopicNames) -> str:
    """Give group and offsets."""
    return f"group {named(body.group_id)} {_commits(body, names)}"


def _commits(body: Any, names: TopicNames) -> str:
    return _offsets(body.topics, names) or "no partitions"


def _offsets(topics: Sequence[Any], names: TopicNames) -> str:
    """List partitions with their committed offsets."""
    return each_partition(topics, names, _offset)


def _offset(partition: Any) -> str:
    committed = partition.committed_offset
    return f"@{committed}" if committed >= 0 else "no offset"


def offset_fetch_request(body: Any, names: TopicNames) -> str:
    """Give groups and partitions."""
    if body.groups:
        groups = body.groups
        text = f"group {some([each.group_id for each in groups])}"
        topics = groups[0].topics
    else:
        text, topics = f"group {named(body.group_id)}", body.topics
    if topics is None:
        return f"{text} all partitions"
    return f"{text} {partitions_text(topics, names, 'partition_indexes') or 'no partitions'}"


def offset_fetch_response(body: Any, names: TopicNames) -> str:
    """List partitions with their committed offsets, by group if there are several."""
    if len(body.groups) <= 1:
        topics = body.groups[0].topics if body.groups else body.topics
        return _offsets(topics, names) or "no offsets"
    return "; ".join(
        [
            f"group {named(each.group_id)} {_offsets(each.topics, names) or 'no offsets'}"
            for each in body.groups[:MORE_THAN]
        ]
    )


def init_producer_id_request(body: Any, _names: TopicNames) -> str:
    """Give the transactional id."""
    return f"transaction {body.transactional_id}" if body.transactional_id else "no transaction"


def init_producer_id_response(body: Any, _names: TopicNames) -> str:
    """Give producer id and epoch."""
    if body.producer_id < 0:
        return ""
    return f"producer {body.producer_id} epoch {body.producer_epoch}"


def described_groups(body: Any, _names: TopicNames) -> str:
    """List groups with their states and numbers of members; leaves out groups with an error."""
    return some(
        [
            f"{each.group_id} ({each.group_state}, {counted(each.members, 'members')})"
            for each in body.groups
            if not each.error_code
        ]
    )


def _producer(body: Any) -> str:
    id = f"transaction {named(body.transactional_id)}"
    return f"{id} producer {body.producer_id} epoch {body.producer_epoch}"


def add_partitions_to_txn_request(body: Any, names: TopicNames) -> str:
    """Give transaction, producer and partitions."""
    if not body.transactions:
        id = f"transaction {named(body.v3_and_below_transactional_id)}"
        topics = body.v3_and_below_topics
        return f"{id} {partitions_text(topics, names, 'partitions') or 'no partitions'}"
    first = body.transactions[0]
    partitions = partitions_text(first.topics, names, "partitions") or "no partitions"
    text = f"{_producer(first)} {partitions}"
    more = len(body.transactions) - 1
    return f"{text} +{more} transactions" if more else text


def add_offsets_to_txn_request(body: Any, _names: TopicNames) -> str:
    """Give transaction, producer and group."""
    return f"{_producer(body)} group {named(body.group_id)}"


def end_txn_request(body: Any, _names: TopicNames) -> str:
    """Give the transaction, and whether it commits or aborts."""
    return f"{'commit' if body.committed else 'abort'} {_producer(body)}"


def txn_offset_commit_request(body: Any, names: TopicNames) -> str:
    """Give transaction, group and offsets."""
    return f"{_producer(body)} group {named(body.group_id)} {_commits(body, names)}"


def write_txn_markers_request(body: Any, names: TopicNames) -> str:
    """Give producers, whether they commit or abort, and topics."""
    texts = [
        f"{'commit' if each.transaction_result else 'abort'} producer {each.producer_id} "
        f"epoch {each.producer_epoch} {topics_text(each.topics, names)}"
        for each in body.markers
    ]
    return some(texts)


_ACKNOWLEDGED = {0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"}


def share_fetch_request(body: Any, names: TopicNames) -> str:
    """Give group, session and partitions, and the acknowledgements that the request brings."""
    text = f"group {named(body.group_id)} session epoch {body.share_session_epoch}"
    partitions = partitions_text(body.topics, names, "partitions")
    text = f"{text} {partitions}" if partitions else text
    acknowledged = some(list(_acknowledged(body.topics, names)))
    return f"{text}, acknowledges {acknowledged}" if acknowledged else text


def share_fetch_response(body: Any, _names: TopicNames) -> str:
    """Give the bytes of records, and how many records were acquired."""
    size = acquired = 0
    for topic in body.responses:
        for partition in topic.partitions:
            size += len(partition.records or b"")
            for each in partition.acquired_records:
                acquired += each.last_offset - each.first_offset + 1
    return f"{bytes_text(size)}, {acquired} acquired" if size or acquired else "no records"


def share_acknowledge_request(body: Any, names: TopicNames) -> str:
    """Give group and session, and each record's acknowledgement."""
    text = f"group {named(body.group_id)} session epoch {body.share_session_epoch}"
    return f"{text}, {some(list(_acknowledged(body.topics, names))) or 'no records'}"


def share_acknowledge_response(body: Any, names: TopicNames) -> str:
    """List the partitions in the response."""
    return partitions_text(body.responses, names, "partitions") or "no partitions"


def _acknowledged(topics: Iterable[Any], names: TopicNames) -> Iterator[str]:
    """List acknowledged offsets and their types, by partition."""
    for topic in topics:
        for partition in topic.partitions:
            place = place_text(topic, partition, names)
            for each in partition.acknowledgement_batches:
                # A single type stands for all records of the batch.
                kinds = sorted(set(each.acknowledge_types))
                said = "/".join(_ACKNOWLEDGED.get(kind, f"type {kind}") for kind in kinds)
                yield f"{place} {each.first_offset}-{each.last_offset} {said}".rstrip()


def share_state_request(body: Any, names: TopicNames) -> str:
    """Give group and partitions; for partitions with a state, its start and its batches."""
    partitions = each_partition(body.topics, names, _state) or "no partitions"
    return f"group {named(body.group_id)} {partitions}"


def share_state_response(body: Any, names: TopicNames) -> str:
    """Give the state of each partition."""
    return each_partition(body.results, names, _state) or "no partitions"


def _state(partition: Any) -> str:
    start: int | None = getattr(partition, "start_offset", None)
    if start is None or getattr(partition, "error_code", False):
        return ""
    text = f"@{start}" if start >= 0 else "no start"
    batches: Any = getattr(partition, "state_batches", ())
    if batches:
        count = counted(batches, "batches")
        text += f" {count} {batches[0].first_offset}-{batches[-1].last_offset}"
    epoch: Any = getattr(partition, "state_epoch", -1)
    return f"{text} epoch {epoch}" if epoch >= 0 else text
