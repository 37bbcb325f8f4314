"""LogChecks of voter sets: some break an invariant, some nearly do."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.raft.batches import leader_change
from kraftwire.raft.histories import voters_record
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.control import ControlType, control_batch
from kraftwire.sim.check_logs import LogChecks, check_added, check_removed
from kraftwire.sim.checker_set import CheckerSet, check_control
from kraftwire.sim.replica_log import ReplicaLog
from kraftwire.sim.voters import NOBODY, InForce, Key, Voters
from tests.simulation.examples_of_logs import replicate

ONE, TWO, THREE, FOUR = ((node, bytes(15) + bytes((node,))) for node in (1, 2, 3, 4))
TWO_AGAIN: Key = (2, bytes(14) + b"\x01\x02")
FIRST: Voters = (ONE, TWO, THREE)


def stated(base: int, epoch: int, voters: Voters) -> bytes:
    """A batch that states a voter set."""
    record = voters_record(VoterSet.of(*(Voter(ReplicaKey(*key)) for key in voters)))
    return control_batch(base, epoch, 0, [(ControlType.KRAFT_VOTERS, record)])


def begun() -> LogChecks:
    """A dynamic quorum of three and an observer 4; 1 leads epoch 1 and has committed its start."""
    initial = InForce(FIRST, 1)
    logs = {key[0]: ReplicaLog(key, initial) for key in FIRST}
    found = LogChecks(initial, {**logs, 4: ReplicaLog(FOUR, NOBODY)})
    start = control_batch(
        0,
        1,
        0,
        [
            leader_change(1, [1, 2, 3], [1, 2]),
            (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
            (
                ControlType.KRAFT_VOTERS,
                voters_record(VoterSet.of(*(Voter(ReplicaKey(*key)) for key in FIRST))),
            ),
        ],
    )
    replicate(found, (1, 2), start, 1)
    found.advanced(1, 3, 1)
    return found


def two_voters_removed_at_once() -> None:
    """S16."""
    begun().appended(1, stated(3, 1, (ONE,)), 1, leads=True)


def a_voter_replaced_at_once() -> None:
    """S16: that is one removed and one added."""
    begun().appended(1, stated(3, 1, (ONE, TWO_AGAIN, THREE)), 1, leads=True)


def a_set_of_nobody() -> None:
    """S16."""
    logs = LogChecks(InForce((ONE,), 1), {1: ReplicaLog(ONE, InForce((ONE,), 1))})
    logs.appended(1, stated(0, 1, ()), 1, leads=True)


def a_change_before_the_last_one_is_committed() -> None:
    """S16."""
    logs = begun()
    logs.appended(1, stated(3, 1, (*FIRST, FOUR)), 1, leads=True)
    logs.appended(1, stated(4, 1, FIRST), 1, leads=True)


def a_change_once_the_last_one_is_committed() -> None:
    logs = begun()
    for node in (1, 2, 4):
        if node == 4:
            logs.appended(4, b"".join(one.data for one in logs.committed), 1)
        logs.appended(node, stated(3, 1, (*FIRST, FOUR)), 1, leads=node == 1)
        logs.flushed(node, 2)
    logs.advanced(1, 4, 1)
    logs.appended(1, stated(4, 1, FIRST), 1, leads=True)


def a_change_before_the_leaders_epoch_has_a_commit() -> None:
    """S16: without it two leaders may change different voters, and both commit."""
    logs = begun()
    logs.appended(2, control_batch(3, 2, 0, [leader_change(2, [1, 2, 3], [2, 3])]), 2, leads=True)
    logs.advanced(2, 3, None)
    logs.appended(2, stated(4, 2, (*FIRST, FOUR)), 2, leads=True)


def the_same_set_before_the_leaders_epoch_has_a_commit() -> None:
    """A leader may write down its addresses with the first batch of its epoch."""
    logs = begun()
    logs.appended(2, control_batch(3, 2, 0, [leader_change(2, [1, 2, 3], [2, 3])]), 2, leads=True)
    logs.appended(2, stated(4, 2, FIRST), 2, leads=True)


def a_change_that_another_one_wrote() -> None:
    """Only a leader is checked for that; a follower accepts what its leader wrote."""
    logs = begun()
    logs.appended(2, stated(3, 1, (ONE,)), 1)


def a_commit_by_the_majority_of_the_old_set() -> None:
    """S9: the fourth voter counts as soon as it is in the log."""
    logs = begun()
    replicate(logs, (1, 2), stated(3, 1, (*FIRST, FOUR)), 1)
    logs.advanced(1, 4, 1)


def a_set_that_is_in_force_again_once_the_change_is_cut() -> None:
    logs = begun()
    logs.appended(2, stated(3, 1, (*FIRST, FOUR)), 1)
    logs.truncating(2, 3, 2, 2)
    logs.truncated(2, 3, is_durable=True)
    assert logs.logs[2].in_force.voters == FIRST


def a_commit_that_counts_the_leader_outside_of_the_set() -> None:
    """S9: of the two others only one has it."""
    logs = begun()
    replicate(logs, (1, 2), stated(3, 1, (TWO, THREE)), 1)
    logs.advanced(1, 4, 1)


def a_commit_of_a_leader_outside_of_the_set() -> None:
    logs = begun()
    replicate(logs, (3,), logs.committed[0].data, 1)
    replicate(logs, (1, 2, 3), stated(3, 1, (TWO, THREE)), 1)
    logs.advanced(1, 4, 1)


def a_commit_that_counts_another_disk() -> None:
    """S9: the replica with that id is not the voter."""
    logs = begun()
    logs.forget(2, TWO_AGAIN, NOBODY)
    logs.lost.clear()
    replicate(logs, (2,), logs.committed[0].data, 1)
    replicate(logs, (1, 2), control_batch(3, 1, 0, [leader_change(1, [], [])]), 1)
    logs.advanced(1, 4, 1)


def a_commit_that_counts_a_disk_that_is_gone() -> None:
    """The voter said what it had, and lost it after that."""
    logs = begun()
    replicate(logs, (1, 2), control_batch(3, 1, 0, [leader_change(1, [], [])]), 1)
    logs.forget(2, TWO_AGAIN, NOBODY)
    logs.advanced(1, 4, 1)


def a_snapshot_without_voters() -> None:
    """S16."""
    check_control(1, 3, (None, 1), begun())


def a_snapshot_with_voters_of_a_later_time() -> None:
    """S16."""
    check_control(1, 3, ((*FIRST, FOUR), 1), begun())


def a_snapshot_without_a_version() -> None:
    """S16."""
    check_control(1, 3, (FIRST, 0), begun())


def a_snapshot_with_the_voters_of_its_end() -> None:
    check_control(1, 3, (FIRST, 1), begun())


def a_snapshot_of_a_static_quorum() -> None:
    initial = InForce(((1, bytes(16)),))
    check_control(1, 0, (None, 0), LogChecks(initial, {1: ReplicaLog((1, bytes(16)), initial)}))


class _View:
    """What a core believes."""

    def __init__(self, voters: Voters, version: int) -> None:
        self.voters = VoterSet.of(*(Voter(ReplicaKey(*key)) for key in voters))
        self.kraft_version = version


def believed(voters: Voters, version: int = 1) -> None:
    """A node with the log of `begun` believes in this."""
    checkers = CheckerSet(InForce(FIRST, 1), {1: ReplicaLog(ONE, InForce(FIRST, 1))})
    checkers.believes(1, _View(voters, version))  # type: ignore[arg-type]


def a_belief_in_others_than_the_log_states() -> None:
    """S16."""
    believed((ONE, TWO_AGAIN, THREE))


def a_belief_in_another_version() -> None:
    """S16."""
    believed(FIRST, 0)


def a_belief_in_what_the_log_states() -> None:
    believed(FIRST)


def an_acknowledged_addition_that_is_not_committed() -> None:
    """S12."""
    check_added(begun().in_force, FOUR)


def an_acknowledged_addition_of_another_disk() -> None:
    """S12."""
    check_added(begun().in_force, TWO_AGAIN)


def an_acknowledged_addition_that_was_undone_later() -> None:
    check_added(InForce(FIRST, 1, 9, InForce((*FIRST, FOUR), 1, 5, InForce(FIRST, 1))), FOUR)


def an_acknowledged_removal_that_is_not_committed() -> None:
    """S12."""
    check_removed(begun().in_force, THREE)


def an_acknowledged_removal_of_an_observer() -> None:
    """S12."""
    check_removed(begun().in_force, FOUR)


def an_acknowledged_removal() -> None:
    check_removed(InForce(FIRST[:2], 1, 5, InForce(FIRST, 1)), THREE)


BAD: list[tuple[str, Callable[[], None]]] = [
    ("S9", a_commit_by_the_majority_of_the_old_set),
    ("S9", a_commit_that_counts_the_leader_outside_of_the_set),
    ("S9", a_commit_that_counts_another_disk),
    ("S12", an_acknowledged_addition_that_is_not_committed),
    ("S12", an_acknowledged_addition_of_another_disk),
    ("S12", an_acknowledged_removal_that_is_not_committed),
    ("S12", an_acknowledged_removal_of_an_observer),
    ("S16", two_voters_removed_at_once),
    ("S16", a_voter_replaced_at_once),
    ("S16", a_set_of_nobody),
    ("S16", a_change_before_the_last_one_is_committed),
    ("S16", a_change_before_the_leaders_epoch_has_a_commit),
    ("S16", a_snapshot_without_voters),
    ("S16", a_snapshot_with_voters_of_a_later_time),
    ("S16", a_snapshot_without_a_version),
    ("S16", a_belief_in_others_than_the_log_states),
    ("S16", a_belief_in_another_version),
]

NEAR: list[Callable[[], None]] = [
    a_change_once_the_last_one_is_committed,
    the_same_set_before_the_leaders_epoch_has_a_commit,
    a_change_that_another_one_wrote,
    a_set_that_is_in_force_again_once_the_change_is_cut,
    a_commit_of_a_leader_outside_of_the_set,
    a_commit_that_counts_a_disk_that_is_gone,
    a_snapshot_with_the_voters_of_its_end,
    a_snapshot_of_a_static_quorum,
    a_belief_in_what_the_log_states,
    an_acknowledged_addition_that_was_undone_later,
    an_acknowledged_removal,
]
