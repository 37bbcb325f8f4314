"""Replay of committed metadata records into an image."""

from __future__ import annotations

import tracemalloc

from kraftwire.controller.image import METADATA_VERSION, MetadataImage
from kraftwire.messages.abort_transaction_record import AbortTransactionRecord
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.end_transaction_record import EndTransactionRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraftwire.messages.register_controller_record import RegisterControllerRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.messages.unregister_controller_record import UnregisterControllerRecord
from kraftwire.records.metadata import decode_metadata
from tests.support.nodes.controlled_cluster import ControlledCluster
from tests.support.nodes.stub import batch_of, control_batch, raw_batch

LEVEL = (FeatureLevelRecord(name=METADATA_VERSION, feature_level=30), 0)


def _broker(epoch: int) -> tuple[RegisterBrokerRecord, int]:
    endpoint = BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)
    record = RegisterBrokerRecord(
        broker_id=7, broker_epoch=epoch, end_points=[endpoint], fenced=True
    )
    return record, 4


def _change(epoch: int, fenced: int) -> tuple[BrokerRegistrationChangeRecord, int]:
    record = BrokerRegistrationChangeRecord(broker_id=7, broker_epoch=epoch, fenced=fenced)
    return record, 0


def test_records_of_a_transaction_count_when_it_ends() -> None:
    """A half-written bootstrap must not look like a finalized metadata.version (KIP-866)."""
    image = MetadataImage()
    image.replay(batch_of([(BeginTransactionRecord(name="x"), 0), LEVEL], 0))
    assert image.metadata_version is None
    assert image.transaction_offset == 0
    image.replay(batch_of([(EndTransactionRecord(), 0)], 2))
    assert image.metadata_version == 30
    assert image.transaction_offset == -1


def test_records_of_an_aborted_transaction_never_count() -> None:
    """What a new controller aborts must leave no trace."""
    image = MetadataImage()
    image.replay(batch_of([(BeginTransactionRecord(), 0), LEVEL], 0))
    image.replay(batch_of([(AbortTransactionRecord(reason="r"), 0)], 2))
    assert image.features == {}
    assert image.next_offset == 3


def test_a_feature_at_level_zero_is_not_finalized() -> None:
    """Level 0 is how a feature is switched off."""
    image = MetadataImage()
    name = "transaction.version"
    on, off = (FeatureLevelRecord(name=name, feature_level=level) for level in (2, 0))
    image.replay(batch_of([(on, 0)], 0))
    assert image.features == {name: 2}
    image.replay(batch_of([(off, 0)], 1))
    assert image.features == {}


def test_a_broker_is_alive_once_it_is_unfenced() -> None:
    """Clients are sent only to brokers that are not fenced."""
    image = MetadataImage()
    image.replay(batch_of([_broker(5)], 5))
    assert image.alive_brokers == []
    image.replay(batch_of([_change(5, -1)], 6))
    assert [broker.id for broker in image.alive_brokers] == [7]
    assert image.brokers[7].offset == 5
    image.replay(batch_of([_change(5, 1)], 7))
    assert image.alive_brokers == []


def test_a_change_for_an_older_epoch_of_a_broker_is_ignored() -> None:
    """A fencing decided before a restart must not fence the new registration."""
    image = MetadataImage()
    image.replay(batch_of([_broker(5), _change(5, -1)], 5))
    image.replay(batch_of([_change(4, 1), (UnregisterBrokerRecord(broker_id=7), 0)], 7))
    assert [broker.id for broker in image.alive_brokers] == [7]


def test_a_config_without_value_is_removed() -> None:
    """Null is the tombstone of a configuration."""
    image = MetadataImage()
    name = {"resource_type": 4, "resource_name": "", "name": "kraftwire.cluster.id"}
    image.replay(batch_of([(ConfigRecord(**name, value="abc"), 0)], 0))  # type: ignore[arg-type]
    assert image.cluster_id == "abc"
    image.replay(batch_of([(ConfigRecord(**name, value=None), 0)], 1))  # type: ignore[arg-type]
    assert image.cluster_id is None


