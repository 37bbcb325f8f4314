"""The functions that summarize messages, by API, and one for messages without their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from kraftwire import messages
from kraftwire.decode.body.context import TopicNames
from kraftwire.inspect.facts import administration as admin
from kraftwire.inspect.facts import data, groups, quorum
from kraftwire.inspect.facts.phrases import MORE_THAN, bytes_text, counted, some
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

_SHOWN_MAX = 4
_TEXT_MAX = 40

# Fields that every reader knows, or that other columns show.
_SKIPPED = frozenset({"throttleTimeMs", "errorCode", "errorMessage", "timeoutMs", "clusterId"})

_NAMES = ("string", "int32")

_generic_fields: dict[type[Message], tuple[tuple[str, Callable[[Any], str]], ...]] = {}


def generic(body: Message, _names: TopicNames) -> str:
    """Give the first informative fields."""
    fields = _generic_fields.get(type(body))
    if fields is None:
        fields = _generic_fields[type(body)] = tuple(_shown_fields(body.facts().root))
    parts: list[str] = []
    lists = 0
    for attribute, format_value in fields:
        value = getattr(body, attribute)
        if value is None or value == "" or value == b"" or value == [] or value is False:
            continue
        text = format_value(value)
        if text:
            parts.append(text)
            lists += value.__class__ is list
        if len(parts) == _SHOWN_MAX:
            break
    if not lists and (nothing := _nothing(body)):
        parts.append(nothing)
    return ", ".join(parts)


def _nothing(body: Message) -> str:
    """Describe a message whose first list is empty, or null, which stands for all."""
    for each in body.facts().root.fields:
        name = _field_name(each)
        # A filter that is absent lets everything pass; tagged fields are optional extras.
        if not each.is_array or each.tag >= 0 or name.endswith(("filter", "filters")):
            continue
        value = getattr(body, each.attribute)
        if value is None:
            return f"all {name}" if body.KIND == "request" else ""
        return "" if value else f"no {name}"
    return ""


def _shown_fields(struct: StructFacts) -> Iterator[tuple[str, Callable[[Any], str]]]:
    for each in struct.fields:
        if each.name not in _SKIPPED:
            yield each.attribute, _formatter(each)


def _formatter(facts: FieldFacts) -> Callable[[Any], str]:
    name = _field_name(facts)
    if facts.is_array and facts.struct:
        return _structs(name, facts.struct)
    if facts.is_array:
        return lambda value: f"{name} {some([_value(facts, each) for each in value])}"
    if facts.struct:
        return lambda _value: ""
    default = facts.default
    return lambda value: "" if value == default else f"{name} {_value(facts, value)}"


def _field_name(facts: FieldFacts) -> str:
    return " ".join(facts.attribute.split("_"))


def _structs(plural: str, struct: StructFacts) -> Callable[[Any], str]:
    """Return a function that names the first few structs of an array, or counts nameless ones."""
    names = [
        (attrgetter(each.attribute), each)
        for each in struct.fields
        if each.type in _NAMES and not each.is_array and each.name not in _SKIPPED
    ]

    def name_of(each: Any) -> str:
        for get, facts in names:
            if (value := get(each)) is not None and value not in ("", facts.default):
                return _value(facts, value)
        return ""

    def format_value(value: Any) -> str:
        shown = [name_of(each) for each in value[: MORE_THAN + 1]]
        if not all(shown):
            return counted(value, plural)
        return f"{plural} {some([*shown, *value[MORE_THAN + 1 :]])}"

    return format_value


def _value(facts: FieldFacts, value: Any) -> str:
    if value is None:
        return "null"
    if facts.type == "uuid":
        return uuid_to_text(value)
    if facts.type in ("bytes", "records"):
        return bytes_text(len(value))
    text = str(value)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


Facts = Callable[[Any, TopicNames], str]

# API -> functions for request and response; None stands for the generic one.
_FUNCTIONS: dict[str, tuple[Facts | None, Facts | None]] = {
    "AddOffsetsToTxn": (groups.add_offsets_to_txn_request, None),
    "AddPartitionsToTxn": (groups.add_partitions_to_txn_request, lambda _body, _names: ""),
    "AddRaftVoter": (quorum.raft_voter_request, None),
    "AlterClientQuotas": (admin.quotas_request, admin.quotas_response),
    "AlterConfigs": (admin.configs_request, lambda _body, _names: ""),
    "AlterPartition": (quorum.alter_partition_request, quorum.alter_partition_response),
    "AlterPartitionReassignments": (
        admin.alter_reassignments_request, admin.alter_reassignments_response
    ),
    "AlterReplicaLogDirs": (
        admin.alter_replica_log_dirs_request, admin.alter_replica_log_dirs_response
    ),
    "ApiVersions": (admin.api_versions_request, admin.api_versions_response),
    "AssignReplicasToDirs": (quorum.assign_replicas_request, quorum.assign_replicas_response),
    "BeginQuorumEpoch": (quorum.begin_quorum_epoch_request, quorum.leader_and_epoch_response),
    "BrokerHeartbeat": (quorum.broker_heartbeat_request, quorum.broker_heartbeat_response),
    "BrokerRegistration": (
        quorum.broker_registration_request, quorum.broker_registration_response
    ),
    "ConsumerGroupDescribe": (admin.names_request, groups.described_groups),
    "ConsumerGroupHeartbeat": (groups.group_heartbeat_request, groups.group_heartbeat_response),
    "ControllerRegistration": (quorum.controller_registration_request, None),
    "CreateAcls": (admin.create_acls_request, None),
    "CreatePartitions": (admin.names_request, None),
    "CreateTopics": (admin.create_topics_request, admin.topics_response),
    "DeleteAcls": (admin.delete_acls_request, admin.delete_acls_response),
    "DeleteGroups": (admin.names_request, None),
    "DeleteRecords": (admin.delete_records_request, admin.delete_records_response),
    "DeleteTopics": (admin.delete_topics_request, lambda _body, _names: ""),
    "DeleteShareGroupState": (groups.share_state_request, groups.share_state_response),
    "DescribeAcls": (admin.describe_acls_request, admin.describe_acls_response),
    "DescribeClientQuotas": (None, admin.quotas_response),
    "DescribeCluster": (None, admin.describe_cluster_response),
    "DescribeConfigs": (admin.configs_request, lambda _body, _names: ""),
    "DescribeGroups": (admin.names_request, groups.described_groups),
    "DescribeQuorum": (None, quorum.describe_quorum_response),
    "DescribeTopicPartitions": (admin.names_request, admin.topics_response),
    "EndQuorumEpoch": (quorum.end_quorum_epoch_request, quorum.leader_and_epoch_response),
    "EndTxn": (groups.end_txn_request, None),
    "Envelope": (quorum.envelope_request, lambda _body, _names: ""),
    "Fetch": (data.fetch_request, data.fetch_response),
    "FetchSnapshot": (quorum.fetch_snapshot_request, quorum.fetch_snapshot_response),
    "FindCoordinator": (groups.find_coordinator_request, groups.find_coordinator_response),
    "Heartbeat": (groups.group_request, None),
    "IncrementalAlterConfigs": (admin.configs_request, lambda _body, _names: ""),
    "InitializeShareGroupState": (groups.share_state_request, groups.share_state_response),
    "InitProducerId": (groups.init_producer_id_request, groups.init_producer_id_response),
    "JoinGroup": (groups.join_group_request, groups.join_group_response),
    "LeaveGroup": (groups.leave_group_request, lambda _body, _names: ""),
    "ListPartitionReassignments": (
        admin.list_reassignments_request, admin.list_reassignments_response
    ),
    "ListOffsets": (data.list_offsets_request, data.list_offsets_response),
    "Metadata": (admin.metadata_request, admin.metadata_response),
    "OffsetCommit": (groups.offset_commit_request, lambda _body, _names: ""),
    "OffsetFetch": (groups.offset_fetch_request, groups.offset_fetch_response),
    "OffsetForLeaderEpoch": (
        data.offset_for_leader_epoch_request, data.offset_for_leader_epoch_response
    ),
    "Produce": (data.produce_request, data.produce_response),
    "ReadShareGroupState": (groups.share_state_request, groups.share_state_response),
    "ReadShareGroupStateSummary": (groups.share_state_request, groups.share_state_response),
    "RemoveRaftVoter": (quorum.raft_voter_request, None),
    "SaslAuthenticate": (admin.sasl_token, admin.sasl_token),
    "SaslHandshake": (admin.sasl_handshake_request, admin.sasl_handshake_response),
    "ShareAcknowledge": (groups.share_acknowledge_request, groups.share_acknowledge_response),
    "ShareFetch": (groups.share_fetch_request, groups.share_fetch_response),
    "ShareGroupDescribe": (admin.names_request, groups.described_groups),
    "ShareGroupHeartbeat": (groups.group_heartbeat_request, groups.group_heartbeat_response),
    "StreamsGroupDescribe": (admin.names_request, groups.described_groups),
    "StreamsGroupHeartbeat": (
        groups.streams_heartbeat_request, groups.streams_heartbeat_response
    ),
    "SyncGroup": (groups.sync_group_request, None),
    "TxnOffsetCommit": (groups.txn_offset_commit_request, lambda _body, _names: ""),
    "UpdateRaftVoter": (quorum.raft_voter_request, None),
    "Vote": (quorum.vote_request, quorum.vote_response),
    "WriteShareGroupState": (groups.share_state_request, groups.share_state_response),
    "WriteTxnMarkers": (groups.write_txn_markers_request, lambda _body, _names: ""),
}

_BY_KEY = {key: _FUNCTIONS.get(name, (None, None)) for key, name in messages.API_NAMES.items()}
# API key -> the function that describes a request in a few words.
REQUEST_FACTS = {key: request or generic for key, (request, _) in _BY_KEY.items()}
# The same for a response, without its errors.
RESPONSE_FACTS = {key: response or generic for key, (_, response) in _BY_KEY.items()}
