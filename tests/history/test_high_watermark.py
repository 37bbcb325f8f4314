"""Bugs of the high watermark: records that counted as committed and were not, or the reverse."""

from __future__ import annotations

from dataclasses import replace

from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects, events
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.invariants import Violation
from kraftwire.wire.message import Message
from tests.history.putting_back import Edit, history
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import fetch, fetched

_BY_COUNTING = Edit(
    "kraftwire.raft.progress:LeaderProgress.high_watermark",
    "mark > current and mark > self._start_offset",
    "mark > current",
)


@history(26, "KAFKA-12619", "R-HW-2, S10", _BY_COUNTING, red="known before the leader's own")
def test_a_new_leader_reports_no_commit_before_its_own_first_record() -> None:
    """Clients would read a high watermark that the next leader revokes."""
    lone = Lone(election=ElectionState(3), log=stored_log((2, 5)))
    lone.lead()
    lone.request(fetch(2, 5, 2, lone.core.epoch))
    assert lone.core.high_watermark == -1, "known before the leader's own"
    lone.request(fetch(2, 6, lone.core.epoch, lone.core.epoch))
    assert lone.core.high_watermark == 6


@history(
    27,
    "KAFKA-10533",
    "R-FET-24, D2, S9",
    Edit(
        "kraftwire.raft.following:_may_fetch",
        "return not state.config.can_be_voter or log.flushed_offset >= log.end_offset",
        "return True",
    ),
    red="S9: 2 fetches at",
    fails_with=Violation,
)
def test_what_was_acknowledged_is_still_there_after_a_power_loss_of_all() -> None:
    """A follower's fetch acknowledges everything before its offset: it must not lose that again."""
    cluster = Cluster([1, 2, 3], seed=3)
    cluster.start(1, 2, 3)
    cluster.run(4000)
    [leader] = cluster.leaders()
    cluster.flush_delay_ms = 200
    cluster.append(leader, b"kept")
    end = cluster.core(leader).end_offset + 1
    cluster.run_until(lambda: cluster.core(leader).high_watermark >= end, 10_000)
    for one in (1, 2, 3):
        cluster.kill(one)
    holding = [one for one in (1, 2, 3) if cluster.disks[one].end >= end]
    assert len(holding) >= 2, "committed records are gone"


@history(
    28,
    "KAFKA-13141",
    "R-FET-12, S9",
    Edit(
        "kraftwire.raft.serving:_fetch_answer",
        "if position.kind is not PositionKind.VALID:",
        "_record_progress(state, role, replica, offset)\n"
        "if position.kind is not PositionKind.VALID:",
    ),
    red="counted a log that differs",
)
def test_a_follower_whose_log_differs_does_not_count() -> None:
    """Its records at these offsets are not the leader's."""
    lone = Lone(election=ElectionState(3), log=stored_log((2, 5)))
    lone.lead()
    lone.handle(events.AppendRequested(1, lone.core.epoch, [b"x"] * 4))
    lone.wait(100)
    answer = lone.request(fetch(2, 9, 3, lone.core.epoch))
    assert answer.responses[0].partitions[0].diverging_epoch.epoch == 2
    assert lone.core.high_watermark == -1, "counted a log that differs"


@history(
    29,
    "KAFKA-14704",
    "R-FET-17, R-FET-20, S7",
    Edit(
        "kraftwire.raft.following:_apply_fetched",
        "diverging, snapshot = data.diverging_epoch, data.snapshot_id",
        "diverging, snapshot = data.diverging_epoch, data.snapshot_id\n"
        "_follow_high_watermark(state, data.high_watermark)",
    ),
    red="took for committed what has to be cut",
)
def test_a_follower_cuts_its_log_before_it_believes_a_high_watermark() -> None:
    """Otherwise its state machine reads records that the leader does not have."""
    lone = Lone(log=stored_log((1, 5), (2, 5)), election=ElectionState(2))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, diverging=(1, 5), high_watermark=8))
    marks = [one.offset for one in lone.all_of(effects.HighWatermarkAdvanced)]
    assert max(marks, default=-1) <= 5, "took for committed what has to be cut"
    assert lone.core.end_offset == 5


@history(
    30,
    "KAFKA-9491",
    "R-FET-22, S8",
    Edit(
        "kraftwire.raft.following:_follow_high_watermark",
        "mark = min(offered, state.log.end_offset)",
        "mark = offered",
    ),
    red="was not told of what is committed",
)
def test_the_high_watermark_follows_a_log_that_was_cut_to_nothing() -> None:
    """It has to rise with the records that are fetched again, not before them."""
    theirs = stored_log((2, 3))
    lone = Lone(log=stored_log((1, 3)), election=ElectionState(2))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, diverging=(0, 0), high_watermark=3))
    assert lone.core.end_offset == 0
    lone.fetch_gets(fetched(2, 3, high_watermark=3))
    for batch in theirs:
        lone.fetch_gets(fetched(2, 3, batch, high_watermark=3))
    told = [one.offset for one in lone.all_of(effects.HighWatermarkAdvanced)]
    assert [mark for mark in told if mark > 0] == [1, 2, 3], "was not told of what is committed"