def test_unknown_and_damaged_records_are_counted_and_never_fatal() -> None:
    """A log of a newer Kafka must not end a node that only follows it."""
    image = MetadataImage()
    image.replay(raw_batch([b"\x01\xff\x7f\x00", b"", b"\x01\x0c\x00\x05"], 0))
    assert image.problem_count == 3
    assert "offset 0" in image.problem
    image.replay(batch_of([(TopicRecord(name="t"), 0), (NoOpRecord(), 0)], 3))
    assert image.counts["TopicRecord"] == 1
    assert image.next_offset == 5


def test_a_batch_is_replayed_once() -> None:
    """A listener may get a whole batch after asking for an offset in its middle."""
    image = MetadataImage()
    batch = batch_of([(NoOpRecord(), 0)], 0)
    image.replay(batch)
    image.replay(batch)
    assert image.counts["NoOpRecord"] == 1


def test_epochs_end_where_the_next_one_starts() -> None:
    """Consumers compare epochs with the leader after a change of leaders (KIP-320)."""
    image = MetadataImage()
    image.replay(control_batch(0, epoch=2))
    image.replay(batch_of([(NoOpRecord(), 0)], 1, epoch=2))
    image.replay(control_batch(2, epoch=5))
    assert image.epoch_end(2, 3) == (2, 2)
    assert image.epoch_end(4, 3) == (2, 2)
    assert image.epoch_end(5, 3) == (5, 3)
    assert image.epoch_end(1, 3) == (-1, -1)
    assert [image.epoch_at(offset) for offset in (0, 1, 2)] == [2, 2, 5]


def test_a_removal_of_an_earlier_registration_removes_nothing() -> None:
    """The broker has registered again since."""
    image = MetadataImage()
    image.replay(batch_of([LEVEL, _broker(5)], 0))
    image.replay(batch_of([(UnregisterBrokerRecord(broker_id=7, broker_epoch=4), 0)], 2))
    assert set(image.brokers) == {7}


def test_a_controller_that_is_unregistered_is_forgotten() -> None:
    """A snapshot would otherwise bring it back."""
    image = MetadataImage()
    registered = [(RegisterControllerRecord(controller_id=id), 0) for id in (1, 2)]
    image.replay(batch_of([LEVEL, *registered], 0))
    image.replay(batch_of([(UnregisterControllerRecord(controller_id=2), 0)], 3))
    assert list(image.controllers) == [1]
    assert image.problem_count == 0
    kept = [decode_metadata(value).message for value in image.freeze()]
    assert [one.controller_id for one in kept if isinstance(one, RegisterControllerRecord)] == [1]


def test_a_resource_without_configurations_is_forgotten() -> None:
    """Else resources that come and go would fill the memory."""
    image = MetadataImage()
    for offset, value in enumerate(("1", None)):
        record = ConfigRecord(resource_type=2, resource_name="t", name="n", value=value)
        image.replay(batch_of([(record, 0)], offset))
        assert len(image.configs) == (value is not None)


def test_a_change_costs_the_same_in_a_large_cluster() -> None:
    """An image that copied itself per change would stop a controller of 100,000 partitions."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", *[(1, 2)] * 5000)
    image, broker = cluster.image, cluster.image.brokers[2]
    batches = [
        batch_of([record], image.next_offset + count)
        for count, record in enumerate(
            [
                (PartitionChangeRecord(topic_id=topic_id, partition_id=3, leader=2), 0),
                (BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=broker.epoch), 0),
                (ConfigRecord(resource_type=2, resource_name="t", name="n", value="v"), 0),
                (TopicRecord(name="u", topic_id=b"u" * 16), 0),
            ]
        )
    ]
    tracemalloc.start()
    try:
        for batch in batches:
            image.replay(batch)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cluster.partition((topic_id, 3)).leader == 2
    # A dictionary of 5000 entries takes 200,000 bytes and more.
    assert peak < 100_000
