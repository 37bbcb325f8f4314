"""What contradicts the records before it, and what only seems to where these are not known."""

from __future__ import annotations

import pytest

from kraftwire.controller.check import Contradiction, MetadataCheck
from kraftwire.controller.image import MetadataImage
from kraftwire.messages.abort_transaction_record import AbortTransactionRecord
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.end_transaction_record import EndTransactionRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.fence_broker_record import FenceBrokerRecord
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.producer_ids_record import ProducerIdsRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.messages.unregister_controller_record import UnregisterControllerRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.wire.message import Message
from tests.support.metadata.history import History
from tests.support.nodes.stub import raw_batch

A, B, DIRECTORY = (bytes([number]) * 16 for number in (1, 2, 3))
VERSION = "metadata.version"

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
BROKER = RegisterBrokerRecord(broker_id=3, broker_epoch=2, log_dirs=[DIRECTORY])
TOPIC = TopicRecord(name="orders", topic_id=A)
PARTITION = PartitionRecord(partition_id=0, topic_id=A, replicas=[3], isr=[3], leader=3)
ACL = AccessControlEntryRecord(id=A)
USER = UserScramCredentialRecord(name="alice", mechanism=1)
PRODUCERS = ProducerIdsRecord(next_producer_id=2000)

# A whole log that creates one of everything.
EVERYTHING: list[Message] = [
    FeatureLevelRecord(name=VERSION, feature_level=25),
    BROKER,
    TOPIC,
    PARTITION,
    ACL,
    USER,
    PRODUCERS,
]


def _change(**fields: object) -> PartitionChangeRecord:
    base = {"topic_id": A, "partition_id": 0}
    return PartitionChangeRecord(**(base | fields))  # type: ignore[arg-type]


def _check(
    records: list[Message], base_offset: int = 0, *, check: MetadataCheck | None = None
) -> list[Contradiction]:
    check = check or MetadataCheck()
    check.begin_batch(base_offset, base_offset + len(records) - 1)
    found = [check.check_record(base_offset + at, record) for at, record in enumerate(records)]
    return [each for each in found if each is not None]


# Record, what it says, what the state says.
PRESENT: list[tuple[Message, str, str]] = [
    (
        BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=99, fenced=-1),
        "broker 3 with broker epoch 99",
        "registered with broker epoch 2",
    ),
    (FenceBrokerRecord(id=3, epoch=1), "epoch 1", "registered with broker epoch 2"),
    (UnfenceBrokerRecord(id=3, epoch=7), "epoch 7", "registered with broker epoch 2"),
    (UnregisterBrokerRecord(broker_id=3, broker_epoch=1), "epoch 1", "broker epoch 2"),
    (
        BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=2, fenced=5),
        "changes fenced by 5",
        "-1, 0, 1",
    ),
    (
        BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=2, in_controlled_shutdown=-1),
        "changes in_controlled_shutdown by -1",
        "0, 1",
    ),
    (
        RegisterBrokerRecord(broker_id=4, broker_epoch=9, log_dirs=[DIRECTORY]),
        "broker 4 registers log directory AwMDAwMDAwMDAwMDAwMDAw",
        "of broker 3",
    ),
    (TopicRecord(name="orders", topic_id=B), "AgICAgICAgICAgICAgICAg", "AQEBAQEBAQEBAQEBAQEBAQ"),
    (TopicRecord(name="other", topic_id=A), "other", "topic orders"),
    (TOPIC, "topic orders", "topic orders, which exists"),
    (_change(partition_id=4, leader=3), "partition 4 of topic orders", "no such partition"),
    (_change(leader_recovery_state=2), "leader recovery state 2", "0 and 1"),
    (_change(directories=[A, B]), "2 directories", "1 replicas"),
    (
        PartitionRecord(partition_id=1, topic_id=A, replicas=[3], directories=[A, B]),
        "2 directories",
        "1 replicas",
    ),
    (
        PartitionRecord(partition_id=1, topic_id=A, replicas=[3, 4], directories=[A]),
        "1 directories",
        "2 replicas",
    ),
    (FeatureLevelRecord(name=VERSION, feature_level=0), "level 0", "1 to 33"),
    (FeatureLevelRecord(name=VERSION, feature_level=34), "level 34", "1 to 33"),
    (FeatureLevelRecord(name=VERSION, feature_level=22), "level 22", "it is 25"),
    (FeatureLevelRecord(name="group.version", feature_level=-1), "level -1", "levels are 0 to 1"),
    (FeatureLevelRecord(name="streams.version", feature_level=9), "level 9", "levels are 0 to 1"),
    (FeatureLevelRecord(name="kraft.version", feature_level=2), "level 2", "levels are 0 to 1"),
    (FeatureLevelRecord(name="new.version", feature_level=1), "level 1", "levels are 0 to 0"),
    (ProducerIdsRecord(next_producer_id=2000), "id is 2000", "below 2000"),
    (BEGIN, "begins", "is still open"),
]

