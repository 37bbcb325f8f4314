"""Which log goes on, what may be missing, and which survivors cannot be recovered together."""

from __future__ import annotations

import pytest

from kraftwire.errors import StorageError, UsageError
from kraftwire.log.quorum_state import QuorumState
from kraftwire.replica.lost_majority.plan import Recovery, plan_recovery
from kraftwire.replica.lost_majority.survivors import locked, read_survivor
from kraftwire.replica.lost_majority.text import next_lines, plan_lines
from kraftwire.sim.disk import SimFiles
from tests.support.logs.survivors import (
    CLUSTER,
    Made,
    append_voters,
    make,
    node_of,
    snapshot,
    survivors_of,
)


def _plan(*made: Made) -> Recovery:
    return plan_recovery(survivors_of(SimFiles(), *made))


@pytest.mark.parametrize(
    ("first", "second", "furthest"),
    [
        (((1, 3),), ((1, 4),), 2),
        (((1, 9),), ((1, 2), (2, 1)), 2),
        (((1, 3), (3, 1)), ((1, 30), (2, 30)), 1),
        (((1, 3),), ((1, 3),), 1),
        (((1, 3),), (), 1),
    ],
    ids=["longer", "later epoch, shorter", "gap of epochs", "equal", "empty"],
)
def test_the_furthest_log_has_the_later_epoch_then_the_higher_end(
    first: tuple[tuple[int, int], ...], second: tuple[tuple[int, int], ...], furthest: int
) -> None:
    """As a voter compares a candidate's log with its own (R-VOTE-4)."""
    plan = _plan(Made(id=1, epochs=first), Made(id=2, epochs=second))
    assert plan.furthest.key.id == furthest
    assert [one.key.id for one in plan.voters] == [furthest]
    assert [one.key.id for one in plan.set_aside] == [3 - furthest]


def test_a_log_of_equal_length_that_a_voter_has_goes_before_an_observers() -> None:
    """An observer with a copy survives too, but a voter is what the others know."""
    plan = _plan(Made(id=2, voters=(3, 4, 5)), Made(id=3, voters=(3, 4, 5)))
    assert plan.furthest.key.id == 3


def test_the_epoch_is_above_what_any_survivor_has_seen() -> None:
    """Also one that only the quorum-state of a log that is not continued shows."""
    other = Made(id=2, epochs=((1, 1),), state=QuorumState(9, -1, 3))
    plan = _plan(Made(id=1, epochs=((1, 3), (4, 1))), other)
    assert plan.furthest.key.id == 1
    assert plan.epoch == 10


def test_a_majority_of_survivors_misses_nothing_that_was_acknowledged() -> None:
    """Every majority that acknowledged a record contains one of them."""
    plan = _plan(Made(id=1), Made(id=2))
    assert plan.is_complete
    assert [voter.key.id for voter in plan.lost] == [3]
    assert any("nothing that was acknowledged" in line for line in plan_lines(plan))


@pytest.mark.parametrize("is_static", [False, True], ids=["kraft.version 1", "kraft.version 0"])
def test_one_of_three_cannot_know_what_is_beyond_its_end(is_static: bool) -> None:
    """The two others were a majority, and may have acknowledged more, or something else."""
    plan = _plan(Made(id=1, epochs=((1, 3), (2, 5)), is_static=is_static))
    text = "\n".join(plan_lines(plan))
    assert not plan.is_complete
    assert [voter.key.id for voter in plan.lost] == [2, 3]
    # Offsets 0 to 3 are of epoch 1, 4 begins epoch 2, and its leader went on after that.
    assert plan.committed_end == 5
    assert "cannot be known from offset 10 on" in text
    assert "Known to be committed: all below offset 5" in text
    assert "Offsets 5 to 9 are kept" in text


def test_half_of_the_voters_is_no_majority() -> None:
    """The other half, after one removal, could have gone on alone."""
    voters = (1, 2, 3, 4)
    assert not _plan(Made(id=1, voters=voters), Made(id=2, voters=voters)).is_complete


def test_a_voter_whose_directory_is_another_one_has_not_survived() -> None:
    """Its id is in the voter set, its directory id is not: it acknowledged nothing."""
    files = SimFiles()
    nodes = [make(files, Made(id=one)) for one in (1, 2)]
    path = "/n2/meta.properties"
    text = files.read_bytes(path).replace(b"AgICAgICAgICAgICAgICAg", b"CQkJCQkJCQkJCQkJCQkJCQ")
    files.unlink("/n2/__cluster_metadata-0/flushed-offset")
    state = "/n2/__cluster_metadata-0/quorum-state"
    first_line = files.read_bytes(state).splitlines()[0]
    for name, content in ((path, text), (state, first_line)):
        files.unlink(name)
        files.open(name, create=True).pwrite(content, 0)
    plan = plan_recovery([read_survivor(node, files) for node in nodes])
    assert [voter.key.id for voter in plan.lost] == [2, 3]
    assert not plan.is_complete


def test_what_a_snapshot_holds_was_committed() -> None:
    """Also a snapshot of another survivor."""
    files = SimFiles()
    nodes = [
        make(files, Made(id=1, epochs=((1, 9),), voters=(1, 2, 3, 4, 5))),
        make(files, Made(id=2, epochs=((1, 9),), voters=(1, 2, 3, 4, 5))),
    ]
    snapshot(files, nodes[1], 7)
    plan = plan_recovery([read_survivor(node, files) for node in nodes])
    assert (plan.committed_end, plan.is_complete) == (7, False)


def test_control_records_alone_prove_no_commit() -> None:
    """A leader writes the first one before anything of its epoch is committed."""
    files = SimFiles()
    node = make(files, Made(id=1, epochs=((1, 0), (2, 0))))
    append_voters(files, node, 2, 1, 2)
    assert plan_recovery([read_survivor(node, files)]).committed_end == 0