@history(
    32,
    "KAFKA-12181",
    "R-REP-2, S8",
    Edit(
        "kraftwire.raft.progress:LeaderProgress.record_fetch",
        "moved = state.end_offset != position",
        "assert state.end_offset <= position, 'the fetch offset fell'\n"
        "moved = state.end_offset != position",
    ),
    red="the fetch offset fell",
)
def test_a_follower_that_lost_its_disk_may_fetch_from_the_start() -> None:
    """One node with an empty disk must not stop the leader; nothing committed is undone."""
    lone = Lone()
    lone.lead()
    epoch = lone.core.epoch
    lone.request(fetch(2, 1, epoch, epoch))
    assert lone.core.high_watermark == 1
    answer = lone.request(fetch(2, 0, 0, epoch))
    assert answer.responses[0].partitions[0].error_code == 0
    assert (lone.core.role, lone.core.high_watermark) == ("leader", 1)


@history(
    33,
    "openraft 1802",
    "R-HW-1, S9",
    Edit(
        "kraftwire.raft.progress:LeaderProgress.high_watermark",
        "sorted([state.end_offset for state in voters.values()], reverse=True)",
        "[state.end_offset for state in voters.values()]",
    ),
    red="committed without a quorum",
)
def test_one_follower_far_ahead_is_not_a_quorum() -> None:
    """It must not matter which voters are ahead, only how many."""
    lone = Lone(voters=(1, 2, 3, 4, 5))
    lone.lead()
    epoch = lone.core.epoch
    for voter_id in (2, 3, 4, 5):
        ahead = Lone(voters=(1, 2, 3, 4, 5))
        ahead.lead()
        ahead.request(fetch(voter_id, 1, epoch, epoch))
        assert ahead.core.high_watermark == -1, "committed without a quorum"


class _SmallFetches(Cluster):
    """A cluster whose followers fetch one batch at a time."""

    def config(self, node_id: int) -> RaftConfig:
        """The same configuration otherwise."""
        return replace(super().config(node_id), fetch_max_bytes=1)


def _elect(cluster: Cluster, wanted: int, *lost: type[Message]) -> None:
    """Let one node be elected: lose the vote requests of all others, and some other messages."""

    def is_lost(sender: int, _target: int, message: Message) -> bool:
        return isinstance(message, lost) or (isinstance(message, VoteRequest) and sender != wanted)

    cluster.drop = is_lost
    assert cluster.run_until(lambda: cluster.leaders() == [wanted])
    cluster.run(0)


@history(
    34,
    "Raft paper, figure 8",
    "R-HW-2, S5, S10",
    _BY_COUNTING,
    red="S10: ",
    fails_with=Violation,
)
def test_a_record_of_an_older_epoch_is_not_committed_by_counting() -> None:
    """A majority has it, yet a node without it can be elected: its last epoch is higher."""
    cluster = _SmallFetches([1, 2, 3], seed=5)
    cluster.start(1, 2, 3)
    _elect(cluster, 1)
    assert cluster.run_until(lambda: cluster.disks[3].end == 1)
    cluster.cut([1], [2, 3])
    cluster.append(1, b"old")
    cluster.run(100)
    assert cluster.disks[1].end == 2
    cluster.kill(1)
    _elect(cluster, 3, FetchResponse)
    cluster.kill(3)
    cluster.heal()
    cluster.start(1)
    _elect(cluster, 1)
    # Node 2 gets the old record and nothing after it, and acknowledges that.
    cluster.drop = lambda _s, _t, message: (
        isinstance(message, FetchResponse) and cluster.disks[2].end == 2
    )
    cluster.run(1500)
    committed = cluster.core(1).high_watermark
    cluster.kill(1)
    cluster.start(3)
    _elect(cluster, 3)
    cluster.run(2000)
    values = [what for _, _, what in cluster.log_of(2)]
    assert committed < 2 or "old" in values, "was lost"




_DELIVER = "kraftwire.raft.listeners:_next_delivery"


@history(
    31,
    "KAFKA-16452",
    "R-FET-22, R-LIS-2",
    Edit(
        "kraftwire.raft.following:_follow_high_watermark",
        "state.high_watermark < mark >= state.log.start_offset",
        "state.high_watermark < mark",
    ),
    red="below the log's start",
)
def test_the_high_watermark_is_never_below_the_start_of_the_log() -> None:
    """A leader that knows only an old one may name an offset that this log no longer has."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=5))
    assert lone.core.high_watermark in (-1, 10, 11, 12), "below the log's start"
    lone.fetch_gets(fetched(2, 3, high_watermark=12))
    assert lone.core.high_watermark == 12


@history(
    31,
    "KAFKA-16452",
    "R-LIS-2, S15",
    Edit(_DELIVER, "if listener.next_offset >= log.start_offset:", "if True:"),
    red="what is not in the log",
)
def test_nothing_is_delivered_from_below_the_start_of_the_log() -> None:
    """Reading there ends the node: what is gone from the log is in the snapshot before it."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    lone.handle(events.ListenerRegistered(7))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=12))
    assert not lone.all_of(effects.DeliverCommitted), "what is not in the log"
    assert lone.all_of(effects.LoadSnapshot) == [effects.LoadSnapshot(7, OffsetAndEpoch(10, 1))]
    assert lone.all_of(effects.LeaderChanged)[-1].leader_id == 2
