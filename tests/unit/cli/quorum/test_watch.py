"""`kraftwire quorum watch`: what each sample shows, and what has changed since the last one."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from kraftwire.cli.main import main
from kraftwire.cli.quorum.watch import Sample, changes, quorum_line, quorum_view
from kraftwire.client import Endpoint, LogInfo, QuorumInfo, ReplicaInfo
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse, ReplicaState
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
    SnapshotId,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC_ID
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.nodes.fake_node import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    FETCH,
    FakeNode,
    controllers,
    quorum_state,
)

NOW_MS = 1_795_206_449_466
MOMENT = "2026-11-20T20:27:29Z"


def replica(id: int, end: int = 100, directory: str = "d") -> ReplicaInfo:
    """A replica whose directory id is derived from its id."""
    return ReplicaInfo(id, f"{directory}{id}", end, NOW_MS, NOW_MS)


def quorum(
    *voters: ReplicaInfo, observers: tuple[ReplicaInfo, ...] = (), leader: int = 1, epoch: int = 4,
    port: int = 9000,
) -> QuorumInfo:
    """A description of a quorum."""
    endpoints = {v.id: (Endpoint("C", "h", port + v.id),) for v in voters}
    return QuorumInfo(leader, epoch, 100, voters, observers, endpoints)


THREE = quorum(replica(1), replica(2), replica(3))
OLD_LOG = LogInfo(0, 100, None)
NEW_LOG = LogInfo(80, 100, OffsetAndEpoch(90, 4))


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        (THREE, THREE, []),
        (
            THREE,
            quorum(replica(1), replica(2), replica(3), leader=2, epoch=6),
            ["node 2 leads epoch 6, after 1 led epoch 4"],
        ),
        (
            THREE,
            quorum(replica(1), replica(2), replica(3), epoch=6),
            ["node 1 leads epoch 6 and led epoch 4"],
        ),
        (
            THREE,
            quorum(replica(1), replica(2), replica(4)),
            [
                "4 has become a voter: voters are 1, 2, 4",
                "3 is no longer a voter: voters are 1, 2, 4",
            ],
        ),
        (
            THREE,
            quorum(replica(1), replica(2), replica(3, directory="e")),
            ["voter 3 has a new directory: e3; it was d3"],
        ),
        (
            THREE,
            quorum(replica(1), replica(2), replica(3), port=9100),
            [f"voter {id} has moved to C://h:{9100 + id}" for id in (1, 2, 3)],
        ),
        (
            THREE,
            quorum(replica(1), replica(2), replica(3), observers=(replica(4, 7),)),
            ["4 has begun to fetch as an observer, at offset 7"],
        ),
        # A removed voter keeps fetching, and an added one fetched before.
        (
            quorum(replica(1), replica(2), observers=(replica(3),)),
            THREE,
            ["3 has become a voter: voters are 1, 2, 3"],
        ),
        (
            THREE,
            quorum(replica(1), replica(2), observers=(replica(3),)),
            ["3 is no longer a voter: voters are 1, 2"],
        ),
    ],
)
def test_what_is_new_of_leaders_and_voters(
    before: QuorumInfo, now: QuorumInfo, lines: list[str]
) -> None:
    """Each change in one line, and nothing while nothing changes."""
    assert changes((before, None), (now, None)) == lines


def test_what_is_new_of_snapshots() -> None:
    """Only for one leader: each node writes its own."""
    written = "leader 1 has written snapshot 90-4"
    dropped = "leader 1 has dropped its log before offset 80"
    assert changes((THREE, OLD_LOG), (THREE, NEW_LOG)) == [written, dropped]
    assert changes((THREE, NEW_LOG), (THREE, NEW_LOG)) == []
    other = quorum(replica(1), replica(2), replica(3), leader=2, epoch=5)
    assert changes((THREE, OLD_LOG), (other, NEW_LOG))[1:] == []


@pytest.mark.parametrize(
    ("was", "is_", "log", "is_loaded"),
    [
        (0, 95, NEW_LOG, True),
        (-1, 90, NEW_LOG, True),
        (79, 100, NEW_LOG, True),
        (80, 100, NEW_LOG, False),
        (0, 89, NEW_LOG, False),
        (0, 100, OLD_LOG, False),
        (5, 100, LogInfo(0, 100, OffsetAndEpoch(90, 4)), False),
    ],
)
def test_a_replica_that_could_not_read_the_records_has_loaded_the_snapshot(
    was: int, is_: int, log: LogInfo, is_loaded: bool
) -> None:
    """DescribeQuorum does not say so, but there is no other way past the start of the log."""
    before = quorum(replica(1), observers=(replica(4, was),))
    now = quorum(replica(1), observers=(replica(4, is_),))
    found = changes((before, log), (now, log))
    expected = f"4 was at offset {max(0, was)} and is past snapshot 90-4: it has loaded it"
    assert found == [expected] * is_loaded


@pytest.fixture
def controller() -> Iterator[FakeNode]:
    """A controller that leads its own quorum, which changes from sample to sample."""
    with FakeNode() as node:
        samples = [(10, [2]), (10, [2, 3]), (12, [2, 3])]

        def describe(_: object) -> DescribeQuorumResponse:
            end, ids = samples.pop(0) if len(samples) > 1 else samples[0]
            voters = [ReplicaState(replica_id=id, log_end_offset=end) for id in ids]
            return quorum_state(2, 3, voters=voters)

        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({2: node}, 2)
        node.answers[DESCRIBE_QUORUM] = describe
        yield node


def fetched(snapshot: tuple[int, int] | None, error: int = 0) -> FetchResponse:
    """A leader's answer to a Fetch at offset 0."""
    partition = PartitionData(error_code=error, high_watermark=10, log_start_offset=5)
    if snapshot is not None:
        partition.snapshot_id = SnapshotId(end_offset=snapshot[0], epoch=snapshot[1])
    topic = FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return FetchResponse(responses=[topic])


