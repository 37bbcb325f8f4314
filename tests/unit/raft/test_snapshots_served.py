"""FetchSnapshot at a leader: the checks in Kafka's order, and parts of every size."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest, TopicSnapshot
from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.snapshots import SNAPSHOT_CHUNK_BYTES_MAX
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from tests.support.raft.lone import Lone, follow_up, stored_log
from tests.support.raft.messages import fetch_snapshot

SNAPSHOT = OffsetAndEpoch(10, 1)


def leader() -> Lone:
    """Node 1 leads epoch 3; its log begins at a snapshot."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    lone.lead()
    return lone


def follower() -> Lone:
    """Node 1 follows node 2, and has the same snapshot."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    lone.follow(2, 3)
    return lone


def ask(lone: Lone, **fields: Any) -> tuple[Any, effects.SendReply]:
    """Fetch a part in the present epoch; returns the answer and the effect that it came in."""
    epoch = lone.core.epoch + fields.pop("ahead", 0)
    chosen = {"replica": 2, "snapshot": SNAPSHOT, **fields}
    message = fetch_snapshot(chosen.pop("replica"), chosen.pop("snapshot"), epoch, **chosen)
    lone.request(message)
    reply = lone.all_of(effects.SendReply)[-1]
    return reply.message, reply


def error_of(answer: Any) -> int:
    """The error, at whichever level it is."""
    if answer.error_code or not answer.topics:
        return int(answer.error_code)
    return int(answer.topics[0].partitions[0].error_code)


_FAULTS: dict[str, tuple[int, dict[str, Any]]] = {
    "cluster": (104, {"cluster_id": "foreign"}),
    "topic": (3, {"topic": "other"}),
    "older epoch": (74, {"ahead": -1}),
    "newer epoch": (75, {"ahead": 1}),
    "own id": (42, {"replica": 1}),
    "bootstrap": (98, {"snapshot": BOOTSTRAP_SNAPSHOT}),
    "unknown": (98, {"snapshot": OffsetAndEpoch(10, 2)}),
    "negative": (99, {"position": -1}),
    "beyond": (99, {"position": 1 << 40}),
}
_ORDER = ["cluster", "topic", "older epoch", "newer epoch", "not the leader", "own id"]
_ORDER += ["bootstrap", "unknown", "negative", "beyond"]


@pytest.mark.parametrize(("state", "make"), [("not the leader", follower), ("", leader)])
def test_the_first_of_several_errors_is_reported(state: str, make: Callable[[], Lone]) -> None:
    """R-FSN-2: two faults at once, in every pair. Refusals carry empty records and their own
    code (R-FSN-3)."""
    codes = {"not the leader": 6, **{one: code for one, (code, _) in _FAULTS.items()}}
    for pair in itertools.combinations_with_replacement(_FAULTS, 2):
        fields: dict[str, Any] = {}
        for one in reversed(pair):
            fields |= _FAULTS[one][1]
        wanted = min((one for one in (*pair, state) if one), key=_ORDER.index)
        answer, reply = ask(make(), **fields)
        assert error_of(answer) == codes[wanted], pair
        assert reply.part is None
        answer.encode(1)


@pytest.mark.parametrize(
    "topics", [[], [TopicSnapshot(name="__cluster_metadata", partitions=[])], "twice"]
)
def test_anything_but_one_partition_is_invalid(topics: Any) -> None:
    """R-FSN-2: a Java leader ends on an empty list."""
    lone = leader()
    message = fetch_snapshot(2, SNAPSHOT, lone.core.epoch)
    message.topics = message.topics * 2 if topics == "twice" else topics
    answer = lone.request(message)
    assert (answer.error_code, lone.core.role) == (42, "leader")
    assert lone.request(FetchSnapshotRequest(cluster_id=None, topics=[])).error_code == 42


def test_a_part_names_what_it_is() -> None:
    """R-FSN-2: id, size, position and leader, whatever was requested before."""
    lone = leader()
    size = len(lone.disk.snapshots[SNAPSHOT])
    answer, reply = ask(lone, position=7, max_bytes=5)
    [partition] = answer.topics[0].partitions
    named = partition.snapshot_id
    assert OffsetAndEpoch(named.end_offset, named.epoch) == SNAPSHOT
    assert (partition.size, partition.position) == (size, 7)
    current = partition.current_leader
    assert (current.leader_id, current.leader_epoch) == (1, lone.core.epoch)
    assert [(at.node_id, at.host, at.port) for at in answer.node_endpoints] == [(1, "node1", 9001)]
    assert reply.part == effects.SnapshotSlice(SNAPSHOT, position=7, max_bytes=5)


def test_the_parts_are_the_whole_file() -> None:
    """Parts of one byte each, as sent on the wire."""
    lone = leader()
    data, found = lone.disk.snapshots[SNAPSHOT], b""
    for position in range(len(data)):
        answer, reply = ask(lone, position=position, max_bytes=1)
        assert reply.part is not None
        reply.part.put(answer, lone.disk.read(reply.part))
        again, _ = type(answer).decode(answer.encode(1), 1)
        found += bytes(again.topics[0].partitions[0].unaligned_records)
    assert found == data


@pytest.mark.parametrize(("asked", "served"), [(1 << 31, SNAPSHOT_CHUNK_BYTES_MAX), (-5, 0)])
def test_no_part_is_larger_than_the_limit(asked: int, served: int) -> None:
    """A peer chooses how much memory its answer takes, up to a bound."""
    _, reply = ask(leader(), max_bytes=min(asked, (1 << 31) - 1))
    assert reply.part == effects.SnapshotSlice(SNAPSHOT, 0, served)


def test_version_0_has_no_addresses() -> None:
    """They came with version 1."""
    lone = leader()
    answer = lone.request(fetch_snapshot(2, SNAPSHOT, lone.core.epoch), version=0)
    assert answer.node_endpoints == []


@pytest.mark.parametrize(
    ("fields", "stays"), [({}, True), ({"position": -1}, False), ({"replica": 9}, False)]
)
def test_only_parts_that_are_served_keep_the_leader(fields: dict[str, Any], stays: bool) -> None:
    """R-CQ-2: those of a voter, answered with data; a download takes longer than 1.5 timeouts."""
    lone = leader()
    follow_up(lone, 2, 3)
    for _ in range(8):
        lone.wait(500)
        if lone.core.role == "leader":
            ask(lone, **fields)
    assert (lone.core.role == "leader") is stays


def test_a_chunk_is_not_progress_of_the_log() -> None:
    """Nothing of a snapshot counts for the high watermark before the next fetch says so."""
    lone = leader()
    ask(lone)
    assert lone.core.high_watermark == -1


@pytest.mark.parametrize(("before_end", "error"), [(1, 0), (0, 99), (-1, 99)])
def test_a_position_at_the_end_is_out_of_range(before_end: int, error: int) -> None:
    """R-FSN-2: there is nothing to send there, and an empty part would be asked for again."""
    lone = leader()
    size = len(lone.disk.snapshots[SNAPSHOT])
    answer, reply = ask(lone, position=size - before_end)
    assert error_of(answer) == error
    assert (reply.part is None) is bool(error)


def test_asking_for_the_end_keeps_no_leader() -> None:
    """R-CQ-2: nothing was served."""
    lone = leader()
    size = len(lone.disk.snapshots[SNAPSHOT])
    follow_up(lone, 2, 3)
    for _ in range(8):
        lone.wait(500)
        if lone.core.role == "leader":
            ask(lone, position=size)
    assert lone.core.role == "resigned"
