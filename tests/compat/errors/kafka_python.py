"""kafka-python: one call for each API that it sends."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
    TopicPartitionReplica,
    errors,
)
from kafka.admin import (
    ACL,
    AbortTransactionSpec,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError, KafkaTimeoutError

from kraftwire.faults.refusing import TEXT
from kraftwire.protocol.error_codes import error_name
from tests.compat.errors.calls import (
    HEARTBEAT_MS,
    SECONDS,
    Call,
    InResult,
    Scene,
    serve,
)

# How texts of results name an error.
_NAMED = re.compile(r"(?:\[Error \d+\] )?(\w+Error)\b", re.ASCII)
_TIMES = {"request_timeout_ms": SECONDS * 1000 // 2, "retry_backoff_ms": 20}


def _config(scene: Scene) -> dict[str, Any]:
    return {"bootstrap_servers": scene.servers, "client_id": "tested", **_TIMES}


@contextmanager
def _producer(scene: Scene, **more: object) -> Iterator[KafkaProducer]:
    times = {"max_block_ms": SECONDS * 1000, "delivery_timeout_ms": SECONDS * 1000}
    producer = KafkaProducer(**_config(scene), **times, **more)
    try:
        yield producer
    finally:
        producer.close(timeout=0)


def _produce(scene: Scene, **more: object) -> None:
    with _producer(scene, **more) as producer:
        producer.send(scene.topic, b"x", partition=0).get(2 * SECONDS)


def _metadata(scene: Scene) -> None:
    with _producer(scene) as producer:
        producer.partitions_for(scene.topic)


def _transact(scene: Scene, *, with_offsets: bool = False) -> None:
    """A transaction with a record, and with an offset of a group."""
    with _producer(scene, transactional_id=scene.name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(scene.topic, b"x", partition=0).get(2 * SECONDS)
        if with_offsets:
            offsets = {TopicPartition(scene.topic, 0): OffsetAndMetadata(1, "", -1)}
            producer.send_offsets_to_transaction(offsets, scene.name)
        producer.commit_transaction()


@contextmanager
def _consumer(scene: Scene, **more: object) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(
        **_config(scene),
        group_id=scene.name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS * 1000,
        **more,
    )
    try:
        yield consumer
    finally:
        consumer.close(timeout_ms=SECONDS * 1000)


def _read(consumer: KafkaConsumer) -> None:
    """Poll until a record comes."""
    until = time.monotonic() + 2 * SECONDS
    while not consumer.poll(100):
        if time.monotonic() > until:
            raise KafkaTimeoutError("no records")


def _consume(scene: Scene) -> None:
    with _consumer(scene) as consumer:
        partition = TopicPartition(scene.topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        _read(consumer)


def _commit(scene: Scene) -> None:
    with _consumer(scene) as consumer:
        partition = TopicPartition(scene.topic, 0)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(1, "", -1)}, timeout_ms=SECONDS * 1000)


def _committed(scene: Scene) -> None:
    with _consumer(scene) as consumer:
        consumer.committed(TopicPartition(scene.topic, 0), timeout_ms=SECONDS * 1000)


def _join(scene: Scene, polls: int = 0, **more: object) -> None:
    """Join a group, read, poll some more times, and leave."""
    with _consumer(scene, **more) as consumer:
        consumer.subscribe([scene.topic])
        _read(consumer)
        until = time.monotonic() + polls * HEARTBEAT_MS / 1000
        while time.monotonic() < until:
            consumer.poll(HEARTBEAT_MS)


def _asked(ask: Callable[[KafkaAdminClient, Scene], Any]) -> Call:
    """A call of an admin client; errors may be in its result."""

    def call(scene: Scene) -> None:
        admin = KafkaAdminClient(**_config(scene))
        try:
            for error in _errors_in(ask(admin, scene)):
                raise InResult(error)
        finally:
            admin.close()

    return call


def _errors_in(found: Any) -> Iterator[str]:
    """Yield the names of Kafka's errors within a result."""
    kind: Any = found if isinstance(found, type) else type(found)
    if issubclass(kind, KafkaError):
        if _code(kind) > 0:
            yield error_name(_code(kind))
    elif isinstance(found, Mapping):
        code = found.get("error_code")
        if isinstance(code, int) and code > 0:
            yield error_name(code)
        for each in found.values():
            yield from _errors_in(each)
    elif isinstance(found, str):
        named = _NAMED.match(found)
        if found == TEXT:
            yield found
        yield from _errors_in(getattr(errors, named[1], None) if named else None)
    elif isinstance(found, list | tuple | set):
        for each in found:
            yield from _errors_in(each)
    elif hasattr(found, "to_dict"):
        yield from _errors_in(found.to_dict())


def _code(error: Any) -> int:
    """Return the code of an error, 0 of one that is the library's own."""
    return getattr(error, "errno", None) or 0


def _partition(scene: Scene) -> TopicPartition:
    return TopicPartition(scene.topic, 0)


def _topic(scene: Scene) -> ConfigResource:
    values = {"retention.ms": "1000000000"}
    return ConfigResource(ConfigResourceType.TOPIC, scene.topic, configs=values)