def watch(
    capsys: pytest.CaptureFixture[str], node: FakeNode, samples: int = 2
) -> list[str]:
    """The lines of some samples, without their times."""
    arguments = ["--interval", "0.1", "--bootstrap-controller", node.address]
    assert main(["quorum", "watch", "--count", str(samples), *arguments]) == 0
    return [line.partition("  ")[2] for line in capsys.readouterr().out.splitlines()]


def test_without_a_terminal_there_is_a_line_per_sample_and_per_change(
    capsys: pytest.CaptureFixture[str], controller: FakeNode
) -> None:
    """The output can then be written to a file."""
    first, change, second, third = watch(capsys, controller, 3)
    assert first == "leader 2 epoch 3 high watermark 10; lag: 2 leader 0"
    assert change == "3 has become a voter: voters are 2, 3"
    assert second.endswith("lag: 2 leader 0, 3 follower 0")
    assert third.endswith("lag: 2 leader 0, 3 follower 0")


def test_the_leaders_log_and_snapshot_are_requested(
    capsys: pytest.CaptureFixture[str], controller: FakeNode
) -> None:
    """By a Fetch that does not count, in the leader's epoch."""
    answers = [fetched(None), fetched((8, 3))]
    controller.answers[FETCH] = lambda _: answers.pop(0)
    lines = watch(capsys, controller)
    assert lines[0].endswith("; log from 5")
    assert lines[-2] == "leader 2 has written snapshot 8-3"
    assert lines[-1].endswith("; log from 5, snapshot 8-3")
    sent = next(each for each in controller.requests if isinstance(each, FetchRequest))
    partition = sent.topics[0].partitions[0]
    assert (partition.current_leader_epoch, partition.fetch_offset, sent.max_wait_ms) == (3, 0, 0)
    assert sent.replica_state is None or sent.replica_state.replica_id == -1


def test_a_leader_that_does_not_report_its_log_is_still_watched(
    capsys: pytest.CaptureFixture[str], controller: FakeNode
) -> None:
    """It may just have changed; what it reported before is not new when it reports it again."""
    answers = [
        fetched((8, 3)),
        fetched(None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        fetched((8, 3)),
    ]
    controller.answers[FETCH] = lambda _: answers.pop(0)
    first, change, second, third = watch(capsys, controller, 3)
    assert first.endswith("snapshot 8-3")
    assert "voter" in change
    assert "snapshot" not in second
    assert third.endswith("snapshot 8-3")


def test_a_look_that_fails_is_a_line_too() -> None:
    """People watch in order to see elections."""
    line = quorum_line(Sample(NOW_MS, problem="nobody leads"))
    assert line == f"{MOMENT}  no sample: nobody leads"


def test_the_view_has_the_table_the_problem_and_the_news() -> None:
    """On a terminal the last good sample stays, with the present problem."""
    stream = io.StringIO()
    view = quorum_view(
        Sample(NOW_MS, THREE, NEW_LOG), "nobody leads", [f"{MOMENT}  change"], now_ms=NOW_MS + 3000
    )
    Console(file=stream, width=120).print(view)
    head, columns, *rows, problem, last = stream.getvalue().splitlines()
    assert head == "leader 1   epoch 4   high watermark 100   log from 80, snapshot 90-4"
    assert columns.split()[:3] == ["node", "role", "log"]
    assert [row.split()[:2] for row in rows] == [
        ["1", "leader"],
        ["2", "follower"],
        ["3", "follower"],
    ]
    assert "3.0 s" in rows[0]
    assert problem == "no sample: nobody leads"
    assert last == f"{MOMENT}  change"
