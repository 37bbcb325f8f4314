"""Rules about leaders, elections and high watermarks: what they report, and what they accept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.stages.finding import find
from tests.spark.stages.tables import SECOND, START


def fetch(seconds: float, epoch: int, leader: int, **more: Any) -> dict[str, Any]:
    """An answer of a leader to a Fetch of replica 3."""
    return {
        "time_ns": START + int(seconds * SECOND), "cluster": "c", "replica_id": 3,
        "leader_id": leader, "leader_epoch": epoch, "source": "fetch",
        "position": int(seconds * 100), **more,
    }


def event(seconds: float, kind: str, epoch: int, node: str, **more: Any) -> dict[str, Any]:
    """A line of the timeline."""
    return {
        "time_ns": START + int(seconds * SECOND), "cluster": "c", "kind": kind, "epoch": epoch,
        "node": node, "text": "does something", "details": "{}",
        "position": int(seconds * 100), **more,
    }


def test_two_leaders_of_one_epoch(spark: SparkSession) -> None:
    """Answers of two nodes as leaders of epoch 5; the evidence is where the second one shows."""
    [row] = find(
        spark, "two-leaders", quorum_observations=[fetch(1, 5, 1), fetch(2, 5, 2), fetch(3, 5, 1)]
    )
    assert (row["severity"], row["epoch"], row["position"]) == ("error", 5, 200)
    assert row["detail"] == "epoch 5 has two leaders: 1 and 2"
    assert row["cluster"] == "c"


def test_one_leader_after_the_other_is_right(spark: SparkSession) -> None:
    """Two epochs, and two clusters that both have an epoch 5."""
    other = {**fetch(2, 5, 2), "cluster": "d"}
    assert not find(
        spark, "two-leaders",
        quorum_observations=[fetch(1, 5, 1), fetch(2, 6, 2), other],
        raft_timeline=[event(0, "leader", 5, "1"), event(2, "leader", 6, "2")],
    )


def test_a_leader_that_continues_in_its_old_epoch(spark: SparkSession) -> None:
    """It answers after a newer epoch has answered for more than a second."""
    [row] = find(
        spark, "zombie-leader",
        quorum_observations=[fetch(1, 5, 1), fetch(2, 6, 2), fetch(4, 5, 1), fetch(5, 5, 1)],
    )
    assert (row["severity"], row["node"], row["epoch"], row["position"]) == ("error", "1", 5, 400)
    assert "answered 2 times as leader of epoch 5 although epoch 6" in row["detail"]


def test_a_late_answer_is_not_a_zombie(spark: SparkSession) -> None:
    """An answer that was in flight, and two clusters with their own epochs."""
    other = {**fetch(9, 3, 1), "cluster": "d"}
    assert not find(
        spark, "zombie-leader",
        quorum_observations=[fetch(1, 5, 1), fetch(2, 6, 2), fetch(2.9, 5, 1), other],
    )


def test_a_leader_that_is_told_of_a_newer_epoch(spark: SparkSession) -> None:
    """It returns after a kill or a halt and is refused, as it should be: a note."""
    timeline = [event(1, "fenced", 5, "1")]
    [row] = find(spark, "fenced-leader", raft_timeline=timeline)
    assert not find(spark, "zombie-leader", raft_timeline=timeline)
    assert (row["severity"], row["node"]) == ("info", "1")
    assert row["detail"] == "node 1 does something"


@pytest.mark.parametrize(("was_leader", "count"), [(True, 1), (False, 0)])
def test_only_the_silence_of_a_leader_counts(
    spark: SparkSession, *, was_leader: bool, count: int
) -> None:
    """Followers may stop at any time."""
    details = json.dumps({"seconds": 8.5, "wasLeader": was_leader})
    rows = find(
        spark, "silent-leader", raft_timeline=[event(1, "silence", 5, "1", details=details)]
    )
    assert len(rows) == count
    for row in rows:
        assert (row["end_time"] - row["time"]).total_seconds() == 8.5


def test_an_election_storm(spark: SparkSession) -> None:
    """Epochs climb without a pause of ten seconds, and hardly one gets a leader."""
    votes = [event(at, "vote", 5 + at, str(1 + at % 2)) for at in range(5)]
    # The same epoch in another cluster has a leader.
    other = event(0, "leader", 6, "1", cluster="d")
    timeline = [*votes, event(4.1, "leader", 9, "1"), other]
    [row] = find(spark, "election-storm", raft_timeline=timeline)
    assert (row["node"], row["epoch"], row["position"]) == ("1, 2", 9, 0)
    assert row["severity"] == "error"
    assert row["detail"] == (
        "votes for epochs 5 to 9 within 4.0 s, asked for by 1, 2: "
        "1 epochs with a leader, 4 without"
    )


def test_leaders_that_replace_each_other(spark: SparkSession) -> None:
    """Each one is elected, but none stays."""
    timeline = [event(at * 5, "vote", 5 + at, "1") for at in range(6)]
    timeline += [event(at * 5 + 0.1, "leader", 5 + at, "1") for at in range(6)]
    [row] = find(spark, "election-storm", raft_timeline=timeline)
    assert (row["severity"], row["epoch"]) == ("warning", 10)
    assert "6 epochs with a leader, 0 without" in row["detail"]


@pytest.mark.parametrize("times", [(0, 1, 2), (0, 1, 20, 21, 22)])
def test_votes_that_are_split(spark: SparkSession, times: tuple[int, ...]) -> None:
    """Three rounds without a leader, or five with a pause between them."""
    votes = [event(at, "vote", 5 + at, "1") for at in times]
    assert not find(spark, "election-storm", raft_timeline=votes)


def test_failovers_are_not_a_storm(spark: SparkSession) -> None:
    """Leaders are killed, restarted, hand over: each time another one is elected at once."""
    timeline = [event(at * 8, "vote", 5 + at, str(1 + at % 3)) for at in range(5)]
    timeline += [event(at * 8 + 0.1, "leader", 5 + at, str(1 + at % 3)) for at in range(5)]
    assert not find(spark, "election-storm", raft_timeline=timeline)


def _pre_vote(seconds: float, *answers: tuple[bool | None, str | None]) -> dict[str, Any]:
    told = [
        {"voter": voter, "granted": granted, "error": error}
        for voter, (granted, error) in enumerate(answers, 1)
    ]
    return event(seconds, "pre-vote", 5, "4", details=json.dumps({"answers": told}))


def test_refused_pre_votes(spark: SparkSession) -> None:
    """Once is a note; three times in a row mean a node that cannot reach the leader."""
    refused = [_pre_vote(at, (False, "NONE"), (None, None)) for at in (0, 1, 2, 60)]
    many, once = find(spark, "refused-pre-votes", raft_timeline=refused)
    assert (many["severity"], once["severity"]) == ("warning", "info")
    assert many["detail"].startswith("3 times in a row: node 4")
    assert once["end_time"] is None


def test_a_pre_vote_that_comes_a_moment_too_late(spark: SparkSession) -> None:
    """Another node has just been elected; three failures in a row are reported even then."""
    once = [_pre_vote(0, (False, "FENCED_LEADER_EPOCH")), event(1, "leader", 6, "2")]
    assert not find(spark, "refused-pre-votes", raft_timeline=once)
    elsewhere = [once[0], event(1, "leader", 6, "2", cluster="d"), event(12, "leader", 7, "2")]
    assert len(find(spark, "refused-pre-votes", raft_timeline=elsewhere)) == 1
    often = [_pre_vote(at, (False, "NONE")) for at in (0, 1, 2)] + once[1:]
    assert len(find(spark, "refused-pre-votes", raft_timeline=often)) == 1


def test_pre_votes_that_are_granted_or_not_answered(spark: SparkSession) -> None:
    """One vote is enough not to be refused; silence is not a refusal."""
    rows = [_pre_vote(0, (False, "NONE"), (True, "NONE")), _pre_vote(5, (None, None))]
    assert not find(spark, "refused-pre-votes", raft_timeline=rows)


def _fetched(seconds: float, high_watermark: int, **more: Any) -> dict[str, Any]:
    return {
        "time_ns": START + int(seconds * SECOND), "kind": "fetch", "topic": "t", "partition": 0,
        "server": "s:1", "leader_epoch": 1, "high_watermark": high_watermark,
        "position": int(seconds * 100), **more,
    }


def test_a_high_watermark_goes_back(spark: SparkSession) -> None:
    """From a client's partition and from the metadata log."""
    rows = find(
        spark, "high-watermark-back",
        partition_traffic=[_fetched(0, 10), _fetched(2, 12), _fetched(4, 11), _fetched(5, 13)],
        quorum_observations=[fetch(0, 1, 1, high_watermark=9), fetch(9, 1, 1, high_watermark=7)],
    )
    assert [row["detail"] for row in rows] == [
        "high watermark of t-0 goes back from 12 to 11",
        "high watermark of __cluster_metadata-0 goes back from 9 to 7",
    ]
    assert [row["position"] for row in rows] == [400, 900]


def test_high_watermarks_that_may_differ(spark: SparkSession) -> None:
    """Of two servers, two epochs and two partitions; answers that overtake each other, or that
    waited for as long as the difference.
    """
    waited = {"file": "x.pcap", "position": 5000, "time_ns": START, "latency_ns": 4 * SECOND}
    assert not find(
        spark, "high-watermark-back",
        partition_traffic=[
            _fetched(0, 10), _fetched(2, 12), _fetched(2.5, 11),
            _fetched(4, 9, server="s:2"), _fetched(4, 9, leader_epoch=2),
            _fetched(4, 9, partition=1), _fetched(4, 9, error_code=6),
            _fetched(4, 9, topic_id="of the same name, created again"),
            # Asked at 50 and answered at 54, after the answer at 52 to another request.
            _fetched(50, 20), _fetched(52, 19, position=1), _fetched(49.9, 14),
        ],
        exchanges=[waited],
    )
