"""Creating and deleting topics, and adding partitions to them. Rules: C-TOP, C-DEL, C-PART.

Each function returns the answer of a whole request and the records of all topics that succeed.

Source: Kafka's `ReplicationControlManager` and `ControllerApis`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from kraftwire.controller.cluster import MIN_INSYNC_REPLICAS, Cluster
from kraftwire.controller.mutation_quotas import FREE, Charge
from kraftwire.controller.placement import has_uncordoned_directories, place_replicas
from kraftwire.controller.step import RECORDS_MAX, StepResult, VersionedRecord, config_record
from kraftwire.controller.topic_configs import (
    EffectiveValue,
    check_topic_configs,
    effective_values,
    inherited_values,
)
from kraftwire.controller.topic_keys import check_name
from kraftwire.controller.versions import WITH_DIRECTORIES, record_version
from kraftwire.errors import ApiError
from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftwire.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.config_resources import TOPIC_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.wire.fast import ZERO_UUID

# Replicas of all new partitions of a request (C-TOP-2). Differs from Kafka, which counts partitions
# alone, also where each has thousands of replicas.
REPLICAS_MAX = 100_000
# So many new partitions are one piece of work.
_PIECE_PARTITIONS = 100

_NAMED_TWICE = "the request names this topic more than once"

NewId = Callable[[], bytes]


@Divided
def create_topics(
    cluster: Cluster,
    request: CreateTopicsRequest,
    *,
    random: Random,
    new_id: NewId,
    charge: Charge = FREE,
) -> Pieces[StepResult]:
    """Create topics. `new_id` makes the ids. Raises: ApiError for the whole request."""
    counts = Counter(topic.name for topic in request.topics)
    wanted = {topic.name: topic for topic in request.topics if counts[topic.name] == 1}
    requested = [_requested_counts(cluster, topic) for topic in wanted.values()]
    _check_count(sum(count for count, _ in requested), sum(count for _, count in requested))
    records: list[VersionedRecord] = []
    results = []
    inherited = inherited_values(cluster)
    for topic in wanted.values():
        try:
            result, made = yield from _create_topic(cluster, topic, random, new_id(), inherited)
            charge(result.num_partitions)
        except ApiError as error:
            result, made = _refused(topic.name, error), []
        results.append(result)
        records += made
    twice = ApiError(ErrorCode.INVALID_REQUEST, _NAMED_TWICE)
    results += [_refused(name, twice) for name, count in counts.items() if count > 1]
    return StepResult(
        CreateTopicsResponse(topics=results, throttle_time_ms=charge.throttle_ms),
        [] if request.validate_only else records,
        charge.commit,
    )


def _requested_counts(cluster: Cluster, topic: CreatableTopic) -> tuple[int, int]:
    """Return how many partitions and replicas a new topic is to have."""
    if topic.assignments:
        return len(topic.assignments), sum(len(each.broker_ids) for each in topic.assignments)
    partitions, factor = topic.num_partitions, topic.replication_factor
    if partitions == -1:
        partitions = cluster.number("num.partitions", 1)
    if factor == -1:
        factor = cluster.number("default.replication.factor", 1)
    # With more replicas than brokers it is refused.
    replicas = factor if 0 < factor <= len(cluster.image.brokers) else 0
    return max(partitions, 0), max(partitions, 0) * replicas


def _check_count(partitions: int, replicas: int) -> None:
    """Check how many partitions and replicas one request makes. Raises: ApiError POLICY_VIOLATION.
    """
    for count, what, most in (
        (partitions, "partitions", RECORDS_MAX),
        (replicas, "replicas", REPLICAS_MAX),
    ):
        if count > most:
            text = f"{count} {what} in one request, more than {most}"
            raise ApiError(ErrorCode.POLICY_VIOLATION, text)


def _refused(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        error_code=error.code,
        error_message=error.detail or None,
        num_partitions=-1,
        replication_factor=-1,
    )


def _create_topic(
    cluster: Cluster,
    topic: CreatableTopic,
    random: Random,
    topic_id: bytes,
    inherited: Mapping[str, EffectiveValue],
) -> Pieces[tuple[CreatableTopicResult, list[VersionedRecord]]]:
    """Return the result and the records of one topic. Raises: ApiError."""
    yield
    name = topic.name
    _check_new_name(cluster, name)
    values: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{config.name} has no value")
        values[config.name] = config.value
    check_topic_configs(cluster, values)
    replicas = yield from _assigned_replicas(cluster, topic, random)
    records: list[VersionedRecord] = [(TopicRecord(name=name, topic_id=topic_id), 0)]
    records += [config_record(TOPIC_RESOURCE, name, key, value) for key, value in values.items()]
    if MIN_INSYNC_REPLICAS in values and cluster.has_elr:
        records.append((ClearElrRecord(topic_name=name), 0))
    records += yield from _new_partitions(cluster, topic_id, 0, replicas)
    result = CreatableTopicResult(
        name=name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=[
            CreatableTopicConfigs(name=one.name, value=one.value, config_source=one.origin)
            for one in effective_values(inherited, values)
        ],
    )
    return result, records


def _check_new_name(cluster: Cluster, name: str) -> None:
    """Check a new topic's name (C-TOP-1, C-TOP-3)."""
    ids = cluster.image.topics.ids
    if name == METADATA_TOPIC:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} is the quorum's own topic")
    if name in ids:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists")
    check_name(name)
    other = cluster.image.topics.colliding(name)
    if other is not None:
        text = f"topic {name} would have the same metric names as {other}"
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)


