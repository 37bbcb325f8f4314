"""LogChecks of voter sets that change: S16, and which votes count for S9."""

from __future__ import annotations

from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.untimed import replica_events as did
from kraftwire.sim.voters import Voters
from tests.simulation.untimed.examples import History, ReportedCluster, directory, entry, sum_at

# ---- voter sets ----------------------------------------------------------------------------------

THREE: Voters = tuple((node, directory(node)) for node in (1, 2, 3))
FOUR: Voters = (*THREE, (4, directory(4)))
FIVE: Voters = (*FOUR, (5, directory(5)))


def dynamic() -> ReportedCluster:
    """1 leads 1, 2 and 3, who are in the log at offset 0, committed."""
    cluster = ReportedCluster((), 5)
    for model in cluster.checkers.models.values():
        model.load(0, THREE, 1)
    cluster.elects(1, 1, 2)
    first = entry(0, 1, voters=THREE)
    cluster.writes(1, first, epoch=1)
    cluster.copies(2, first, epoch=1)
    cluster.commits(1, 1, 1)
    return cluster


def two_changes_at_once() -> None:
    """From three to five."""
    dynamic().writes(1, entry(1, 1, voters=FIVE), epoch=1)


def change_before_the_last_is_committed() -> None:
    """4 is not committed yet when 5 comes."""
    cluster = dynamic()
    cluster.writes(1, entry(1, 1, voters=FOUR), epoch=1)
    cluster.writes(1, entry(2, 1, voters=FIVE), epoch=1)


def change_before_the_epoch_commits() -> None:
    """The bug of single-server changes: nothing of epoch 2 is committed."""
    cluster = dynamic()
    cluster.elects(1, 2, 2)
    cluster.writes(1, entry(1, 2), epoch=2)
    cluster.writes(1, entry(2, 2, voters=FOUR), epoch=2)


def old_majority_commits() -> None:
    """Two of three are not a majority of four."""
    cluster = dynamic()
    change = entry(1, 1, voters=FOUR)
    cluster.writes(1, change, epoch=1)
    cluster.copies(2, change, epoch=1)
    cluster.commits(1, 2, 1)


def replaced_disk_counts() -> None:
    """3 has another directory than the one in the set."""
    cluster = dynamic()
    more = entry(1, 1)
    cluster.starts(3, generation=1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(3, entry(0, 1, voters=THREE), more, epoch=1)
    cluster.commits(1, 2, 1)


def change_outlives_its_cut() -> None:
    """The record of 4 is cut off, and 2 still believes in it."""
    cluster = dynamic()
    cluster.copies(2, entry(1, 1, voters=FOUR), epoch=1)
    cluster.stores(2, 2)
    cluster.on(2, did.Truncated(1, 2, 2))
    cluster.on(2, did.StepEnded(2, 1, -1, FOUR, 1, "follower"))


def snapshot_forgets_voters() -> None:
    """A snapshot without the voter set that is in force there."""
    cluster = dynamic()
    snapshot = OffsetAndEpoch(1, 1)
    cluster.on(1, did.SnapshotStored(snapshot, sum_at(cluster, 1), None, None))


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


def cut_change_is_taken_back() -> None:
    """After the cut the older set counts."""
    cluster = dynamic()
    cluster.copies(2, entry(1, 1, voters=FOUR), epoch=1)
    cluster.stores(2, 2)
    cluster.on(2, did.Truncated(1, 2, 2))
    cluster.on(2, did.StepEnded(2, 1, -1, THREE, 1, "follower"))


BAD: tuple[tuple[str, History], ...] = (
    ("S16", two_changes_at_once),
    ("S16", change_before_the_last_is_committed),
    ("S16", change_before_the_epoch_commits),
    ("S9", old_majority_commits),
    ("S9", replaced_disk_counts),
    ("S16", change_outlives_its_cut),
    ("S16", snapshot_forgets_voters),
)

NEAR: tuple[History, ...] = (
    one_change_after_the_other,
    removed_leader_commits,
    cut_change_is_taken_back,
)
