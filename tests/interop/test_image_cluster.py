"""The image of a real cluster's log: it equals Kafka's snapshots, and Kafka starts from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftwire.controller.image import MetadataImage
from kraftwire.inspect.metadata import change_line
from kraftwire.messages import alter_client_quotas_request as quotas
from kraftwire.messages import alter_partition_reassignments_request as reassignments
from kraftwire.messages import alter_user_scram_credentials_request as scram
from kraftwire.messages import create_acls_request as acls
from kraftwire.messages import create_topics_request as topics
from kraftwire.messages import delete_acls_request as fewer_acls
from kraftwire.messages import incremental_alter_configs_request as configs
from kraftwire.messages import update_features_request as features
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.messages.describe_acls_request import DescribeAclsRequest
from kraftwire.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from kraftwire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from kraftwire.messages.init_producer_id_request import InitProducerIdRequest
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import ControlType, decode_control
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import read_batches
from kraftwire.story.metadata.differences import differences
from kraftwire.story.metadata.files import read_files
from kraftwire.story.metadata.rows import SUBJECTS, rows
from kraftwire.testing.ports import free_ports
from kraftwire.wire.message import Message
from tests.support.kafka.mixed_quorum import wait_until
from tests.support.kafka.process import KafkaNode, kafka_uuid
from tests.support.metadata.snapshots import metadata, read_snapshot, snapshot_id, write_snapshot
from tests.support.nodes.process import ask

CONTROLLER, FIRST, SECOND, LATE = 1, 101, 102, 103

PROPERTIES: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 500,
    "metadata.log.max.record.bytes.between.snapshots": 400,
}


class Cluster:
    """A Java controller and Java brokers, one of which may start later.

    `told` is what clients were told before the directory was changed.
    """

    def __init__(self, folder: Path) -> None:
        self.told: dict[str, Any] = {}
        self.cluster_id = kafka_uuid()
        ports = dict(zip((CONTROLLER, FIRST, SECOND, LATE), free_ports(4), strict=True))
        shared = PROPERTIES | {
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports[CONTROLLER]}"
        }
        self.nodes = {
            node_id: KafkaNode(
                node_id,
                folder / f"node-{node_id}",
                {"CONTROLLER" if node_id == CONTROLLER else "PLAINTEXT": port},
                shared,
            )
            for node_id, port in ports.items()
        }
        self.controller = self.nodes[CONTROLLER]
        (self.port,) = self.controller.listeners.values()

    @property
    def partition(self) -> Path:
        """The controller's directory of the metadata log."""
        return self.controller.log_dir / "__cluster_metadata-0"

    def format(self) -> None:
        """Format all nodes for a release that can be upgraded."""
        voter = f"{CONTROLLER}@127.0.0.1:{self.port}:{self.controller.directory_id}"
        options = ("--release-version", "4.0-IV3")
        self.controller.format(self.cluster_id, *options, "--initial-controllers", voter)
        for node_id in (FIRST, SECOND, LATE):
            self.nodes[node_id].format(self.cluster_id, *options)

    def start(self, *node_ids: int) -> None:
        """Start nodes and wait until they are ready."""
        for node_id in node_ids:
            self.nodes[node_id].start()
        for node_id in node_ids:
            self.nodes[node_id].wait_ready()

    def stop(self) -> None:
        """Stop the brokers, then the controller."""
        for node in reversed(self.nodes.values()):
            node.stop()

    def ask(self, message: Message, version: int, node_id: int = CONTROLLER) -> dict[str, Any]:
        """The answer of a node, which must be without errors."""
        (port,) = self.nodes[node_id].listeners.values()
        answer = ask(port, message, version).to_json(version)
        codes = set(_values(answer, "errorCode"))
        assert codes <= {0}, f"{message.NAME}: {json.dumps(answer)}"
        return answer

    def batches(self) -> list[RecordBatch]:
        """The controller's log."""
        data = b"".join(path.read_bytes() for path in sorted(self.partition.glob("*.log")))
        return [batch for batch in read_batches(data) if isinstance(batch, RecordBatch)]

    def snapshots(self) -> list[Path]:
        """The snapshots that the controller has written, except for the bootstrap checkpoint."""
        found = sorted(self.partition.glob("*.checkpoint"))
        return [path for path in found if snapshot_id(path).offset > 0]

    def wait_led(self) -> None:
        """Wait until every partition has a leader, which takes a moment after brokers started."""
        (port,) = self.nodes[FIRST].listeners.values()

        def codes() -> set[int]:
            answer = ask(port, MetadataRequest(topics=None), 12).to_json(12)
            return set(_values(answer, "errorCode"))

        wait_until(lambda: codes() <= {0}, "leaders of all partitions", lambda: str(codes()))

    def state(self) -> dict[str, Any]:
        """What a broker tells its clients once every partition has a leader."""
        self.wait_led()
        any_quota = DescribeClientQuotasRequest(components=[], strict=False)
        any_acl = DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        told = {
            "topics": self.ask(MetadataRequest(topics=None), 12, FIRST)["topics"],
            "quotas": self.ask(any_quota, 1, FIRST)["entries"],
            "acls": self.ask(any_acl, 3, FIRST)["resources"],
            "users": self.ask(DescribeUserScramCredentialsRequest(users=None), 0, FIRST)["results"],
        }
        for topic in told["topics"]:
            for partition in topic["partitions"]:
                # A restart of the brokers moves these.
                for name in ("leaderId", "leaderEpoch", "isrNodes", "offlineReplicas"):
                    del partition[name]
        return {name: sorted(map(json.dumps, entries)) for name, entries in told.items()}