def _assigned_replicas(
    cluster: Cluster, topic: CreatableTopic, random: Random
) -> Pieces[list[list[int]]]:
    """Return the replicas of each partition of a new topic (C-TOP-4)."""
    partitions, factor = topic.num_partitions, topic.replication_factor
    if not topic.assignments:
        factor = cluster.number("default.replication.factor", 1) if factor == -1 else factor
        partitions = cluster.number("num.partitions", 1) if partitions == -1 else partitions
        if factor <= 0:
            text = f"the replication factor is {factor}, not at least 1"
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        if partitions <= 0:
            text = f"the number of partitions is {partitions}, not at least 1"
            raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
        placed = yield from place_replicas.in_pieces(cluster, partitions, factor, random)
        _check_active(cluster, placed, ErrorCode.INVALID_REPLICATION_FACTOR)
        return placed
    for number, what in ((factor, "replication factor"), (partitions, "number of partitions")):
        if number != -1:
            text = f"the {what} is {number}, but assignments are given"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
    by_index: dict[int, list[int]] = {}
    for assignment in topic.assignments:
        if assignment.partition_index in by_index:
            raise _bad_assignment(f"partition {assignment.partition_index} is assigned twice")
        by_index[assignment.partition_index] = assignment.broker_ids
    check_assignments(cluster, by_index.values())
    if sorted(by_index) != list(range(len(by_index))):
        raise _bad_assignment("the partitions are not numbered from 0 on without a gap")
    return [by_index[index] for index in range(len(by_index))]


def check_assignments(
    cluster: Cluster, assignments: Iterable[Sequence[int]], factor: int | None = None
) -> None:
    """Check replicas that a request gives; all have `factor` of them, or as many as the first.

    Raises: ApiError INVALID_REPLICA_ASSIGNMENT.
    """
    for replicas in assignments:
        check_replicas(cluster, replicas)
        if factor is not None and len(replicas) != factor:
            raise _bad_assignment(f"a partition has {len(replicas)} replicas, another {factor}")
        factor = len(replicas)
        _check_active(cluster, [replicas], ErrorCode.INVALID_REPLICA_ASSIGNMENT)