def _acl(scene: Scene, kind: type = ACL) -> Any:
    return kind(
        principal="User:a",
        host="*",
        operation=ACLOperation.READ,
        permission_type=ACLPermissionType.ALLOW,
        resource_pattern=ResourcePattern(ResourceType.TOPIC, scene.name),
    )


CALLS: dict[str, Call] = {
    "Produce": lambda scene: _produce(scene, enable_idempotence=False),
    "InitProducerId": lambda scene: _produce(scene, enable_idempotence=True),
    "Metadata": _metadata,
    "AddPartitionsToTxn": _transact,
    "EndTxn": _transact,
    "AddOffsetsToTxn": lambda scene: _transact(scene, with_offsets=True),
    "TxnOffsetCommit": lambda scene: _transact(scene, with_offsets=True),
    "Fetch": _consume,
    "ListOffsets": _consume,
    "FindCoordinator": _commit,
    "OffsetCommit": _commit,
    "OffsetFetch": _committed,
    "JoinGroup": _join,
    "SyncGroup": _join,
    "Heartbeat": lambda scene: _join(scene, 10, heartbeat_interval_ms=HEARTBEAT_MS),
    "LeaveGroup": _join,
    "ApiVersions": _asked(lambda admin, _: admin.describe_features()),
    "CreateTopics": _asked(lambda admin, scene: admin.create_topics([NewTopic(scene.name, 1, 1)])),
    "DeleteTopics": _asked(lambda admin, scene: admin.delete_topics([scene.name])),
    "CreatePartitions": _asked(lambda admin, scene: admin.create_partitions({scene.name: 2})),
    "DeleteRecords": _asked(lambda admin, scene: admin.delete_records({_partition(scene): 0})),
    "DescribeTopicPartitions": _asked(
        lambda admin, scene: admin.describe_topic_partitions([scene.topic])
    ),
    "DescribeProducers": _asked(
        lambda admin, scene: admin.describe_producers([_partition(scene)])
    ),
    "WriteTxnMarkers": _asked(
        lambda admin, scene: admin.abort_transaction(
            AbortTransactionSpec(_partition(scene), 1, 0)
        )
    ),
    "ElectLeaders": _asked(lambda admin, scene: admin.elect_leaders(0, {scene.topic: [0]})),
    "AlterPartitionReassignments": _asked(
        lambda admin, scene: admin.alter_partition_reassignments({_partition(scene): None})
    ),
    "ListPartitionReassignments": _asked(lambda admin, _: admin.list_partition_reassignments()),
    "DescribeLogDirs": _asked(lambda admin, _: admin.describe_log_dirs()),
    "AlterReplicaLogDirs": _asked(
        lambda admin, scene: admin.alter_replica_log_dirs(
            {
                TopicPartitionReplica(scene.topic, 0, broker["broker_id"]): "/none"
                for broker in admin.describe_cluster()["brokers"]
            }
        )
    ),
    "ListGroups": _asked(lambda admin, _: admin.list_groups()),
    "DescribeGroups": _asked(lambda admin, scene: admin.describe_groups([scene.name])),
    "DeleteGroups": _asked(lambda admin, scene: admin.delete_groups([scene.name])),
    "OffsetDelete": _asked(
        lambda admin, scene: admin.delete_group_offsets(scene.name, [_partition(scene)])
    ),
    "DescribeTransactions": _asked(
        lambda admin, scene: admin.describe_transactions([scene.name])
    ),
    "ListTransactions": _asked(lambda admin, _: admin.list_transactions()),
    "DescribeCluster": _asked(lambda admin, _: admin.describe_cluster()),
    "DescribeQuorum": _asked(lambda admin, _: admin.describe_metadata_quorum()),
    "UpdateFeatures": _asked(
        lambda admin, _: admin.update_features({"group.version": 1}, validate_only=True)
    ),
    "DescribeConfigs": _asked(lambda admin, scene: admin.describe_configs([_topic(scene)])),
    "IncrementalAlterConfigs": _asked(
        lambda admin, scene: admin.alter_configs([_topic(scene)], incremental=True)
    ),
    "AlterConfigs": _asked(
        lambda admin, scene: admin.alter_configs([_topic(scene)], incremental=False)
    ),
    "ListConfigResources": _asked(lambda admin, _: admin.list_config_resources()),
    "DescribeAcls": _asked(lambda admin, scene: admin.describe_acls(_acl(scene, ACLFilter))),
    "CreateAcls": _asked(lambda admin, scene: admin.create_acls([_acl(scene)])),
    "DeleteAcls": _asked(lambda admin, scene: admin.delete_acls([_acl(scene, ACLFilter)])),
    "DescribeUserScramCredentials": _asked(
        lambda admin, _: admin.describe_user_scram_credentials()
    ),
    "AlterUserScramCredentials": _asked(
        lambda admin, scene: admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(scene.name, ScramMechanism.SCRAM_SHA_256, "secret")]
        )
    ),
}


def _name(error: Exception) -> str:
    """Return the name of an error of Kafka's, or of an exception of the library's own."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, KafkaError) and _code(found) > 0:
            return error_name(_code(found))
        found = found.args[0] if found.args and isinstance(found.args[0], Exception) else None
    return type(error).__name__


if __name__ == "__main__":
    serve(CALLS, _name)