def _values(data: Any, key: str) -> Iterator[Any]:
    if isinstance(data, dict):
        for name, value in data.items():
            if name == key:
                yield value
            else:
                yield from _values(value, key)
    elif isinstance(data, list):
        for item in data:
            yield from _values(item, key)


def _make_topics(cluster: Cluster) -> None:
    def topic(name: str, **more: Any) -> topics.CreatableTopic:
        return topics.CreatableTopic(name=name, **more)

    chosen = [
        topics.CreatableReplicaAssignment(partition_index=0, broker_ids=[FIRST, SECOND]),
        topics.CreatableReplicaAssignment(partition_index=1, broker_ids=[SECOND, FIRST]),
    ]
    setting = topics.CreatableTopicConfig(name="retention.ms", value="100000")
    made = [
        topic("many", num_partitions=20, replication_factor=2, configs=[setting]),
        topic("chosen", num_partitions=-1, replication_factor=-1, assignments=chosen),
        topic("gone", num_partitions=1, replication_factor=1, configs=[setting]),
    ]
    cluster.ask(topics.CreateTopicsRequest(topics=made, timeout_ms=30000), 7)
    gone = DeleteTopicState(name="gone")
    cluster.ask(DeleteTopicsRequest(topics=[gone], timeout_ms=30000), 6)
    moved = reassignments.ReassignablePartition(partition_index=1, replicas=[FIRST])
    cluster.ask(
        reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=30000,
            topics=[reassignments.ReassignableTopic(name="chosen", partitions=[moved])],
        ),
        0,
    )


