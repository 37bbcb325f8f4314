"""LogChecks of logs, snapshots and state machines: S5 to S15."""

from __future__ import annotations

from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.untimed import replica_events as did
from tests.simulation.untimed.examples import STATIC, History, directory, entry, led, sum_at


def leads_without_committed() -> None:
    """3 does not have what 1 and 2 committed."""
    cluster = led()
    cluster.stores(2, 2, 3)
    cluster.checkers.history.votes[(2, directory(2)), 2] = 3
    cluster.stores(3, 2, 3)
    cluster.on(3, did.Elected(2))


def same_batch_other_past() -> None:
    """The same batch of epoch 2 follows a batch of epoch 1 here, and nothing there."""
    cluster = led()
    cluster.stores(3, 2)
    cluster.stores(2, 2)
    cluster.copies(2, entry(1, 2), epoch=2)
    cluster.copies(3, entry(0, 0), epoch=2)
    cluster.copies(3, entry(1, 2), epoch=2)


def commits_other_bytes() -> None:
    """3 takes another batch for committed than 1 did."""
    cluster = led()
    cluster.stores(3, 2)
    cluster.copies(3, entry(0, 2, b"y"), epoch=2)
    cluster.on(3, did.HighWatermarkAdvanced(1, -1))


def watermark_falls() -> None:
    """In the same run."""
    cluster = led()
    cluster.on(1, did.HighWatermarkAdvanced(0, 1))


def watermark_beyond_log() -> None:
    """3 has nothing."""
    led().on(3, did.HighWatermarkAdvanced(1, -1))


def follower_knows_too_much() -> None:
    """Nobody has committed that far."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1)
    cluster.on(2, did.HighWatermarkAdvanced(2, -1))


def commits_undurable() -> None:
    """2 has not flushed."""
    cluster = led()
    more = entry(1, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1, flush=False)
    cluster.commits(1, 2, 1)


def commits_older_epoch() -> None:
    """A majority has the batch of epoch 1, but none of epoch 2."""
    cluster = led()
    old = entry(1, 1)
    cluster.writes(1, old, epoch=1)
    cluster.copies(2, old, epoch=1)
    cluster.elects(1, 2, 2)
    cluster.commits(1, 2, 2)


def cuts_committed() -> None:
    """Although the leader ordered it."""
    cluster = led()
    cluster.on(2, did.Truncated(0, 1, 1))


def cuts_by_order_of_nobody() -> None:
    """The answer of an older leader."""
    cluster = led()
    cluster.stores(2, 2)
    cluster.copies(2, entry(1, 1), epoch=2)
    cluster.on(2, did.Truncated(1, 2, 1))


def loses_durable() -> None:
    """A start finds less than was flushed."""
    led().starts(1)


def finds_what_was_not_written() -> None:
    """Other bytes than before."""
    led().starts(1, entry(0, 1, b"z"))


def acknowledges_wrongly() -> None:
    """Other records are there."""
    led().on(1, did.Acknowledged(0, 1, (b"other",)))


def leaves_a_gap() -> None:
    """Offset 1 is missing."""
    led().copies(2, entry(2, 1), epoch=1)


def writes_twice() -> None:
    """Two contents for (epoch 1, offset 0)."""
    cluster = led()
    cluster.stores(3, 1)
    cluster.copies(3, entry(0, 1, b"other"), epoch=1)


def writes_an_older_epoch() -> None:
    """A leader of epoch 2 writes epoch 1."""
    cluster = led()
    cluster.elects(1, 2, 2)
    cluster.writes(1, entry(1, 1), epoch=2)


def believes_another_end() -> None:
    """The core's picture of its log differs from the log."""
    led().on(1, did.StepEnded(1, 5, 1, STATIC, 0, "leader"))


def snapshot_of_uncommitted() -> None:
    """It ends above what is committed."""
    cluster = led()
    cluster.on(1, did.SnapshotStored(OffsetAndEpoch(2, 1), (2, 0), None, None))


def snapshot_of_other_state() -> None:
    """The sum is wrong."""
    cluster = led()
    cluster.on(1, did.SnapshotStored(OffsetAndEpoch(1, 1), (1, 12345), None, None))