ABSENT: list[tuple[Message, str, str]] = [
    (
        BrokerRegistrationChangeRecord(broker_id=5, broker_epoch=2),
        "broker 5",
        "broker 5 is not registered",
    ),
    (FenceBrokerRecord(id=5, epoch=1), "broker 5", "not registered"),
    (UnfenceBrokerRecord(id=5, epoch=1), "broker 5", "not registered"),
    (UnregisterBrokerRecord(broker_id=5, broker_epoch=1), "broker 5", "not registered"),
    (UnregisterControllerRecord(controller_id=5), "controller 5", "no such one is registered"),
    (RemoveTopicRecord(topic_id=B), "topic id AgICAgICAgICAgICAgICAg", "no topic has that id"),
    (PartitionRecord(topic_id=B, partition_id=2), "partition 2 of topic id Ag", "no topic"),
    (_change(topic_id=B), "partition 0 of topic id AgICAgICAgICAgICAgICAg", "no topic"),
    (ClearElrRecord(topic_name="other"), "topic other", "no topic has that name"),
    (RemoveAccessControlEntryRecord(id=B), "AgICAgICAgICAgICAgICAg", "no ACL has that id"),
    (
        RemoveUserScramCredentialRecord(name="alice", mechanism=2),
        "user alice, mechanism 2",
        "no such credential",
    ),
    (END, "ends a transaction", "no transaction is open"),
    (ABORT, "ends a transaction", "no transaction is open"),
]


@pytest.mark.parametrize(("record", "says", "state"), PRESENT + ABSENT)
def test_both_sides_are_told(record: Message, says: str, state: str) -> None:
    """Kafka's controller ends on each of these, and names one side at most."""
    before = [*EVERYTHING, BEGIN] if record is BEGIN else EVERYTHING
    (found,) = _check([*before, record])
    assert found.offset == len(before)
    assert says in found.record
    assert state in found.state
    assert str(found) == f"offset {found.offset}: {found.record}, but {found.state}"


@pytest.mark.parametrize(("record", "_says", "_state"), ABSENT)
@pytest.mark.parametrize("base_offset", [1, 500])
def test_what_is_absent_may_exist_before_the_log_begins(
    record: Message, _says: str, _state: str, base_offset: int
) -> None:
    """The prefix of a log is deleted once a snapshot has it."""
    assert _check([record], base_offset) == []


@pytest.mark.parametrize(("record", "_says", "_state"), ABSENT)
def test_what_is_absent_may_be_in_a_gap(record: Message, _says: str, _state: str) -> None:
    """A segment may be missing, or a record may be damaged."""
    check = MetadataCheck()
    _check(EVERYTHING, check=check)
    assert _check([record], 100, check=check) == []
    check.forget()
    assert _check([record], 101, check=check) == []


@pytest.mark.parametrize(("record", "says", "_state"), PRESENT)
def test_what_is_known_since_a_gap_is_still_contradicted(
    record: Message, says: str, _state: str
) -> None:
    """Records that follow each other without a gap know each other."""
    before = [*EVERYTHING, BEGIN] if record is BEGIN else EVERYTHING
    (found,) = _check([*before, record], 500)
    assert says in found.record