def _configure(cluster: Cluster) -> None:
    def resource(kind: int, name: str, key: str, value: str) -> configs.AlterConfigsResource:
        config = configs.AlterableConfig(name=key, config_operation=0, value=value)
        return configs.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[config]
        )

    resources = [
        resource(2, "chosen", "min.insync.replicas", "2"),
        resource(4, "", "log.cleaner.threads", "2"),
        resource(4, str(FIRST), "log.cleaner.backoff.ms", "14000"),
        resource(16, "client-metrics", "interval.ms", "60000"),
    ]
    cluster.ask(configs.IncrementalAlterConfigsRequest(resources=resources), 1)
    entity = [quotas.EntityData(entity_type="user", entity_name="u")]
    anybody = [quotas.EntityData(entity_type="client-id", entity_name=None)]
    rates = [quotas.OpData(key=f"{kind}_byte_rate", value=1e6) for kind in ("producer", "consumer")]
    fewer = [quotas.OpData(key="consumer_byte_rate", remove=True)]
    for one, ops in ((entity, rates), (anybody, rates), (entity, fewer)):
        entry = quotas.EntryData(entity=one, ops=ops)
        cluster.ask(quotas.AlterClientQuotasRequest(entries=[entry]), 1)


def _permit(cluster: Cluster) -> None:
    creations = [
        acls.AclCreation(
            resource_type=2,
            resource_name=name,
            resource_pattern_type=4,
            principal="User:somebody",
            host="*",
            operation=3,
            permission_type=3,
        )
        for name in ("kept", "dropped")
    ]
    cluster.ask(acls.CreateAclsRequest(creations=creations), 3)
    dropped = fewer_acls.DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="dropped",
        pattern_type_filter=4,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    cluster.ask(fewer_acls.DeleteAclsRequest(filters=[dropped]), 3)
    users = [
        scram.ScramCredentialUpsertion(
            name=name, mechanism=1, iterations=4096, salt=b"s" * 16, salted_password=b"p" * 32
        )
        for name in ("kept", "dropped")
    ]
    cluster.ask(scram.AlterUserScramCredentialsRequest(upsertions=users), 0)
    user = scram.ScramCredentialDeletion(name="dropped", mechanism=1)
    cluster.ask(scram.AlterUserScramCredentialsRequest(deletions=[user]), 0)


def _take_a_producer_id(cluster: Cluster) -> None:
    """The first one makes the broker ask the controller for a block of them."""
    (port,) = cluster.nodes[FIRST].listeners.values()
    request = InitProducerIdRequest(transactional_id=None)
    wait_until(lambda: not ask(port, request, 4).to_json(4)["errorCode"], "a producer id")


def _upgrade(cluster: Cluster) -> None:
    names = {"metadata.version": 30, "eligible.leader.replicas.version": 1}
    for name, level in names.items():
        update = features.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=1)
        request = features.UpdateFeaturesRequest(timeout_ms=30000, feature_updates=[update])
        cluster.ask(request, 2)


def _lose_a_broker(cluster: Cluster) -> None:
    """Its partitions get other leaders and eligible ones outside the ISR, and it comes back."""
    cluster.nodes[SECOND].kill()
    fenced = f"Fencing broker {SECOND}"
    console = cluster.controller.console
    wait_until(lambda: fenced in console.read_text(errors="replace"), fenced)
    cluster.start(SECOND)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose log has records of many types, stopped; its directory may be changed."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.format()
    try:
        cluster.start(CONTROLLER, FIRST, SECOND)
        _make_topics(cluster)
        _configure(cluster)
        _permit(cluster)
        _take_a_producer_id(cluster)
        _upgrade(cluster)
        _lose_a_broker(cluster)
        cluster.told = cluster.state()
        cluster.stop()
        yield cluster
    finally:
        for node in cluster.nodes.values():
            node.kill()


def _image_at(batches: list[RecordBatch], end_offset: int) -> MetadataImage:
    image = MetadataImage()
    for batch in batches:
        if batch.last_offset < end_offset:
            image.replay(batch)
    return image


def test_the_image_equals_kafkas_snapshots(cluster: Cluster) -> None:
    """At every offset at which the Java controller took one."""
    batches = cluster.batches()
    snapshots = cluster.snapshots()
    assert len(snapshots) >= 5
    for path in snapshots:
        image = _image_at(batches, snapshot_id(path).offset)
        assert image.problem == ""
        assert metadata(image.freeze()) == metadata(read_snapshot(path)), path.name
    kinds = {
        "AccessControlEntryRecord", "ClientQuotaRecord", "ConfigRecord", "PartitionChangeRecord",
        "ProducerIdsRecord", "RegisterControllerRecord", "RemoveTopicRecord",
        "UserScramCredentialRecord", "BrokerRegistrationChangeRecord", "FeatureLevelRecord",
    }  # fmt: skip
    assert kinds <= set(image.counts)


