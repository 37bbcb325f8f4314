"""Control, metadata and coordinator records: which message is inside, and how it is encoded."""

from __future__ import annotations

import pytest

from kraftwire import messages
from kraftwire.errors import UsageError, WireError
from kraftwire.messages.end_txn_marker import EndTxnMarker
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftwire.messages.offset_commit_key import OffsetCommitKey
from kraftwire.messages.offset_commit_value import OffsetCommitValue
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.transaction_log_key import TransactionLogKey
from kraftwire.records.control import (
    ControlType,
    control_key,
    control_type,
    control_value,
    decode_control,
)
from kraftwire.records.messages import (
    FAMILIES,
    coordinator_key,
    coordinator_value,
    decode_coordinator,
    family_of_topic,
)
from kraftwire.records.metadata import REMOTE_LOG_RECORDS, decode_metadata, encode_metadata

LEADER = LeaderChangeMessage(version=0, leader_id=2, voters=[Voter(voter_id=1), Voter(voter_id=2)])
TOPIC = TopicRecord(name="t", topic_id=bytes(range(16)))


def test_control_types_have_kafkas_numbers() -> None:
    """The numbers are in every log."""
    assert [kind.name for kind in ControlType] == [
        "ABORT",
        "COMMIT",
        "LEADER_CHANGE",
        "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
    ]
    assert [kind.value for kind in ControlType] == list(range(7))


def test_a_control_record_round_trips() -> None:
    """Its message has the version as its first field."""
    key, value = control_key(ControlType.LEADER_CHANGE), control_value(LEADER)
    assert key == b"\x00\x00\x00\x02"
    decoded = decode_control(key, value)
    assert (decoded.type, decoded.version) == ("LeaderChangeMessage", 0)
    assert decoded.message == LEADER
    assert decoded.control_type == "LEADER_CHANGE"


def test_a_control_record_is_read_in_the_version_that_it_states() -> None:
    """Version 1 adds a directory id to each voter."""
    voters = [Voter(voter_id=1, voter_directory_id=bytes(16))]
    message = LeaderChangeMessage(version=1, leader_id=1, voters=voters)
    decoded = decode_control(control_key(ControlType.LEADER_CHANGE), control_value(message, 1))
    assert (decoded.version, decoded.message) == (1, message)


def test_the_end_of_a_transaction_tells_commit_from_abort() -> None:
    """Both have one schema; the key makes the difference."""
    for kind in (ControlType.COMMIT, ControlType.ABORT):
        value = control_value(EndTxnMarker(coordinator_epoch=8))
        assert value == b"\x00\x00\x00\x00\x00\x08"
        decoded = decode_control(control_key(kind), value)
        assert decoded.control_type == kind.name
        assert decoded.to_json() == {
            "type": "EndTxnMarker",
            "version": 0,
            "data": {"coordinatorEpoch": 8},
        }


def test_later_versions_of_markers_and_keys_are_read_as_ours() -> None:
    """As Java does, so that an old reader survives a new writer."""
    decoded = decode_control(b"\x00\x09\x00\x01", b"\x00\x07\x00\x00\x00\x08")
    assert decoded.version == 0
    assert decoded.message == EndTxnMarker(coordinator_epoch=8)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (None, b"", "key is too short"),
        (b"\x00\x00\x00", b"", "key is too short"),
        (b"\xff\xff\x00\x01", b"", "negative version"),
        (b"\x00\x00\x00\x07", b"", "unknown type"),
        (b"\x00\x00\xff\xff", b"", "unknown type"),
        (b"\x00\x00\x00\x02", None, "value is too short"),
        (b"\x00\x00\x00\x02", b"\x00", "value is too short"),
        (b"\x00\x00\x00\x02", b"\x00\x02", "unknown version"),
        (b"\x00\x00\x00\x01", b"\xff\xff\x00\x00\x00\x08", "unknown version"),
        (b"\x00\x00\x00\x05", b"\x00\x00\x00", "need"),
        (b"\x00\x00\x00\x04", b"\x00\x00\x00\x00", "bytes are left after"),
    ],
)
def test_control_records_that_cannot_be_read_say_why(
    key: bytes | None, value: bytes | None, problem: str
) -> None:
    """An unknown type is not the same as damage, and both are errors of bytes."""
    with pytest.raises(WireError, match=problem):
        decode_control(key, value)


def test_only_control_messages_become_control_values() -> None:
    """This works only in the version that they state themselves."""
    with pytest.raises(UsageError):
        control_value(TOPIC)
    with pytest.raises(UsageError):
        control_value(KRaftVersionRecord(version=1))
    assert control_type(control_key(ControlType.ABORT)) is ControlType.ABORT


