"""Why partitions have no leader, and which log directories are offline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message
from tests.support.metadata.files import SOUND, write_segment

_NEW = bytes([7]) * 16


def _directory(broker: int, number: int = 1) -> bytes:
    return bytes([broker, number]) * 8


def _broker(id: int, *numbers: int) -> list[Message]:
    """A broker that is registered with some log directories, and unfenced."""
    return [
        RegisterBrokerRecord(
            broker_id=id, broker_epoch=id, log_dirs=[_directory(id, each) for each in numbers]
        ),
        BrokerRegistrationChangeRecord(broker_id=id, broker_epoch=id, fenced=-1),
    ]


def _partition(index: int, replicas: list[int], isr: list[int], **more: object) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index, topic_id=_NEW, replicas=replicas, isr=isr, leader=-1,
        directories=[_directory(each) for each in replicas], **more,  # type: ignore[arg-type]
    )  # fmt: skip


def _shown(folder: Path, records: list[Message]) -> Path:
    write_segment(folder / "__cluster_metadata-0", [SOUND[0], *records])
    return folder


RECORDS: list[Message] = [
    *_broker(1, 1, 2), *_broker(2, 1), *_broker(3, 1), *_broker(4, 1), *_broker(5, 2),
    BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1),
    UnregisterBrokerRecord(broker_id=3, broker_epoch=3),
    BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=4, in_controlled_shutdown=1),
    TopicRecord(name="t", topic_id=_NEW),
    _partition(0, [1, 2, 3], [2, 3]),
    _partition(1, [4, 5, 1], [4, 5]),
    _partition(2, [1, 2, 5], [], eligible_leader_replicas=[2], last_known_elr=[5]),
    _partition(3, [1, 2], []),
    _partition(4, [1], [1]),
    PartitionChangeRecord(partition_id=4, topic_id=_NEW, leader=1),
]  # fmt: skip


def test_a_partition_without_a_leader_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each replica, and what it lacks; one that leads says nothing."""
    folder = _shown(tmp_path, RECORDS)
    assert cli.main(["metadata", "show", str(folder), "topics", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    why = [row.get("noLeader") for row in found if row.get("type") == "PartitionRecord"]
    assert why == [
        "in sync: 2 (fenced), 3 (not registered); not in sync: 1 (active)",
        "in sync: 4 (shutting down), 5 (log directory offline); not in sync: 1 (active)",
        "eligible: 2 (fenced); last known to be eligible: 5 (log directory offline); "
        "not in sync: 1 (active)",
        "no replica is in sync; not in sync: 1 (active), 2 (fenced)",
        None,
    ]
    assert cli.main(["metadata", "show", str(folder), "topics"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Partitions without a leader partition why" in text
    assert "t-0 in sync: 2 (fenced), 3 (not registered); not in sync: 1 (active)" in text
    assert "t-4 in sync" not in text


def test_directories_that_are_not_registered_are_offline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker registers those that are online; what partitions name besides is not. Nothing is
    said of a broker that is gone, nor of reserved ids."""
    folder = _shown(tmp_path, RECORDS)
    assert cli.main(["metadata", "show", str(folder), "brokers", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()][1:]
    offline = {row["data"]["brokerId"]: row["offlineLogDirs"] for row in found}
    assert offline == {1: [], 2: [], 4: [], 5: [uuid_to_text(_directory(5))]}
    assert cli.main(["metadata", "show", str(folder), "brokers"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["5", uuid_to_text(_directory(5, 2)), "online"] in lines
    assert ["5", uuid_to_text(_directory(5)), "offline"] in lines


def test_a_cluster_whose_leaders_all_lead_has_no_such_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor a directory that is offline."""
    write_segment(tmp_path / "__cluster_metadata-0", SOUND)
    assert cli.main(["metadata", "show", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "without a leader" not in out
    assert "offline" not in out
