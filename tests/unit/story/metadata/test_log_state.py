"""Which records count: from 0 or a snapshot, across gaps, up to an offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import UsageError
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.end_transaction_record import EndTransactionRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.records.reader import read_batches
from kraftwire.story.metadata.files import read_files
from kraftwire.story.metadata.log_state import LogState
from kraftwire.story.metadata.rows import SUBJECTS, rows
from kraftwire.wire.message import Message
from tests.support.metadata.files import SOUND, TOPIC, batch_of, write_segment, write_snapshot

CHANGES: list[Message] = [
    PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=-1, isr=[]),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1000"),
    RemoveTopicRecord(topic_id=TOPIC),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the files of the log are."""
    return tmp_path / "__cluster_metadata-0"


def offsets(state: LogState) -> dict[str, int]:
    """The offset of each entity by its name; negative where it is only a bound."""
    return {row.name: row.offset if row.is_exact else -row.offset for row in rows(state, SUBJECTS)}


def test_every_entity_has_the_offset_of_its_last_change(folder: Path) -> None:
    """A partition that was changed, not the topic; a new setting."""
    write_segment(folder, [*SOUND, *CHANGES[:2]])
    assert offsets(read_files([folder])) == {
        "feature metadata.version": 0,
        "broker 3": 1,
        "topic orders": 2,
        "partition orders-0": 4,
        "config topic orders retention.ms": 5,
    }


def test_the_state_as_it_was(folder: Path) -> None:
    """After each offset exactly the records up to it count, also within one batch."""
    folder.mkdir()
    path = folder / f"{0:020}.log"
    path.write_bytes(batch_of([*SOUND, *CHANGES], 0))
    for at, leader in ((3, 3), (4, -1), (5, -1)):
        state = read_files([folder], at)
        assert state.offset == at
        (partition,) = state.image.topics.partitions(TOPIC).values()
        assert partition.leader == leader
    assert not read_files([folder], 6).image.topics.names
    assert not read_files([folder], 1).image.topics.names


def test_an_offset_after_the_end_is_refused(folder: Path) -> None:
    """Showing the end instead would be a wrong answer."""
    write_segment(folder, SOUND)
    with pytest.raises(UsageError, match="no offset 4: the log ends at offset 4"):
        read_files([folder], 4)


def test_the_longest_history_is_read(folder: Path) -> None:
    """With the log from 0 on, a snapshot in the middle takes no offsets away."""
    write_segment(folder, [*SOUND, *CHANGES])
    write_snapshot(folder, SOUND, 4)
    state = read_files([folder])
    assert state.snapshot is None
    assert offsets(state) == {"feature metadata.version": 0, "broker 3": 1}


def test_after_a_snapshot_offsets_are_bounds(folder: Path) -> None:
    """What a snapshot has may have changed at any time before it."""
    write_snapshot(folder, SOUND, 100)
    write_segment(folder, CHANGES[:1], 100)
    state = read_files([folder])
    assert state.is_complete
    assert state.snapshot == (100, 1)
    found = offsets(state)
    assert found["topic orders"] == -99
    assert found["partition orders-0"] == 100


def test_a_snapshot_alone_is_a_state(folder: Path) -> None:
    """Such as one that was copied from a node."""
    path = write_snapshot(folder, SOUND, 100)
    assert read_files([path]).offset == 99
    assert read_files([path], 99).is_complete
    with pytest.raises(UsageError, match="nothing is known of the state after offset 98"):
        read_files([path], 98)


def test_a_snapshot_that_is_cut_off_is_a_problem(folder: Path) -> None:
    """Its entities are shown, but others may be missing."""
    path = write_snapshot(folder, SOUND, 100)
    whole = path.read_bytes()
    last = list(read_batches(whole))[-1]
    path.write_bytes(whole[: last.position])
    state = read_files([folder])
    assert state.problems == ["the snapshot at 100 has no end"]
    assert "topic orders" in offsets(state)


def test_a_formatted_directory_is_shown(folder: Path) -> None:
    """Its bootstrap snapshot counts where there is no log yet, and only there."""
    write_snapshot(folder, SOUND[:1], 0, epoch=0)
    state = read_files([folder])
    assert (state.offset, state.is_complete) == (-1, True)
    assert "feature metadata.version" in offsets(state)
    write_segment(folder, SOUND[1:2])
    assert offsets(read_files([folder])) == {"broker 3": 0}


def test_a_log_without_its_beginning_says_so(folder: Path) -> None:
    """What the records themselves say is shown, and changes of unknown entities are counted."""
    write_segment(folder, [CHANGES[0], SOUND[1]], 100)
    state = read_files([folder])
    assert state.missing == [(0, 99)]
    assert not state.is_complete
    assert state.image.problem_count == 1
    assert offsets(state) == {"broker 3": 101}


def test_a_snapshot_closes_a_gap(folder: Path) -> None:
    """The state before the gap does not count any more, as it may have ended inside."""
    write_segment(folder, SOUND)
    write_segment(folder, CHANGES[1:2], 50)
    assert read_files([folder]).missing == [(4, 49)]
    write_snapshot(folder, SOUND[:2], 50)
    state = read_files([folder])
    assert state.is_complete
    assert offsets(state) == {
        "feature metadata.version": -49,
        "broker 3": -49,
        "config topic orders retention.ms": 50,
    }
    before = read_files([folder], 20)
    assert (before.offset, before.missing) == (3, [(4, 20)])


def test_records_of_an_open_transaction_do_not_count(folder: Path) -> None:
    """As of a controller that was killed while it wrote them (KIP-866)."""
    records = [*SOUND[:2], BeginTransactionRecord(name="t"), *SOUND[2:], EndTransactionRecord()]
    write_segment(folder, records)
    state = read_files([folder], 4)
    assert state.image.transaction_offset == 2
    assert "topic orders" not in offsets(state)
    assert offsets(read_files([folder]))["topic orders"] == 3


def test_files_of_other_logs_are_refused(folder: Path, tmp_path: Path) -> None:
    """One log at a time, and only logs of metadata."""
    write_segment(folder, SOUND)
    write_segment(tmp_path / "copy" / "__cluster_metadata-0", SOUND)
    with pytest.raises(UsageError, match="these are several logs"):
        read_files([tmp_path])
    write_segment(tmp_path / "node" / "orders-0", SOUND)
    with pytest.raises(UsageError, match="there is no metadata log"):
        read_files([tmp_path / "node"])
    (tmp_path / "quorum-state").write_text("{}")
    with pytest.raises(UsageError, match="neither a segment nor a snapshot"):
        read_files([tmp_path / "quorum-state"])


def test_damage_is_a_problem(folder: Path) -> None:
    """The records after it still count."""
    path = write_segment(folder, SOUND)
    data = bytearray(path.read_bytes())
    data[70] ^= 0xFF
    path.write_bytes(data)
    state = read_files([folder])
    assert state.problems
    assert not state.is_complete