def test_a_metadata_record_round_trips() -> None:
    """Frame version, type and version precede it, one byte each."""
    value = encode_metadata(TOPIC, 0)
    assert value[:3] == b"\x01\x02\x00"
    decoded = decode_metadata(value)
    assert decoded.message == TOPIC
    assert decoded.to_json() == {
        "type": "TopicRecord",
        "version": 0,
        "data": {"name": "t", "topicId": "AAECAwQFBgcICQoLDA0ODw"},
    }


def test_every_metadata_record_is_found_by_its_type() -> None:
    """The table of types is complete and each class knows its own."""
    for types in (messages.METADATA_RECORDS, REMOTE_LOG_RECORDS):
        for number, name in types.items():
            cls = messages.find(name)
            assert number == cls.API_KEY
            version = cls.VERSIONS.high
            decoded = decode_metadata(encode_metadata(cls(), version), types)
            assert (decoded.type, decoded.version, decoded.message) == (name, version, cls())


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "has no value"),
        (b"", "ends inside a varint"),
        (b"\x00\x02\x00", "unknown frame version"),
        (b"\x02\x02\x00", "unknown frame version"),
        (b"\x01\x80", "ends inside a varint"),
        (b"\x01\x7f\x00", "unknown type"),
        (b"\x01\x02\x09", "unknown version"),
        (b"\x01\x02\x00\x02", "need"),
        (encode_metadata(TOPIC, 0) + b"!", "bytes are left after"),
    ],
)
def test_metadata_records_that_cannot_be_read_say_why(value: bytes | None, problem: str) -> None:
    """A controller stops at such a record; a tool continues with the next."""
    # Also where the frame has been read before.
    assert decode_metadata(encode_metadata(TOPIC, 0)).message == TOPIC
    with pytest.raises(WireError, match=problem):
        decode_metadata(value)


def test_a_metadata_record_of_too_many_values_is_refused() -> None:
    """Each byte would take the memory of an object, whether or not its frame was read before."""
    few = PartitionRecord(replicas=[1])
    assert decode_metadata(encode_metadata(few, 0)).message == few
    many = PartitionRecord(replicas=[*range(1_000_000, 1_300_000)])
    with pytest.raises(WireError, match="far more memory"):
        decode_metadata(encode_metadata(many, 0))


def test_a_coordinator_record_round_trips() -> None:
    """The type precedes the key, the version precedes the value."""
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=99, metadata="", commit_timestamp=5)
    raw_key, raw_value = coordinator_key(key), coordinator_value(value, 3)
    assert (raw_key[:2], raw_value[:2]) == (b"\x00\x01", b"\x00\x03")
    decoded = decode_coordinator("group", raw_key, raw_value)
    assert (decoded.key, decoded.message, decoded.version) == (key, value, 3)
    json = decoded.to_json()
    assert (json["type"], json["version"]) == ("OffsetCommit", 3)
    assert json["data"]["key"] == {"group": "g", "topic": "t", "partition": 3}
    assert json["data"]["value"]["offset"] == 99


def test_a_tombstone_has_a_key_only() -> None:
    """It says that the coordinator forgot what the key names."""
    key = coordinator_key(TransactionLogKey(transactional_id="tx"))
    assert decode_coordinator("transaction", key, None).to_json() == {
        "type": "TransactionLog",
        "version": None,
        "data": {"key": {"transactionalId": "tx"}, "value": None},
    }


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (None, b"", "too short"),
        (b"\x00", b"", "too short"),
        (b"\x00\x63", b"", "unknown type"),
        (b"\x00\x02\x00\x01g", b"\x00", "too short"),
        (b"\x00\x02\x00\x01g", b"\x00\x63", "unknown version"),
        (b"\x00\x02\x00\x01g", b"\x00\x00", "need"),
        (b"\x00\x02\x00\x01g!", None, "bytes are left after"),
    ],
)
def test_coordinator_records_that_cannot_be_read_say_why(
    key: bytes | None, value: bytes | None, problem: str
) -> None:
    """A later broker may have written them."""
    with pytest.raises(WireError, match=problem):
        decode_coordinator("group", key, value)


def test_the_topic_tells_the_family() -> None:
    """No other topic is taken for one of Kafka's own."""
    assert family_of_topic("__consumer_offsets") == "group"
    assert family_of_topic("consumer_offsets") is None
    assert set(FAMILIES.values()) == {"metadata", "remote-log", *messages.COORDINATOR_RECORDS}
