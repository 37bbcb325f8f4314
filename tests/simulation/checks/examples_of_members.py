"""Histories of voter sets that change: S16, and which votes count for S9."""

from __future__ import annotations

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.voters import Voters
from tests.simulation.checks.examples import (
    ReportedCluster,
    breaks,
    directory,
    entry,
    holds,
    led,
    sum_at,
)

# ---- voter sets ----------------------------------------------------------------------------------

THREE: Voters = tuple((node, directory(node)) for node in (1, 2, 3))
FOUR: Voters = (*THREE, (4, directory(4)))
FIVE: Voters = (*FOUR, (5, directory(5)))


def dynamic() -> ReportedCluster:
    """1 leads 1, 2 and 3, who are in the log at offset 0, committed."""
    cluster = ReportedCluster(THREE, 5, version=1)
    cluster.elects(1, 1, 2)
    first = entry(0, 1, voters=THREE)
    cluster.writes(1, first, epoch=1)
    cluster.copies(2, first, epoch=1)
    cluster.commits(1, 1, 1)
    return cluster


@breaks("S16")
def two_changes_at_once() -> None:
    """From three to five."""
    dynamic().writes(1, entry(1, 1, voters=FIVE), epoch=1)


@breaks("S16")
def change_before_the_last_is_committed() -> None:
    """4 is not committed yet when 5 comes."""
    cluster = dynamic()
    cluster.writes(1, entry(1, 1, voters=FOUR), epoch=1)
    cluster.writes(1, entry(2, 1, voters=FIVE), epoch=1)


@breaks("S16")
def change_before_the_epoch_commits() -> None:
    """The bug of single-server changes: nothing of epoch 2 is committed."""
    cluster = dynamic()
    cluster.elects(1, 2, 2)
    cluster.writes(1, entry(1, 2), epoch=2)
    cluster.writes(1, entry(2, 2, voters=FOUR), epoch=2)


@breaks("S9")
def old_majority_commits() -> None:
    """Two of three are not a majority of four."""
    cluster = dynamic()
    change = entry(1, 1, voters=FOUR)
    cluster.writes(1, change, epoch=1)
    cluster.copies(2, change, epoch=1)
    cluster.commits(1, 2, 1)


