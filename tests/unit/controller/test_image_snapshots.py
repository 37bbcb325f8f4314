"""Snapshots of the image: everything that was committed is in them, or they are refused."""

from __future__ import annotations

import pytest

from kraftwire import messages
from kraftwire.controller.image import METADATA_VERSION, IncompleteImageError, MetadataImage
from kraftwire.controller.record_effects import RECORD_EFFECTS
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.end_transaction_record import EndTransactionRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.producer_ids_record import ProducerIdsRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.zk_migration_state_record import ZkMigrationStateRecord
from kraftwire.records.metadata import decode_metadata, encode_metadata
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message
from tests.support.nodes.stub import batch_of, control_batch, raw_batch

LEVEL = (FeatureLevelRecord(name=METADATA_VERSION, feature_level=30), 0)
TOPIC = bytes(range(16))
DIRECTORY = bytes([7]) * 16


def _image(*records: tuple[Message, int]) -> MetadataImage:
    image = MetadataImage()
    image.replay(batch_of([LEVEL, *records], 0))
    return image


def _topic(**fields: object) -> list[tuple[Message, int]]:
    partition = PartitionRecord(
        topic_id=TOPIC,
        partition_id=0,
        replicas=[1, 2],
        isr=[1, 2],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[DIRECTORY, DIRECTORY],
        **fields,  # type: ignore[arg-type]
    )
    return [(TopicRecord(name="t", topic_id=TOPIC), 0), (partition, 2)]


def _frozen(image: MetadataImage) -> list[Message]:
    decoded = (decode_metadata(value).message for value in image.freeze())
    return [message for message in decoded if message is not None]


def test_every_type_of_record_has_its_place() -> None:
    """A type that a later release of Kafka adds must not be lost silently."""
    types = set(messages.METADATA_RECORDS.values())
    assert types == RECORD_EFFECTS.keys(), (
        "RECORD_EFFECTS in kraftwire/controller/record_effects.py and the schemas differ by "
        f"{types ^ RECORD_EFFECTS.keys()}"
    )


def test_a_partition_carries_all_changes() -> None:
    """Both epochs increase as in Kafka, or brokers refuse what a new leader sends."""
    changes = [
        PartitionChangeRecord(topic_id=TOPIC, isr=[1], leader=1, partition_id=0),
        PartitionChangeRecord(
            topic_id=TOPIC, partition_id=0, replicas=[1], directories=[TOPIC], last_known_elr=[2]
        ),
    ]
    (*_, partition) = _frozen(_image(*_topic(), *((change, 2) for change in changes)))
    assert isinstance(partition, PartitionRecord)
    assert (partition.isr, partition.replicas, partition.last_known_elr) == ([1], [1], [2])
    assert (partition.leader_epoch, partition.partition_epoch) == (1, 2)
    assert partition.directories == [TOPIC]


def test_eligible_leaders_are_cleared_for_one_topic_or_all() -> None:
    """A new min.insync.replicas makes the old eligible leaders void (KIP-966)."""
    for name in ("t", ""):
        image = _image(
            *_topic(eligible_leader_replicas=[2]), (ClearElrRecord(topic_name=name), 0)
        )
        (*_, partition) = _frozen(image)
        assert isinstance(partition, PartitionRecord)
        assert partition.eligible_leader_replicas is None
        assert partition.partition_epoch == 1


def test_a_topic_goes_with_its_partitions_and_configurations() -> None:
    """A topic of the same name that comes later must not inherit them."""
    config = ConfigRecord(resource_type=2, resource_name="t", name="n", value="v")
    image = _image(*_topic(), (config, 0), (RemoveTopicRecord(topic_id=TOPIC), 0))
    assert [message.NAME for message in _frozen(image)] == ["FeatureLevelRecord"]
    assert image.configs == {}


def test_a_broker_is_written_as_changes_left_it() -> None:
    """A Java controller that starts from the snapshot continues with the broker's epoch."""
    broker = RegisterBrokerRecord(broker_id=7, broker_epoch=4, fenced=True, rack="r")
    change = BrokerRegistrationChangeRecord(
        broker_id=7, broker_epoch=4, fenced=-1, in_controlled_shutdown=1, log_dirs=[DIRECTORY]
    )
    (_, frozen) = _frozen(_image((broker, 4), (change, 2)))
    assert isinstance(frozen, RegisterBrokerRecord)
    assert not frozen.fenced
    assert frozen.in_controlled_shutdown
    assert (frozen.log_dirs, frozen.rack, frozen.broker_epoch) == ([DIRECTORY], "r", 4)


def test_records_are_written_in_the_versions_of_the_finalized_level() -> None:
    """As in Kafka after an upgrade; a partition without directories gets unknown ones."""
    image = MetadataImage()
    image.replay(batch_of([(FeatureLevelRecord(name=METADATA_VERSION, feature_level=14), 0)], 0))
    topic, (partition, _) = _topic()
    assert isinstance(partition, PartitionRecord)
    partition.directories = []
    image.replay(batch_of([topic, (partition, 0)], 1))
    assert [decode_metadata(value).version for value in image.freeze()] == [0, 0, 0]
    image.replay(batch_of([LEVEL], 3))
    (*_, value) = image.freeze()
    decoded = decode_metadata(value)
    assert decoded.version == 2
    assert isinstance(decoded.message, PartitionRecord)
    assert decoded.message.directories == [bytes(16)] * 2