def start_without_snapshot() -> None:
    """Nothing covers what is gone."""
    led().on(1, did.PrefixDropped(OffsetAndEpoch(1, 1), False))


def delivers_a_gap() -> None:
    """The first batch is passed over."""
    cluster = led()
    more = entry(1, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1)
    cluster.commits(1, 2, 1)
    cluster.on(1, did.Delivered(0, (more,)))


def delivers_twice() -> None:
    """The same batch again."""
    cluster = led()
    first = entry(0, 1)
    cluster.on(1, did.Delivered(0, (first,)))
    cluster.on(1, did.Delivered(0, (first,)))


def leads_before_the_past() -> None:
    """A state machine hears that it leads before it has the epoch's first batch."""
    led().on(1, did.LeaderReported(1, 1, 1, 0))


def leader_loads() -> None:
    """A leader has all of its log already."""
    cluster = led()
    cluster.on(1, did.Loaded(OffsetAndEpoch(1, 1), sum_at(cluster, 1), 0, "leader"))


def uncommitted_is_cut() -> None:
    """What only 1 has goes when 2 leads."""
    cluster = led()
    cluster.writes(1, entry(1, 1), epoch=1)
    cluster.elects(2, 2, 3)
    cluster.stores(1, 2)
    cluster.on(1, did.Truncated(1, 2, 2))


def unflushed_is_lost() -> None:
    """A start without what was not durable."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1, flush=False)
    cluster.starts(2, entry(0, 1))


def older_epoch_with_own() -> None:
    """Batches of epoch 1 are committed together with one of epoch 2."""
    cluster = led()
    old, own = entry(1, 1), entry(2, 2)
    cluster.writes(1, old, epoch=1)
    cluster.copies(2, old, epoch=1)
    cluster.elects(1, 2, 2)
    cluster.writes(1, own, epoch=2)
    cluster.copies(2, own, epoch=2)
    cluster.commits(1, 3, 2)


def snapshot_of_committed() -> None:
    """Right state, right epoch, then the log starts there."""
    cluster = led()
    snapshot = OffsetAndEpoch(1, 1)
    cluster.on(1, did.SnapshotStored(snapshot, sum_at(cluster, 1), None, None))
    cluster.on(1, did.PrefixDropped(snapshot, True))


def far_follower_starts_at_a_snapshot() -> None:
    """3 empties its log to what 1 has written."""
    cluster = led()
    snapshot = OffsetAndEpoch(1, 1)
    cluster.stores(3, 1)
    cluster.on(3, did.SnapshotStored(snapshot, sum_at(cluster, 1), None, None))
    cluster.on(3, did.Reset(snapshot, sum_at(cluster, 1), None, None, 1))
    cluster.copies(3, entry(1, 1), epoch=1)


BAD: tuple[tuple[str, History], ...] = (
    ("S5", leads_without_committed),
    ("S6", same_batch_other_past),
    ("S7", commits_other_bytes),
    ("S8", watermark_falls),
    ("S8", watermark_beyond_log),
    ("S8", follower_knows_too_much),
    ("S9", commits_undurable),
    ("S10", commits_older_epoch),
    ("S11", cuts_committed),
    ("S11", cuts_by_order_of_nobody),
    ("S12", loses_durable),
    ("S13", finds_what_was_not_written),
    ("S12", acknowledges_wrongly),
    ("S13", leaves_a_gap),
    ("S13", writes_twice),
    ("S13", writes_an_older_epoch),
    ("S13", believes_another_end),
    ("S14", snapshot_of_uncommitted),
    ("S14", snapshot_of_other_state),
    ("S14", start_without_snapshot),
    ("S15", delivers_a_gap),
    ("S15", delivers_twice),
    ("S15", leads_before_the_past),
    ("S15", leader_loads),
)

NEAR: tuple[History, ...] = (
    uncommitted_is_cut,
    unflushed_is_lost,
    older_epoch_with_own,
    snapshot_of_committed,
    far_follower_starts_at_a_snapshot,
)
