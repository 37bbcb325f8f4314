"""A wall clock that is set: timestamps follow it but never go back in a log; timers ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftwire.log.settings import SnapshotSettings
from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.raft.state import CLOCK_LEAD_MAX_MS
from kraftwire.records.batch import RecordBatch
from kraftwire.records.plain import data_batch
from kraftwire.records.reader import read_batches
from kraftwire.replica import SnapshotReader
from kraftwire.sim.disk import SimFiles
from tests.support.raft.lone import Lone
from tests.support.raft.messages import fetched
from tests.support.raft.replica import WALL_MS, LoneReplica

_HOUR_MS = 3_600_000


class _Idle:
    def apply(self, batches: Sequence[RecordBatch]) -> None:
        """Nothing."""

    def load(self, snapshot: SnapshotReader) -> None:
        """Nothing."""

    def freeze(self) -> Iterable[bytes]:
        return ()

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        """Nothing."""


def _replica(files: SimFiles, wall_ms: int = WALL_MS) -> LoneReplica:
    return LoneReplica(files, _Idle(), SnapshotSettings(), wall_ms=wall_ms)


def _timestamps(replica: LoneReplica) -> list[int]:
    log = replica.storage.log
    data = log.read(0, 1 << 20, log.end_offset)
    return [b.max_timestamp - WALL_MS for b in read_batches(data) if isinstance(b, RecordBatch)]


def test_timestamps_follow_a_clock_that_is_set_forward_at_once() -> None:
    """Correcting a clock must not require a restart of the controller."""
    replica = _replica(SimFiles())
    replica.wall_ms += _HOUR_MS
    replica.append(b"a")
    first, second = _timestamps(replica)
    assert first == 0
    assert _HOUR_MS <= second < _HOUR_MS + 1000


def test_timestamps_stand_still_while_a_clock_that_was_set_back_catches_up() -> None:
    """Readers that search a log by time rely on their order."""
    replica = _replica(SimFiles())
    replica.wait(10_000)
    replica.append(b"a")
    replica.wall_ms -= 5_000
    replica.append(b"b")
    replica.wait(10_000)
    replica.append(b"c")
    found = _timestamps(replica)
    assert found == sorted(found)
    assert found[1] == found[2] < found[3]


def test_timestamps_do_not_go_back_over_a_restart() -> None:
    """The clock may have been set while the process was down."""
    files = SimFiles()
    replica = _replica(files)
    replica.wait(60_000)
    replica.append(b"a")
    replica.storage.close()
    replica = _replica(files)
    replica.append(b"b")
    found = _timestamps(replica)
    assert found == sorted(found)
    assert found[1] == found[2] == found[3]


def test_a_timer_does_not_notice_that_the_clock_is_set() -> None:
    """Otherwise, after a step of an hour back, a leader would hold its records for an hour."""
    replica = _replica(SimFiles())
    for step in (-_HOUR_MS, 2 * _HOUR_MS):
        replica.wall_ms += step
        end = replica.core.end_offset
        replica.append(b"a")
        assert replica.core.high_watermark == end + 1


def test_describe_quorum_has_the_times_of_the_wall_clock() -> None:
    """KIP-836: tools subtract them from their own clock."""
    replica = _replica(SimFiles())
    replica.wait(5_000)
    replica.wall_ms -= _HOUR_MS
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData()])
    answer = replica.ask(DescribeQuorumRequest(topics=[topic]), 2)
    assert isinstance(answer, DescribeQuorumResponse)
    (voter,) = answer.topics[0].partitions[0].current_voters
    assert voter.last_caught_up_timestamp == voter.last_fetch_timestamp == replica.wall_ms


def _led_after(timestamp: int) -> tuple[int, int]:
    """The wall clock, and the time of the first batch of a leader that fetched this timestamp."""
    node = Lone(1)
    node.follow(2, 1)
    node.fetch_gets(fetched(2, 1, data_batch(0, 1, timestamp, [b"a"]), high_watermark=0))
    node.lead()
    (batch,) = read_batches(node.disk.batches[-1])
    assert isinstance(batch, RecordBatch)
    return node.now, batch.max_timestamp


def test_a_new_leader_does_not_write_older_records_than_the_one_before() -> None:
    """Clocks of different machines differ a little."""
    ahead = 1_000_000 + 60_000
    now, found = _led_after(ahead)
    assert now < found == ahead


def test_a_clock_that_was_far_ahead_is_not_followed() -> None:
    """All records of a year would have the same, wrong time."""
    now, found = _led_after(1_000_000 + CLOCK_LEAD_MAX_MS + 60_000)
    assert found == now
