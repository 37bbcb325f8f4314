"""What was added, removed and changed between two states."""

from __future__ import annotations

from copy import copy
from pathlib import Path

from kraftwire.inspect.metadata import change_line
from kraftwire.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.producer_ids_record import ProducerIdsRecord
from kraftwire.messages.register_broker_record import BrokerFeature, RegisterBrokerRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.story.metadata.differences import EntityChange, differences
from kraftwire.story.metadata.files import read_files
from kraftwire.story.metadata.rows import SUBJECTS, rows
from kraftwire.wire.message import Message
from tests.support.metadata.files import SOUND, TOPIC, write_segment


def changes(folder: Path, before: list[Message], after: list[Message]) -> list[EntityChange]:
    """The changes from the state of one log to that of another."""
    paths = [
        write_segment(folder / name / "__cluster_metadata-0", records)
        for name, records in (("a", before), ("b", after))
    ]
    first, second = (read_files([path]) for path in paths)
    return [
        change
        for subject in SUBJECTS
        for change in differences(rows(first, [subject]), rows(second, [subject]))
    ]


def test_lines_name_what_changed(tmp_path: Path) -> None:
    """Removed, changed and added, by subject."""
    leader = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=-1, isr=[])
    quota = ClientQuotaRecord(
        entity=[EntityData(entity_type="user", entity_name=None)], key="producer_byte_rate", value=9
    )
    found = changes(tmp_path, SOUND, [*SOUND, leader, quota])
    assert [change_line(each) for each in found] == [
        "~ partition orders-0: isr [3] -> [], leader 3 -> -1, leaderEpoch -1 -> 0, "
        "partitionEpoch -1 -> 0, directories [] -> [\"AAAAAAAAAAAAAAAAAAAAAA\"]",
        "+ quota user (default) producer_byte_rate",
    ]
    found = changes(tmp_path, SOUND, [*SOUND, RemoveTopicRecord(topic_id=TOPIC)])
    assert [each.kind for each in found] == ["removed", "removed"]
    assert found[0].to_json()["second"] is None


def test_the_same_state_at_other_offsets_is_equal(tmp_path: Path) -> None:
    """Offsets are not state."""
    assert not changes(tmp_path, SOUND, [SOUND[0], *SOUND])


def test_a_secret_that_changed_is_not_shown(tmp_path: Path) -> None:
    """Only that it changed, and in which field."""
    key = ConfigRecord(resource_type=4, resource_name="3", name="ssl.key.password", value="one-s")
    user = UserScramCredentialRecord(name="alice", mechanism=1, stored_key=b"old-key")
    other_key, other_user = copy(key), copy(user)
    other_key.value, other_user.stored_key = "two-s", b"new-key"
    found = changes(tmp_path, [*SOUND, key, user], [*SOUND, other_key, other_user])
    lines = [change_line(each) for each in found]
    assert lines == [
        "~ config broker 3 ssl.key.password: value (hidden)",
        "~ user alice SCRAM-SHA-256: storedKey (hidden)",
    ]
    texts = [*lines, *(str(each.to_json()) for each in found), repr(found)]
    assert not [text for text in texts if "one-s" in text or "two-s" in text]
    assert "b2xkLWtleQ" not in "".join(texts)


def test_the_order_of_features_is_no_difference(tmp_path: Path) -> None:
    """Nodes report them in any order; of endpoints and features only what differs is shown."""
    features = [
        BrokerFeature(name=name, min_supported_version=0, max_supported_version=1)
        for name in ("group.version", "share.version")
    ]

    def broker(listed: list[BrokerFeature]) -> list[Message]:
        return [SOUND[0], RegisterBrokerRecord(broker_id=3, broker_epoch=2, features=listed)]

    assert not changes(tmp_path, broker(features), broker(features[::-1]))
    (found,) = changes(tmp_path, broker(features), broker(features[:1]))
    assert "group.version" not in change_line(found)
    assert "share.version" in change_line(found)


def test_what_a_snapshot_leaves_out_is_no_difference(tmp_path: Path) -> None:
    """Kafka's snapshots do not say which broker got the last producer ids."""
    first = ProducerIdsRecord(broker_id=3, broker_epoch=2, next_producer_id=1000)
    second = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=1000)
    assert not changes(tmp_path, [*SOUND, first], [*SOUND, second])
    third = ProducerIdsRecord(broker_id=3, broker_epoch=2, next_producer_id=2000)
    (found,) = changes(tmp_path, [*SOUND, first], [*SOUND, third])
    assert change_line(found) == "~ producer ids: nextProducerId 1000 -> 2000"
