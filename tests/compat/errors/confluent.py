"""confluent-kafka, that is librdkafka: one call for each API that it sends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ElectionType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kraftwire.protocol.error_codes import error_name
from tests.compat.errors.calls import (
    HEARTBEAT_MS,
    SECONDS,
    Call,
    InResult,
    Scene,
    serve,
)


def _config(scene: Scene, **more: object) -> dict[str, Any]:
    return {
        "bootstrap.servers": scene.servers,
        "client.id": "tested",
        "log_level": 0,
        "error_cb": lambda _: None,
        "socket.timeout.ms": SECONDS * 1000 // 2,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 50,
        "enable.metrics.push": False,
    } | {key.replace("_", "."): value for key, value in more.items()}


def _produce(scene: Scene, **more: object) -> None:
    producer = Producer(_config(scene, message_timeout_ms=SECONDS * 1000, **more))
    _send(producer, scene)


def _send(producer: Producer, scene: Scene) -> None:
    seen: list[KafkaError | None] = []
    producer.produce(
        scene.topic, b"x", partition=0, on_delivery=lambda error, _: seen.append(error)
    )
    until = time.monotonic() + 2 * SECONDS
    while not seen and time.monotonic() < until:
        producer.poll(0.05)
    _check(seen[0] if seen else KafkaError(KafkaError._TIMED_OUT))


def _check(error: KafkaError | None) -> None:
    if error is not None:
        raise KafkaException(error)


def _transact(scene: Scene, *, with_offsets: bool = False) -> None:
    """A transaction with a record, and with an offset of a group."""
    producer = Producer(_config(scene, transactional_id=scene.name))
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(scene.topic, b"x", partition=0)
    if with_offsets:
        with _consumer(scene) as consumer:
            group = consumer.consumer_group_metadata()
            offsets = [TopicPartition(scene.topic, 0, 1)]
            producer.send_offsets_to_transaction(offsets, group, SECONDS)
    producer.commit_transaction(SECONDS)


@contextmanager
def _consumer(scene: Scene, **more: object) -> Iterator[Consumer]:
    defaults = {"group_id": scene.name, "enable_auto_commit": False}
    consumer = Consumer(_config(scene, **defaults, auto_offset_reset="earliest", **more))
    try:
        yield consumer
    finally:
        consumer.close()


def _read(consumer: Consumer) -> None:
    """Poll until a record or an error comes."""
    found: Message | None = consumer.poll(2 * SECONDS)
    _check(KafkaError(KafkaError._TIMED_OUT) if found is None else found.error())


def _consume(scene: Scene) -> None:
    with _consumer(scene) as consumer:
        consumer.assign([TopicPartition(scene.topic, 0, OFFSET_BEGINNING)])
        _read(consumer)


def _validate(scene: Scene) -> None:
    """A position with a leader epoch is validated before records are fetched."""
    with _consumer(scene) as consumer:
        position = TopicPartition(scene.topic, 0, 0, leader_epoch=0)
        consumer.assign([position])
        _read(consumer)


def _commit(scene: Scene) -> None:
    with _consumer(scene) as consumer:
        offsets = [TopicPartition(scene.topic, 0, 1)]
        for each in consumer.commit(offsets=offsets, asynchronous=False) or []:
            _check(each.error)


def _committed(scene: Scene) -> None:
    with _consumer(scene) as consumer:
        for each in consumer.committed([TopicPartition(scene.topic, 0)], SECONDS):
            _check(each.error)


def _join(scene: Scene, polls: int = 0, **more: object) -> None:
    """Join a group, read, poll some more times, and leave."""
    with _consumer(scene, **more) as consumer:
        consumer.subscribe([scene.topic])
        _read(consumer)
        until = time.monotonic() + polls * HEARTBEAT_MS / 1000
        while time.monotonic() < until:
            found = consumer.poll(HEARTBEAT_MS / 1000)
            _check(None if found is None else found.error())


def _next_protocol(scene: Scene) -> None:
    _join(scene, group_protocol="consumer")


def _asked(ask: Callable[[AdminClient, Scene], Any]) -> Call:
    """A call of an admin client, until all its futures are there; errors may be in results."""

    def call(scene: Scene) -> None:
        # Answers arrive only while the client exists.
        admin = AdminClient(_config(scene))
        answer = ask(admin, scene)
        for future in answer.values() if isinstance(answer, dict) else [answer]:
            for error in _errors_in(future.result(2 * SECONDS)):
                raise InResult(error_name(error.code()))

    return call


def _errors_in(found: Any) -> list[KafkaError]:
    """Return the errors within a result: of groups, or of partitions."""
    within = found.values() if isinstance(found, dict) else getattr(found, "errors", [])
    errors = [each.args[0] if isinstance(each, KafkaException) else each for each in within]
    return [each for each in errors if isinstance(each, KafkaError) and each.code() > 0]


def _topic(scene: Scene) -> ConfigResource:
    entry = ConfigEntry(
        "retention.ms", "1000000000", incremental_operation=AlterConfigOpType.SET
    )
    return ConfigResource(
        ConfigResource.Type.TOPIC, scene.topic, incremental_configs=[entry]
    )


def _whole_topic(scene: Scene) -> ConfigResource:
    values = {"retention.ms": "1000000000"}
    return ConfigResource(ConfigResource.Type.TOPIC, scene.topic, set_config=values)


def _acl(scene: Scene, kind: type = AclBinding) -> Any:
    return kind(
        ResourceType.TOPIC, scene.name, ResourcePatternType.LITERAL,
        "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip


def _user(scene: Scene) -> UserScramCredentialUpsertion:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    return UserScramCredentialUpsertion(scene.name, info, b"secret")


CALLS: dict[str, Call] = {
    "Produce": _produce,
    "InitProducerId": lambda scene: _produce(scene, enable_idempotence=True),
    "Metadata": _produce,
    "AddPartitionsToTxn": _transact,
    "EndTxn": _transact,
    "AddOffsetsToTxn": lambda scene: _transact(scene, with_offsets=True),
    "TxnOffsetCommit": lambda scene: _transact(scene, with_offsets=True),
    "Fetch": _consume,
    "OffsetForLeaderEpoch": _validate,
    "FindCoordinator": _commit,
    "OffsetCommit": _commit,
    "OffsetFetch": _committed,
    "JoinGroup": _join,
    "SyncGroup": _join,
    "Heartbeat": lambda scene: _join(scene, 10, heartbeat_interval_ms=HEARTBEAT_MS),
    "LeaveGroup": _join,
    "ConsumerGroupHeartbeat": _next_protocol,
    "ListOffsets": _asked(
        lambda admin, scene: admin.list_offsets(
            {TopicPartition(scene.topic, 0): OffsetSpec.latest()},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
        )
    ),
    "CreateTopics": _asked(lambda a, scene: a.create_topics([NewTopic(scene.name, 1, 1)])),
    "DeleteTopics": _asked(lambda admin, scene: admin.delete_topics([scene.name])),
    "CreatePartitions": _asked(
        lambda admin, scene: admin.create_partitions([NewPartitions(scene.name, 2)])
    ),
    "DeleteRecords": _asked(
        lambda admin, scene: admin.delete_records([TopicPartition(scene.topic, 0, 0)])
    ),
    "DescribeConfigs": _asked(lambda admin, scene: admin.describe_configs([_topic(scene)])),
    "IncrementalAlterConfigs": _asked(
        lambda admin, scene: admin.incremental_alter_configs([_topic(scene)])
    ),
    "AlterConfigs": _asked(lambda admin, scene: admin.alter_configs([_whole_topic(scene)])),
    "ElectLeaders": _asked(
        lambda admin, scene: admin.elect_leaders(
            ElectionType.PREFERRED, [TopicPartition(scene.topic, 0)]
        )
    ),
    "ListGroups": _asked(lambda admin, _: admin.list_consumer_groups()),
    "DescribeGroups": _asked(
        lambda admin, scene: admin.describe_consumer_groups([scene.name])
    ),
    "DeleteGroups": _asked(lambda admin, scene: admin.delete_consumer_groups([scene.name])),
    "DescribeCluster": _asked(lambda admin, _: admin.describe_cluster()),
    "DescribeAcls": _asked(
        lambda admin, scene: admin.describe_acls(_acl(scene, AclBindingFilter))
    ),
    "CreateAcls": _asked(lambda admin, scene: admin.create_acls([_acl(scene)])),
    "DeleteAcls": _asked(
        lambda admin, scene: admin.delete_acls([_acl(scene, AclBindingFilter)])
    ),
    "DescribeUserScramCredentials": _asked(
        lambda admin, _: admin.describe_user_scram_credentials()
    ),
    "AlterUserScramCredentials": _asked(
        lambda admin, scene: admin.alter_user_scram_credentials([_user(scene)])
    ),
}


def _name(error: Exception) -> str:
    """Return the name of an error of Kafka's or of librdkafka's own, or of an exception."""
    found = error.args[0] if error.args else None
    if not isinstance(found, KafkaError):
        return type(error).__name__
    return error_name(found.code()) if found.code() > 0 else found.name()


if __name__ == "__main__":
    serve(CALLS, _name)