@pytest.mark.parametrize(("record", "_says", "_state"), PRESENT[:4] + PRESENT[7:8])
def test_what_changed_in_a_gap_is_not_contradicted(
    record: Message, _says: str, _state: str
) -> None:
    """The broker may have registered again in between."""
    check = MetadataCheck()
    _check(EVERYTHING, check=check)
    assert _check([record], 100, check=check) == []


def test_the_log_after_a_snapshot_is_whole() -> None:
    """Kafka reads the newest snapshot, then the log after it."""
    snapshot = MetadataCheck(in_snapshot=True)
    assert _check([NoOpRecord(), *EVERYTHING], check=snapshot) == []
    check = snapshot.after_snapshot(700)
    assert _check([_change(leader=3), UnregisterBrokerRecord(broker_id=9)], 700, check=check) == [
        Contradiction(
            701,
            "UnregisterBrokerRecord is of broker 9 with broker epoch 0",
            "broker 9 is not registered",
        )
    ]


@pytest.mark.parametrize("record", [BEGIN, END, ABORT])
def test_a_snapshot_holds_no_transaction(record: Message) -> None:
    """Kafka's controller ends on such a snapshot."""
    (found,) = _check([record], check=MetadataCheck(in_snapshot=True))
    assert found.state == "a snapshot holds no transactions"


def test_records_of_a_transaction_know_each_other() -> None:
    """A topic and its partitions are created in one transaction."""
    assert _check([BEGIN, TOPIC, PARTITION, END, _change(leader=4)]) == []


def test_an_aborted_transaction_is_undone() -> None:
    """Whatever it created, changed and removed is as before it."""
    check = MetadataCheck()
    _check(EVERYTHING, check=check)
    before = repr(list(check.entities.tables()))
    undone: list[Message] = [
        BEGIN,
        UnregisterBrokerRecord(broker_id=3, broker_epoch=2),
        RegisterBrokerRecord(broker_id=3, broker_epoch=8, log_dirs=[B]),
        _change(replicas=[3, 4]),
        RemoveTopicRecord(topic_id=A),
        TopicRecord(name="orders", topic_id=B),
        PartitionRecord(partition_id=0, topic_id=B),
        RemoveAccessControlEntryRecord(id=A),
        RemoveUserScramCredentialRecord(name="alice", mechanism=1),
        ProducerIdsRecord(next_producer_id=5000),
        FeatureLevelRecord(name=VERSION, feature_level=30),
    ]
    assert _check([*undone, ABORT], 7, check=check) == []
    assert repr(list(check.entities.tables())) == before
    (found,) = _check([PartitionRecord(partition_id=0, topic_id=B)], 19, check=check)
    assert found.state == "no topic has that id"


def test_an_abort_undoes_what_follows_a_gap() -> None:
    """The transaction began in the gap: the registrations that are known may be part of it."""
    check = MetadataCheck()
    assert _check([BROKER, ABORT], 100, check=check) == []
    assert _check([UnregisterBrokerRecord(broker_id=3, broker_epoch=1)], 102, check=check) == []


def test_a_contradiction_is_told_inside_a_transaction_that_is_aborted() -> None:
    """Kafka replays its records as they come."""
    (found,) = _check([BEGIN, _change(), ABORT])
    assert found.offset == 1


def test_one_mistake_is_told_once() -> None:
    """The state stays that of the records that fit."""
    wrong = TopicRecord(name="orders", topic_id=B)
    created = PartitionRecord(partition_id=0, topic_id=B)
    found = _check([*EVERYTHING, wrong, created, _change(topic_id=B)])
    assert [each.offset for each in found] == [len(EVERYTHING)]


@pytest.mark.parametrize("seed", range(40))
def test_invented_histories_are_free_of_contradictions(seed: int) -> None:
    """What Kafka's image takes must not be reported, at any level and with any type of record."""
    history, image = History(seed), MetadataImage()
    for _ in range(15):
        image.replay(raw_batch(history.batch(), image.next_offset))
    assert image.contradiction is None