def test_the_set_before_an_uncommitted_change_counts_too() -> None:
    """Two of three are a majority, but the four before may have gone on without the change."""
    files = SimFiles()
    nodes = [make(files, Made(id=one, voters=(1, 2, 3, 4))) for one in (1, 2)]
    append_voters(files, nodes[0], 1, 1, 2, 3)
    plan = plan_recovery([read_survivor(node, files) for node in nodes])
    assert [voter.key.id for voter in plan.lost] == [3]
    assert not plan.is_complete


def test_the_last_voter_that_remained_is_no_earlier_recovery() -> None:
    """Its leader removed the others, in an epoch that began as every epoch does."""
    files = SimFiles()
    node = make(files, Made(id=1))
    append_voters(files, node, 1, 1)
    plan = plan_recovery([read_survivor(node, files)])
    assert (plan.is_written, plan.epoch) == (False, 2)


def test_static_voters_have_to_be_set_in_every_file() -> None:
    """At kraft.version 0 no record has the voters."""
    files = SimFiles()
    made = [Made(id=one, is_static=True) for one in (1, 2)]
    plan = plan_recovery(survivors_of(files, *made))
    text = "\n".join(plan_lines(plan))
    assert "controller.quorum.voters=1@host1:9093,2@host2:9093" in text
    assert [one.key.id for one in plan.unset] == [1, 2]
    changed = [read_survivor(node_of(one, voters=(1, 2)), files) for one in made]
    again = plan_recovery(changed)
    assert not again.unset
    # quorum-state still names those who voted before.
    assert [voter.key.id for voter in again.lost] == [3]


def test_three_static_voters_are_not_recovered_together() -> None:
    """Two empty directories are a majority of three."""
    made = [Made(id=one, is_static=True, voters=(1, 2, 3, 4, 5, 6)) for one in (1, 2, 3)]
    with pytest.raises(UsageError, match="at most 2 nodes"):
        _plan(*made)


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (Made(id=2, cluster="AAAAAAAAAAAAAAAAAAAAAQ"), f"n1 belongs to cluster {CLUSTER}, /n2"),
        (Made(id=1, root="/other"), "both describe node 1"),
    ],
    ids=["another cluster", "the same node"],
)
def test_nodes_of_two_quorums_are_refused(second: Made, problem: str) -> None:
    """And the message names both sides."""
    with pytest.raises(UsageError, match=problem):
        _plan(Made(id=1), second)


def test_empty_logs_are_refused() -> None:
    """There would be nothing to go on with."""
    with pytest.raises(UsageError, match="nothing can be recovered"):
        _plan(Made(id=1, epochs=()))


def test_the_last_epoch_cannot_be_exceeded() -> None:
    """An epoch has 32 bits."""
    with pytest.raises(UsageError, match="no epoch is above"):
        _plan(Made(id=1, state=QuorumState(0x7FFFFFFF)))


def test_a_damaged_log_is_refused() -> None:
    """Acknowledged records would be missing without a word."""
    files = SimFiles()
    node = make(files, Made(id=1))
    log = files.open("/n1/__cluster_metadata-0/00000000000000000000.log")
    log.pwrite(b"\xff", 100)
    with pytest.raises(StorageError, match="checksum"):
        read_survivor(node, files)


def test_what_a_start_would_repair_is_told() -> None:
    """A torn batch above the flush mark was never acknowledged."""
    files = SimFiles()
    node = make(files, Made(id=1))
    log = files.open("/n1/__cluster_metadata-0/00000000000000000000.log")
    log.pwrite(b"torn", log.size())
    plan = plan_recovery([read_survivor(node, files)])
    assert any("repair" in line and "4 bytes" in line for line in plan_lines(plan))


def test_the_plan_tells_of_each_replica() -> None:
    """Log, snapshot, flush mark, and who voted for whom."""
    files = SimFiles()
    node = make(files, Made(id=1, epochs=((1, 9),), state=QuorumState(3, -1, 2)))
    snapshot(files, node, 7)
    lines = list(plan_lines(plan_recovery([read_survivor(node, files)])))
    assert lines[3:9] == [
        "  node 1, voter: /n1/__cluster_metadata-0",
        "    log       offsets 0 to 9, last epoch 1",
        "    newest    record of 2023-11-14 22:13:20 UTC",
        "    snapshot  up to offset 7, epoch 1",
        "    flushed   offset 10",
        "    state     epoch 3, leader none, vote 2",
    ]


def test_observers_are_to_be_added_with_the_command_that_does_it() -> None:
    """They start empty, and the record of the voters lacks them."""
    lines = list(next_lines(_plan(Made(id=1, epochs=((1, 9),)), Made(id=2))))
    assert lines[4].endswith("controller host1:9093 --command-config n2.properties")


def test_a_directory_is_read_without_a_change() -> None:
    """A plan is only a plan."""
    files = SimFiles()
    node = make(files, Made(id=1))
    changes: list[None] = []
    watched = SimFiles.holding(
        {name: files.read_bytes(name) for name in files.named_after({})},
        before_step=lambda: changes.append(None),
    )
    with locked([node], watched, make=False):
        plan_recovery([read_survivor(node, watched)])
    assert not changes


def test_a_directory_in_use_is_refused() -> None:
    """Its log may grow while it is read."""
    files = SimFiles()
    node = make(files, Made(id=1))
    lock = files.lock("/n1/.lock")
    with pytest.raises(StorageError, match="locked"), locked([node], files, make=True):
        pass
    lock.close()
    with locked([node], files, make=True), pytest.raises(StorageError, match="locked"):
        files.lock("/n1/.lock")