def check_replicas(cluster: Cluster, replicas: Sequence[int]) -> None:
    """Check the replicas of one partition. Raises: ApiError INVALID_REPLICA_ASSIGNMENT."""
    if not replicas:
        raise _bad_assignment("a partition has no replicas")
    missing = [replica for replica in replicas if replica not in cluster.image.brokers]
    if missing:
        raise _bad_assignment(f"broker {missing[0]} is not registered")
    for replica in replicas:
        if not has_uncordoned_directories(cluster.image.brokers[replica]):
            raise _bad_assignment(f"all directories of broker {replica} are cordoned")
    if len(set(replicas)) < len(replicas):
        raise _bad_assignment(f"a broker is named twice in {list(replicas)}")


def _check_active(cluster: Cluster, assigned: Iterable[Sequence[int]], code: ErrorCode) -> None:
    assigned = list(assigned)
    active = _active_brokers(cluster, assigned)
    for replicas in assigned:
        if active.isdisjoint(replicas):
            raise ApiError(code, f"all of the brokers {list(replicas)} are fenced or shutting down")


def _active_brokers(cluster: Cluster, assigned: Iterable[Sequence[int]]) -> set[int]:
    """Return the active brokers among those that are assigned; each is looked up once."""
    return {broker for broker in set().union(*assigned) if cluster.is_active(broker)}


def _bad_assignment(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _new_partitions(
    cluster: Cluster, topic_id: bytes, first: int, assigned: Sequence[Sequence[int]]
) -> Pieces[list[VersionedRecord]]:
    """Return the records of new partitions of a topic, numbered from `first` on: the active
    replicas of each are in sync (C-TOP-6)."""
    active = _active_brokers(cluster, assigned)
    version = record_version(PartitionRecord.NAME, cluster.level)
    directories = (
        {broker: cluster.new_directory(broker) for broker in set().union(*assigned)}
        if cluster.level >= WITH_DIRECTORIES
        else {}
    )
    records: list[VersionedRecord] = []
    for index, replicas in enumerate(assigned, first):
        if index % _PIECE_PARTITIONS == 0:
            yield
        in_sync = [replica for replica in replicas if replica in active]
        record = PartitionRecord(
            topic_id=topic_id,
            partition_id=index,
            replicas=list(replicas),
            isr=in_sync,
            leader=in_sync[0],
            leader_epoch=0,
            partition_epoch=0,
        )
        if directories:
            record.directories = [directories[replica] for replica in replicas]
        records.append((record, version))
    return records


@Divided
def delete_topics(
    cluster: Cluster, request: DeleteTopicsRequest, *, charge: Charge = FREE
) -> Pieces[StepResult]:
    """Delete topics by name or by id. What is named twice has one result (C-DEL)."""
    named = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    topics = cluster.image.topics
    names, ids = Counter[str](), Counter[bytes]()
    results = []
    for each in named:
        if (each.name is None) == (each.topic_id == ZERO_UUID):
            error = ApiError(ErrorCode.INVALID_REQUEST, "a topic is named by its name or by its id")
            results.append(_deletion_result(each.name, each.topic_id, error))
        elif each.name is None:
            ids[each.topic_id] += 1
        else:
            names[each.name] += 1
    twice = ApiError(ErrorCode.INVALID_REQUEST, _NAMED_TWICE)
    results += [
        _deletion_result(name, ZERO_UUID, twice) for name, count in names.items() if count > 1
    ]
    results += [_deletion_result(None, one, twice) for one, count in ids.items() if count > 1]
    wanted = {one: topics.names.get(one) for one, count in ids.items() if count == 1}
    for name in [name for name, count in names.items() if count == 1]:
        topic_id = topics.ids.get(name)
        if topic_id is None:
            text = f"there is no topic {name:.300}"
            error = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            results.append(_deletion_result(name, ZERO_UUID, error))
        elif topic_id in wanted:
            results.append(_deletion_result(name, topic_id, twice))
            del wanted[topic_id]
        else:
            wanted[topic_id] = name
    unknown = ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    records: list[VersionedRecord] = []
    for topic_id, found in wanted.items():
        yield
        refused = unknown if found is None else None
        try:
            charge(0 if found is None else len(topics.partitions(topic_id)))
        except ApiError as error:
            refused = refused or error
        results.append(_deletion_result(found, topic_id, refused))
        if refused is None:
            records.append((RemoveTopicRecord(topic_id=topic_id), 0))
    response = DeleteTopicsResponse(responses=results, throttle_time_ms=charge.throttle_ms)
    return StepResult(response, records, charge.commit)


def _deletion_result(
    name: str | None, topic_id: bytes, error: ApiError | None
) -> DeletableTopicResult:
    result = DeletableTopicResult(name=name, topic_id=topic_id, error_message=None)
    if error is not None:
        result.error_code, result.error_message = error.code, error.detail or None
    return result


@Divided
def create_partitions(
    cluster: Cluster,
    request: CreatePartitionsRequest,
    *,
    random: Random,
    charge: Charge = FREE,
) -> Pieces[StepResult]:
    """Add partitions to topics. Raises: ApiError for the whole request."""
    counts = Counter(topic.name for topic in request.topics)
    requested = sum(
        _added_count(cluster, topic) for topic in request.topics if counts[topic.name] == 1
    )
    if requested > RECORDS_MAX:
        text = f"{requested} more partitions in one request, more than {RECORDS_MAX}"
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    results = [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message=_NAMED_TWICE
        )
        for name, count in counts.items()
        if count > 1
    ]
    records: list[VersionedRecord] = []
    total = 0
    for topic in request.topics:
        yield
        if counts[topic.name] > 1:
            continue
        result = CreatePartitionsTopicResult(name=topic.name, error_message=None)
        try:
            # Differs from Kafka, which does not count replicas (C-PART-6).
            partitions, replicas = _added_counts(cluster, topic)
            _check_count(len(records) + partitions, total + replicas)
            records += yield from _add_partitions(cluster, topic, random, charge)
            total += replicas
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.detail or None
        results.append(result)
    return StepResult(
        CreatePartitionsResponse(results=results, throttle_time_ms=charge.throttle_ms),
        [] if request.validate_only else records,
        charge.commit,
    )