@breaks("S9")
def replaced_disk_counts() -> None:
    """3 has another directory than the one in the set."""
    cluster = dynamic()
    more = entry(1, 1)
    cluster.gets_a_disk(3, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(3, entry(0, 1, voters=THREE), more, epoch=1)
    cluster.commits(1, 2, 1)


@breaks("S16")
def change_outlives_its_cut() -> None:
    """The record of 4 is cut off, and 2 still believes in it."""
    cluster = dynamic()
    cluster.copies(2, entry(1, 1, voters=FOUR), epoch=1)
    cluster.stores(2, 2)
    cluster.cuts(2, 1, 2, 2)
    cluster.on(2, did.StepEnded(2, 1, -1, FOUR, 1, "follower"))


@breaks("S16")
def snapshot_forgets_voters() -> None:
    """A snapshot without the voter set that is in force there."""
    cluster = dynamic()
    snapshot = OffsetAndEpoch(1, 1)
    cluster.on(1, did.SnapshotStored(snapshot, sum_at(cluster, 1), None, None))


@holds
def one_change_after_the_other() -> None:
    """4, committed by three of four, then 5."""
    cluster = dynamic()
    change = entry(1, 1, voters=FOUR)
    cluster.writes(1, change, epoch=1)
    for node in (2, 3):
        cluster.stores(3, 1)
        if node == 3:
            cluster.copies(3, entry(0, 1, voters=THREE), epoch=1)
        cluster.copies(node, change, epoch=1)
    cluster.commits(1, 2, 1)
    cluster.writes(1, entry(2, 1, voters=FIVE), epoch=1)


@holds
def removed_leader_commits() -> None:
    """1 removes itself, counts no more, and commits that by 2 and 3."""
    cluster = dynamic()
    change = entry(1, 1, voters=THREE[1:])
    cluster.writes(1, change, epoch=1)
    cluster.stores(3, 1)
    cluster.copies(3, entry(0, 1, voters=THREE), epoch=1)
    for node in (2, 3):
        cluster.copies(node, change, epoch=1)
    cluster.commits(1, 2, 1)


@holds
def cut_change_is_taken_back() -> None:
    """After the cut the older set counts."""
    cluster = dynamic()
    cluster.copies(2, entry(1, 1, voters=FOUR), epoch=1)
    cluster.stores(2, 2)
    cluster.cuts(2, 1, 2, 2)
    cluster.on(2, did.StepEnded(2, 1, -1, THREE, 1, "follower"))


@breaks("S16")
def a_voter_is_replaced_at_once() -> None:
    """That is one removed and one added."""
    others = (*THREE[:2], (3, directory(3, 1)))
    dynamic().writes(1, entry(1, 1, voters=others), epoch=1)


@breaks("S16")
def a_set_of_nobody() -> None:
    one = THREE[:1]
    cluster = ReportedCluster(one, 1, version=1)
    cluster.elects(1, 1)
    cluster.writes(1, entry(0, 1), epoch=1)
    cluster.commits(1, 1, 1)
    cluster.writes(1, entry(1, 1, voters=()), epoch=1)


@holds
def the_same_set_before_the_epoch_commits() -> None:
    """A leader may write down its addresses with the first batch of its epoch."""
    cluster = dynamic()
    cluster.elects(1, 2, 2)
    cluster.writes(1, entry(1, 2), entry(2, 2, voters=THREE), epoch=2)


@holds
def the_upgrade_names_the_directories_of_the_same_voters() -> None:
    """Configured voters have no directory ids."""
    cluster = led()
    change = entry(1, 1, voters=THREE)._replace(version=1)
    cluster.writes(1, change, epoch=1)
    cluster.copies(2, change, epoch=1)
    cluster.commits(1, 2, 1)
    cluster.on(1, did.StepEnded(1, 2, 2, THREE, 1, "leader"))


@holds
def a_change_that_another_one_wrote() -> None:
    """Only a leader is checked for that; a follower accepts what its leader wrote."""
    dynamic().copies(2, entry(1, 1, voters=FIVE), epoch=1)


@breaks("S9")
def a_removed_leader_counts_itself() -> None:
    """Of the two others only one has it."""
    cluster = dynamic()
    change = entry(1, 1, voters=THREE[1:])
    cluster.writes(1, change, epoch=1)
    cluster.copies(2, change, epoch=1)
    cluster.commits(1, 2, 1)


@holds
def a_disk_that_is_gone_counts() -> None:
    """The voter said what it had, and lost it after that."""
    cluster = dynamic()
    more = entry(1, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1)
    cluster.gets_a_disk(2, 1)
    cluster.commits(1, 2, 1)


@breaks("S17")
def a_vote_of_a_replaced_disk_counts() -> None:
    """The id is that of a voter, the directory id is not."""
    cluster = ReportedCluster(THREE, 3, version=1)
    cluster.gets_a_disk(2, 1)
    cluster.elects(1, 1, 2)


@holds
def a_vote_of_a_disk_that_is_replaced_later_counts() -> None:
    """A vote that was given stays given."""
    cluster = ReportedCluster(THREE, 3, version=1)
    cluster.stores(1, 1, 1)
    cluster.stores(2, 1, 1)
    cluster.gets_a_disk(2, 1)
    cluster.stores(1, 1, 1, leader=1)
    cluster.on(1, did.Elected(1))


def _removed() -> ReportedCluster:
    """3 has the record of its removal, which it does not know to be committed."""
    cluster = dynamic()
    change = entry(1, 1, voters=THREE[:2])
    cluster.stores(3, 1)
    cluster.writes(1, change, epoch=1)
    cluster.copies(3, entry(0, 1, voters=THREE), change, epoch=1)
    cluster.copies(2, change, epoch=1)
    cluster.commits(1, 2, 1)
    return cluster


@holds
def a_voter_stands_before_its_removal_is_committed() -> None:
    cluster = _removed()
    cluster.stores(3, 2, 3)
    cluster.asks(3, 2, (1, 2))


@breaks("S18")
def a_voter_stands_after_its_removal_is_committed() -> None:
    """It knows that."""
    cluster = _removed()
    cluster.on(3, did.HighWatermarkAdvanced(2, -1))
    cluster.stores(3, 2, 3)
    cluster.asks(3, 2, (1, 2))


@breaks("S17")
def a_removed_leader_needs_all_others() -> None:
    """It is not in the set that its log has: its own vote does not count."""
    cluster = _removed()
    cluster.elects(3, 2, 2)


@breaks("S12")
def asks_to_join_after_its_removal() -> None:
    """Without a start in between."""
    _removed().on(3, did.RequestSent(AddRaftVoterRequest()))


@breaks("S16")
def believes_another_version() -> None:
    dynamic().on(1, did.StepEnded(1, 1, 1, THREE, 0, "leader"))


@breaks("S16")
def a_snapshot_forgets_the_version() -> None:
    cluster = dynamic()
    cluster.on(1, did.SnapshotStored(OffsetAndEpoch(1, 1), sum_at(cluster, 1), THREE, None))


@breaks("S16")
def a_snapshot_has_the_voters_of_a_later_time() -> None:
    cluster = dynamic()
    cluster.on(1, did.SnapshotStored(OffsetAndEpoch(1, 1), sum_at(cluster, 1), FOUR, 1))


@holds
def a_snapshot_has_the_voters_of_its_end() -> None:
    cluster = dynamic()
    cluster.on(1, did.SnapshotStored(OffsetAndEpoch(1, 1), sum_at(cluster, 1), THREE, 1))


@breaks("S12")
def an_addition_is_acknowledged_and_not_committed() -> None:
    dynamic().checkers.history.acknowledges_voter(FOUR[3], is_added=True)


@breaks("S12")
def an_addition_of_another_disk_is_acknowledged() -> None:
    dynamic().checkers.history.acknowledges_voter((2, directory(2, 1)), is_added=True)


@breaks("S12")
def a_removal_is_acknowledged_and_not_committed() -> None:
    dynamic().checkers.history.acknowledges_voter(THREE[2], is_added=False)


@breaks("S12")
def a_removal_of_an_observer_is_acknowledged() -> None:
    dynamic().checkers.history.acknowledges_voter(FOUR[3], is_added=False)


@holds
def changes_are_acknowledged() -> None:
    history = _removed().checkers.history
    history.acknowledges_voter(THREE[2], is_added=True)
    history.acknowledges_voter(THREE[2], is_added=False)