def test_what_is_unknown_inside_a_record_survives() -> None:
    """A field of a newer Kafka is a tagged field that older software passes on."""
    topic = TopicRecord(name="t", topic_id=TOPIC)
    topic.unknown_tagged_fields = {9: b"new"}
    broker = RegisterBrokerRecord(broker_id=7, broker_epoch=4)
    broker.unknown_tagged_fields = {40: b"newer"}
    change = BrokerRegistrationChangeRecord(broker_id=7, broker_epoch=4, fenced=-1)
    broker_after = RegisterBrokerRecord(broker_id=7, broker_epoch=4, fenced=False)
    broker_after.unknown_tagged_fields = broker.unknown_tagged_fields
    _, kept, topic_kept = _frozen(_image((topic, 0), (broker, 4), (change, 0)))
    assert (kept, topic_kept) == (broker_after, topic)


def test_the_newest_block_of_producer_ids_and_the_migration_state_are_kept() -> None:
    """Ids that were assigned once must never be assigned again."""
    records = [ProducerIdsRecord(broker_id=1, next_producer_id=n) for n in (1000, 2000)]
    state = ZkMigrationStateRecord(zk_migration_state=4)
    _, kept_state, kept = _frozen(_image(*((record, 0) for record in records), (state, 0)))
    assert isinstance(kept, ProducerIdsRecord)
    assert kept.next_producer_id == 2000
    assert kept_state == state


def test_a_snapshot_is_of_the_moment_it_was_asked_for() -> None:
    """It is written during the replay, which continues."""
    image = _image(*_topic())
    values = image.freeze()
    change = PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=2)
    image.replay(batch_of([(change, 2), (RemoveTopicRecord(topic_id=TOPIC), 0)], 3))
    names = [decode_metadata(value).type for value in values]
    assert names == ["FeatureLevelRecord", "TopicRecord", "PartitionRecord"]


def _refusal(image: MetadataImage) -> str:
    with pytest.raises(IncompleteImageError) as refused:
        image.freeze()
    return str(refused.value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x01\x63\x00\x00", "unknown type of a metadata record"),
        (b"\x01\x02\x05\x00", "unknown version of a record"),
        (b"\x01\x0c\x00\x05", "FeatureLevelRecord"),
        (b"", "at offset 3"),
    ],
)
def test_a_record_that_cannot_be_kept_forbids_snapshots(value: bytes, reason: str) -> None:
    """A snapshot without it would delete it for every node that starts from there."""
    image = _image(*_topic())
    image.replay(raw_batch([value], 3))
    text = _refusal(image)
    assert reason in text
    assert "the record at offset 3" in text


def test_a_batch_that_cannot_be_read_forbids_snapshots() -> None:
    """Its contents are unknown."""
    image = _image()
    batch = batch_of([(TopicRecord(name="t", topic_id=TOPIC), 0)], 1)
    damaged = bytearray(batch.raw)
    damaged[-3:] = b"\xff\xff\xff"
    image.replay(type(batch)(bytes(damaged)))
    assert "the batch at offset 1" in _refusal(image)


@pytest.mark.parametrize(
    "record",
    [
        PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=1),
        PartitionRecord(topic_id=TOPIC, partition_id=0),
        BrokerRegistrationChangeRecord(broker_id=7, broker_epoch=1, fenced=1),
        ClearElrRecord(topic_name="t"),
    ],
)
def test_a_change_of_something_missing_forbids_snapshots(record: Message) -> None:
    """It contradicts what was created: the state cannot be the one that its writer had."""
    image = _image((record, 0))
    assert image.contradiction is not None
    assert image.contradiction.offset == 1
    assert image.contradiction.state in _refusal(image)


def test_a_change_with_unknown_fields_forbids_snapshots() -> None:
    """They would have to become part of a different kind of record."""
    change = PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=1)
    change.unknown_tagged_fields = {60: b"x"}
    assert "tagged fields" in _refusal(_image(*_topic(), (change, 2)))


def test_there_is_no_snapshot_within_a_transaction_or_before_the_bootstrap_records() -> None:
    """A snapshot can neither hold half a transaction nor wait for its end."""
    image = MetadataImage()
    assert METADATA_VERSION in _refusal(image)
    image.replay(batch_of([LEVEL, (BeginTransactionRecord(), 0), *_topic()], 0))
    assert "transaction that began at offset 1" in _refusal(image)
    image.replay(batch_of([(EndTransactionRecord(), 0)], 4))
    assert len(_frozen(image)) == 3


def test_a_loaded_image_continues_where_the_snapshot_ends() -> None:
    """Earlier errors no longer matter."""
    source = _image(*_topic(), (RegisterBrokerRecord(broker_id=7, broker_epoch=4), 4))
    values = list(source.freeze())
    end = OffsetAndEpoch(500, 6)
    batches = [control_batch(0), raw_batch(values[:2], 1), raw_batch(values[2:], 3)]
    image = MetadataImage.load(end, batches)
    assert (image.next_offset, image.epoch) == (500, 6)
    assert image.brokers[7].offset == 499
    assert list(image.freeze()) == values
    image.replay(control_batch(500, epoch=8))
    assert image.epoch_end(6, 501) == (6, 500)
    assert image.epoch_at(500) == 8
    image.replay(batch_of([(RemoveTopicRecord(topic_id=TOPIC), 0)], 501, epoch=8))
    assert len(_frozen(image)) == 2


def test_a_frame_with_long_varints_is_kept_in_the_usual_form() -> None:
    """The writer of the snapshot reads the version in the frame."""
    value = encode_metadata(TopicRecord(name="t", topic_id=TOPIC), 0)
    image = _image()
    image.replay(raw_batch([b"\x01\x82\x00\x00" + value[3:]], 1))
    assert list(image.freeze())[1] == value