def _added_count(cluster: Cluster, topic: CreatePartitionsTopic) -> int:
    """Return how many partitions a topic is to have more (C-PART-6)."""
    topic_id = cluster.image.topics.ids.get(topic.name)
    if topic_id is None:
        return 0
    return max(topic.count - len(cluster.image.topics.partitions(topic_id)), 0)


def _added_counts(cluster: Cluster, topic: CreatePartitionsTopic) -> tuple[int, int]:
    """Return how many partitions and replicas a topic gets. Raises: ApiError."""
    topics = cluster.image.topics
    topic_id = topics.ids.get(topic.name)
    if topic_id is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    existing = topics.partitions(topic_id)
    more = topic.count - len(existing)
    if more <= 0:
        text = f"topic {topic.name} has {len(existing)} partitions already, not below {topic.count}"
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
    return more, more * len(next(iter(existing.values())).replicas)


def _add_partitions(
    cluster: Cluster, topic: CreatePartitionsTopic, random: Random, charge: Charge
) -> Pieces[list[VersionedRecord]]:
    topic_id = cluster.image.topics.ids[topic.name]
    existing = cluster.image.topics.partitions(topic_id)
    more = topic.count - len(existing)
    factor = len(next(iter(existing.values())).replicas)
    assigned = topic.assignments
    if assigned is not None and len(assigned) != more:
        raise _bad_assignment(f"{more} partitions are added, but {len(assigned)} assigned")
    charge(more)
    if assigned is not None:
        replicas = [each.broker_ids for each in assigned]
        check_assignments(cluster, replicas, factor)
    else:
        replicas = yield from place_replicas.in_pieces(cluster, more, factor, random)
        _check_active(cluster, replicas, ErrorCode.INVALID_REPLICATION_FACTOR)
    made: list[VersionedRecord] = yield from _new_partitions(
        cluster, topic_id, len(existing), replicas
    )
    return made