def test_the_state_at_an_offset_is_that_of_kafkas_snapshot(cluster: Cluster) -> None:
    """`kraftwire metadata diff` finds none of the log with any snapshot of it, voters included."""
    for path in cluster.snapshots():
        log = read_files([cluster.partition], snapshot_id(path).offset - 1)
        snapshot = read_files([path])
        assert log.is_complete
        assert log.snapshot is None
        assert snapshot.is_complete
        for subject in SUBJECTS:
            found = differences(rows(log, [subject]), rows(snapshot, [subject]))
            assert [change_line(each) for each in found] == [], path.name


def _voters(batches: list[RecordBatch]) -> list[tuple[ControlType, Message]]:
    """The newest kraft.version and voters in a log or in its bootstrap checkpoint."""
    found: dict[str, tuple[ControlType, Message]] = {}
    for batch in batches:
        for record in batch.records() if batch.is_control else ():
            decoded = decode_control(record.key, record.value)
            if decoded.type in ("KRaftVersionRecord", VotersRecord.NAME):
                assert decoded.message is not None
                assert decoded.control_type is not None
                found[decoded.type] = ControlType[decoded.control_type], decoded.message
    return list(found.values())


def _begin_at_our_snapshot(cluster: Cluster) -> OffsetAndEpoch:
    """Replace the beginning of the controller's log by a snapshot of ours; returns its id."""
    batches = cluster.batches()
    first_kept = next(batch for batch in batches[-6:] if not batch.is_control)
    image = _image_at(batches, first_kept.base_offset)
    end = OffsetAndEpoch(image.next_offset, image.epoch)
    assert end.offset == first_kept.base_offset > 50
    for path in cluster.partition.iterdir():
        if path.name not in ("quorum-state", "partition.metadata"):
            path.unlink()
    (cluster.controller.log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
    write_snapshot(
        cluster.partition, end, list(image.freeze()), _voters(batches), first_kept.max_timestamp
    )
    tail = b"".join(
        bytes(batch.raw) for batch in batches if batch.base_offset >= first_kept.base_offset
    )
    (cluster.partition / f"{end.offset:020d}.log").write_bytes(tail)
    return end


def test_kafka_starts_from_a_snapshot_of_ours(cluster: Cluster) -> None:
    """The controller from its directory, the brokers by a log that continues from it, and a new
    broker by downloading it; what clients are told is as before."""
    ours = _begin_at_our_snapshot(cluster)
    (path,) = cluster.snapshots()
    cluster.start(CONTROLLER, FIRST, SECOND, LATE)
    assert cluster.state() == cluster.told
    late = cluster.nodes[LATE].log_dir / "__cluster_metadata-0"
    # No node still has the log's beginning; the controller may have a newer snapshot by then.
    assert min(snapshot_id(one) for one in late.glob("*.checkpoint")) >= ours
    _configure(cluster)
    newest = wait_until(lambda: cluster.snapshots()[1:], "a snapshot of the Java controller's")[-1]
    cluster.stop()
    image = MetadataImage.load(
        ours, [b for b in read_batches(path.read_bytes()) if isinstance(b, RecordBatch)]
    )
    for batch in cluster.batches():
        if batch.last_offset < snapshot_id(newest).offset:
            image.replay(batch)
    assert metadata(image.freeze()) == metadata(read_snapshot(newest))
    for node in cluster.nodes.values():
        text = node.console.read_text(errors="replace")
        assert not re.search(r" FATAL |Encountered .*fault", text), node.node_id
