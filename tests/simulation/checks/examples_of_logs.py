"""Histories of logs, snapshots and state machines: S5 to S15."""

from __future__ import annotations

from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.checks import replica_events as did
from tests.simulation.checks.examples import (
    STATIC,
    ReportedCluster,
    breaks,
    directory,
    entry,
    holds,
    led,
    sum_at,
)


@breaks("S5")
def leads_without_committed() -> None:
    """3 does not have what 1 and 2 committed."""
    cluster = led()
    cluster.stores(2, 2, 3)
    cluster.checkers.history.votes[(2, directory(2)), 2] = 3
    cluster.stores(3, 2, 3)
    cluster.on(3, did.Elected(2))


@breaks("S6")
def same_batch_other_past() -> None:
    """The same batch of epoch 2 follows a batch of epoch 1 here, and nothing there."""
    cluster = led()
    cluster.stores(3, 2)
    cluster.stores(2, 2)
    cluster.copies(2, entry(1, 2), epoch=2)
    cluster.copies(3, entry(0, 0), epoch=2)
    cluster.copies(3, entry(1, 2), epoch=2)


@breaks("S6")
def same_batch_newer_past() -> None:
    """The same, in the other order."""
    cluster = led()
    cluster.stores(3, 2)
    cluster.stores(2, 2)
    cluster.copies(3, entry(0, 0), epoch=2)
    cluster.copies(3, entry(1, 2), epoch=2)
    cluster.copies(2, entry(1, 2), epoch=2)


@breaks("S7")
def commits_other_bytes() -> None:
    """3 takes another batch for committed than 1 did."""
    cluster = led()
    cluster.stores(3, 2)
    cluster.copies(3, entry(0, 2, b"y"), epoch=2)
    cluster.on(3, did.HighWatermarkAdvanced(1, -1))


@breaks("S8")
def watermark_falls() -> None:
    """In the same run."""
    cluster = led()
    cluster.on(1, did.HighWatermarkAdvanced(0, 1))


@breaks("S8")
def watermark_beyond_log() -> None:
    """3 has nothing."""
    led().on(3, did.HighWatermarkAdvanced(1, -1))


@breaks("S8")
def follower_knows_too_much() -> None:
    """Nobody has committed that far."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1)
    cluster.on(2, did.HighWatermarkAdvanced(2, -1))


@breaks("S9")
def commits_undurable() -> None:
    """2 has not flushed."""
    cluster = led()
    more = entry(1, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1, flush=False)
    cluster.commits(1, 2, 1)


@breaks("S10")
def commits_older_epoch() -> None:
    """A majority has the batch of epoch 1, but none of epoch 2."""
    cluster = led()
    old = entry(1, 1)
    cluster.writes(1, old, epoch=1)
    cluster.copies(2, old, epoch=1)
    cluster.elects(1, 2, 2)
    cluster.commits(1, 2, 2)


@breaks("S11")
def cuts_committed() -> None:
    """Although the leader ordered it."""
    cluster = led()
    cluster.cuts(2, 0, 1, 1)


@breaks("S11")
def cuts_by_order_of_nobody() -> None:
    """The answer of an older leader."""
    cluster = led()
    cluster.stores(2, 2)
    cluster.copies(2, entry(1, 1), epoch=2)
    cluster.cuts(2, 1, 2, 1)


@breaks("S12")
def loses_durable() -> None:
    """A start finds less than was flushed."""
    led().starts(1)


@breaks("S13")
def finds_what_was_not_written() -> None:
    """Other bytes than before."""
    led().starts(1, entry(0, 1, b"z"))


@breaks("S12")
def acknowledges_wrongly() -> None:
    """Other records are there."""
    led().on(1, did.Acknowledged(0, 1, (b"other",)))


@breaks("S13")
def leaves_a_gap() -> None:
    """Offset 1 is missing."""
    cluster = led()
    cluster.stores(2, 2)
    cluster.copies(2, entry(2, 2), epoch=2)


@breaks("S13")
def writes_twice() -> None:
    """Two contents for (epoch 1, offset 0)."""
    cluster = led()
    cluster.stores(3, 1)
    cluster.copies(3, entry(0, 1, b"other"), epoch=1)


@breaks("S13")
def writes_an_older_epoch() -> None:
    """A leader of epoch 2 writes epoch 1."""
    cluster = led()
    cluster.elects(1, 2, 2)
    cluster.writes(1, entry(1, 1), epoch=2)


@breaks("S13")
def believes_another_end() -> None:
    """The core's picture of its log differs from the log."""
    led().on(1, did.StepEnded(1, 5, 1, STATIC, 0, "leader"))


@breaks("S14")
def snapshot_of_uncommitted() -> None:
    """It ends above what is committed."""
    cluster = led()
    cluster.on(1, did.SnapshotStored(OffsetAndEpoch(2, 1), (2, 0), None, None))


@breaks("S14")
def snapshot_of_other_state() -> None:
    """The sum is wrong."""
    cluster = led()
    cluster.on(1, did.SnapshotStored(OffsetAndEpoch(1, 1), (1, 12345), None, None))


@breaks("S14")
def start_without_snapshot() -> None:
    """Nothing covers what is gone."""
    led().on(1, did.PrefixDropped(OffsetAndEpoch(1, 1), False))


@breaks("S15")
def delivers_a_gap() -> None:
    """The first batch is passed over."""
    cluster = led()
    more = entry(1, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1)
    cluster.commits(1, 2, 1)
    cluster.on(1, did.Delivered(0, (more,)))


@breaks("S15")
def delivers_twice() -> None:
    """The same batch again."""
    cluster = led()
    first = entry(0, 1)
    cluster.on(1, did.Delivered(0, (first,)))
    cluster.on(1, did.Delivered(0, (first,)))


@breaks("S15")
def leads_before_the_past() -> None:
    """A state machine hears that it leads before it has the epoch's first batch."""
    led().on(1, did.LeaderReported(1, 1, 1, 0))


@breaks("S15")
def leader_loads() -> None:
    """A leader has all of its log already."""
    cluster = led()
    cluster.on(1, did.Loaded(OffsetAndEpoch(1, 1), sum_at(cluster, 1), 0, "leader"))


@holds
def uncommitted_is_cut() -> None:
    """What only 1 has goes when 2 leads."""
    cluster = led()
    cluster.writes(1, entry(1, 1), epoch=1)
    cluster.elects(2, 2, 3)
    cluster.stores(1, 2)
    cluster.cuts(1, 1, 2, 2)


@holds
def unflushed_is_lost() -> None:
    """A start without what was not durable."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1, flush=False)
    cluster.starts(2, entry(0, 1))


@holds
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


@holds
def snapshot_of_committed() -> None:
    """Right state, right epoch, then the log starts there."""
    cluster = led()
    snapshot = OffsetAndEpoch(1, 1)
    cluster.on(1, did.SnapshotStored(snapshot, sum_at(cluster, 1), None, None))
    cluster.on(1, did.PrefixDropped(snapshot, True))


@holds
def far_follower_starts_at_a_snapshot() -> None:
    """3 empties its log to what 1 has written."""
    cluster = led()
    snapshot = OffsetAndEpoch(1, 1)
    cluster.stores(3, 1)
    cluster.on(3, did.SnapshotStored(snapshot, sum_at(cluster, 1), None, None))
    cluster.on(3, did.Reset(snapshot, sum_at(cluster, 1), None, None, 1))
    cluster.copies(3, entry(1, 1), epoch=1)


@holds
def the_leader_lacks_durably_what_it_commits() -> None:
    """The two others make a majority."""
    cluster = led()
    more = entry(1, 1)
    cluster.stores(3, 1)
    cluster.copies(3, entry(0, 1), more, epoch=1)
    cluster.copies(2, more, epoch=1)
    cluster.writes(1, more, epoch=1, flush=False)
    cluster.commits(1, 2, 1)


@holds
def two_logs_agree_throughout() -> None:
    cluster = led()
    cluster.stores(3, 1)
    cluster.copies(3, entry(0, 1), epoch=1)
    cluster.on(3, did.HighWatermarkAdvanced(1, -1))


@breaks("S8")
def answers_with_what_it_does_not_know() -> None:
    """The core's high watermark is ahead of the one that it reported."""
    led().on(2, did.StepEnded(1, 1, 1, STATIC, 0, "follower"))


@breaks("S8")
def watermark_inside_a_batch() -> None:
    """The second batch has two records."""
    cluster = led()
    more = entry(1, 1), entry(2, 1, b"x", b"y")
    cluster.writes(1, *more, epoch=1)
    cluster.copies(2, *more, epoch=1)
    cluster.commits(1, 3, 1)


@holds
def a_restart_forgets_the_watermark() -> None:
    cluster = led()
    cluster.starts(1, entry(0, 1))
    cluster.on(1, did.HighWatermarkAdvanced(0, -1))


@breaks("S9")
def fetches_beyond_what_is_durable() -> None:
    """A Fetch acknowledges everything before it."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1, flush=False)
    cluster.fetches(2, 2, 1)


@holds
def fetches_at_the_durable_end() -> None:
    led().fetches(2, 1, 1)


@breaks("S9")
def continues_with_what_is_not_durable() -> None:
    """A start has to flush what it keeps."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1, flush=False)
    cluster.starts(2, entry(0, 1), entry(1, 1), is_durable=False)


@breaks("S7")
def commits_after_a_gap() -> None:
    """The leader's high watermark passes a batch that its log no longer has."""
    cluster = led()
    cluster.writes(1, entry(1, 1), entry(2, 1), epoch=1)
    cluster.model(1).log.pop(1)
    cluster.commits(1, 3, 1)


@breaks("S7")
def delivers_other_bytes() -> None:
    """Not those that are committed there."""
    led().on(1, did.Delivered(0, (entry(0, 1, b"y"),)))


@breaks("S11")
def cuts_what_it_does_not_know_to_be_committed() -> None:
    """2 has not heard of the commit; no later leader may order that."""
    cluster = led()
    cluster.stores(2, 2)
    cluster.cuts(2, 0, 2, 2)


@breaks("S11")
def cuts_below_its_watermark() -> None:
    """Whatever its leader says."""
    cluster = led()
    cluster.stores(3, 1)
    cluster.copies(3, entry(0, 1), epoch=1)
    cluster.on(3, did.HighWatermarkAdvanced(1, -1))
    cluster.model(3).log.clear()
    cluster.cuts(3, 0, 1, 1)


@breaks("S11")
def cuts_below_the_start() -> None:
    """There is only a snapshot."""
    cluster = led()
    cluster.model(2).start = OffsetAndEpoch(1, 1)
    cluster.cuts(2, 0, 1, 1)


@breaks("S11")
def a_power_loss_would_undo_a_cut() -> None:
    """What was revealed of the new end must stay true."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1)
    cluster.on(2, did.Truncating(1, 1, 1), did.Truncated(1, False))


@breaks("S13")
def cuts_inside_a_batch() -> None:
    """The batch has two records."""
    cluster = led()
    cluster.copies(2, entry(1, 1, b"x", b"y"), epoch=1)
    cluster.cuts(2, 2, 1, 1)


@holds
def writes_again_after_a_cut() -> None:
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1)
    cluster.stores(2, 2)
    cluster.cuts(2, 1, 2, 2)
    cluster.copies(2, entry(1, 2), epoch=2)


@breaks("S12")
def acknowledges_what_is_not_there() -> None:
    """Above everything that is committed."""
    led().on(1, did.Acknowledged(1, 1, (b"x",)))


@breaks("S12")
def acknowledges_another_epoch() -> None:
    """The same records, written by a later leader."""
    led().on(1, did.Acknowledged(0, 2, (b"x",)))


@holds
def acknowledges_what_is_committed() -> None:
    cluster = led()
    more = entry(1, 1, b"x", b"y")
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1)
    cluster.commits(1, 3, 1)
    cluster.on(1, did.Acknowledged(2, 1, (b"y",)))


@breaks("S21")
def acknowledges_below_an_older_one() -> None:
    """Its client asked after the other one had been acknowledged."""
    cluster = _acknowledged()
    cluster.on(1, did.Acknowledged(0, 1, (b"x",), cluster.checkers.history.acknowledged))


@holds
def acknowledges_below_one_that_came_later() -> None:
    """Both were asked for at the same time."""
    cluster = _acknowledged()
    cluster.on(1, did.Acknowledged(0, 1, (b"x",), 0))
    assert cluster.checkers.history.acknowledged == 2


def _acknowledged() -> ReportedCluster:
    """The second of two committed records was acknowledged."""
    cluster = led()
    more = entry(1, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1)
    cluster.commits(1, 2, 1)
    cluster.on(1, did.Acknowledged(1, 1, (b"x",)))
    return cluster


@breaks("S13")
def an_empty_disk_is_not_empty() -> None:
    """Its directory id is new."""
    cluster = led()
    cluster.gets_a_disk(3, 1)
    cluster.starts(3, entry(0, 1))


@breaks("S13")
def an_epoch_falls() -> None:
    """In one log."""
    cluster = led()
    cluster.stores(2, 3)
    cluster.copies(2, entry(1, 3), epoch=3)
    cluster.copies(2, entry(2, 2), epoch=3)


@breaks("S13")
def a_batch_of_an_epoch_to_come() -> None:
    """The replica is in an earlier one."""
    led().copies(2, entry(1, 2), epoch=1)


@breaks("S13")
def an_epoch_has_a_gap() -> None:
    """It has one writer, whose next batch begins where its last one ended."""
    cluster = led()
    cluster.stores(3, 1)
    cluster.copies(3, entry(0, 0, b"x", b"y"), entry(2, 1), epoch=1)


@breaks("S13")
def finds_below_its_start_what_nobody_committed() -> None:
    """The prefix that was dropped is back with other bytes."""
    cluster = _started_at_a_snapshot()
    cluster.starts(1, entry(0, 1, b"z"))


@holds
def finds_again_the_prefix_that_it_dropped() -> None:
    """Files are deleted later than the log's start moves."""
    cluster = _started_at_a_snapshot()
    cluster.starts(1, entry(0, 1))


def _started_at_a_snapshot() -> ReportedCluster:
    """1 has dropped what its snapshot covers."""
    cluster = led()
    snapshot = OffsetAndEpoch(1, 1)
    cluster.on(1, did.SnapshotStored(snapshot, sum_at(cluster, 1), None, None))
    cluster.on(1, did.PrefixDropped(snapshot, True))
    return cluster


@holds
def starts_with_its_snapshot_and_an_empty_log() -> None:
    _started_at_a_snapshot().starts(1, at=1)


@holds
def a_snapshot_replaces_a_log_in_a_crash() -> None:
    """3 had downloaded it, and had not yet emptied its log."""
    cluster = led()
    cluster.stores(3, 1)
    cluster.starts(3, at=1)
    cluster.copies(3, entry(1, 1), epoch=1)


@breaks("S11")
def a_snapshot_replaces_what_is_committed() -> None:
    """A start with a shorter log than was flushed, at the end of a snapshot."""
    cluster = led()
    more = entry(1, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1)
    cluster.commits(1, 2, 1)
    cluster.starts(1, at=1)


@breaks("S14")
def snapshot_of_another_epoch() -> None:
    """The last record below its end is of epoch 1."""
    cluster = led()
    cluster.on(1, did.SnapshotStored(OffsetAndEpoch(1, 2), sum_at(cluster, 1), None, None))


@breaks("S14")
def a_log_is_emptied_without_a_snapshot() -> None:
    """Or with one that a power loss would take."""
    led().on(3, did.Reset(OffsetAndEpoch(1, 1), None, None, None, 1))


@breaks("S11")
def a_log_is_emptied_and_loses_what_is_committed() -> None:
    """It goes on beyond the snapshot."""
    cluster = led()
    more = entry(1, 1)
    cluster.writes(1, more, epoch=1)
    cluster.copies(2, more, epoch=1)
    cluster.commits(1, 2, 1)
    cluster.on(2, did.Reset(OffsetAndEpoch(1, 1), sum_at(cluster, 1), None, None, 1))


@breaks("S14")
def drops_what_it_does_not_know_to_be_committed() -> None:
    """2 has not heard of the commit."""
    led().on(2, did.PrefixDropped(OffsetAndEpoch(1, 1), True))


@breaks("S14")
def the_start_goes_back() -> None:
    cluster = _started_at_a_snapshot()
    cluster.on(1, did.PrefixDropped(OffsetAndEpoch(0, 0), True))


@breaks("S14")
def serves_nothing_of_a_snapshot() -> None:
    """Without an error, a download would never end."""
    led().serves_snapshot(1, b"")


@holds
def serves_a_part_of_a_snapshot() -> None:
    led().serves_snapshot(1, b"part")


@breaks("S14")
def loads_another_state() -> None:
    """Not the sum of what is committed."""
    led().on(3, did.Loaded(OffsetAndEpoch(1, 1), (1, 7), 0, "follower"))


@breaks("S15")
def goes_back_to_a_snapshot() -> None:
    """The state machine has more already."""
    cluster = led()
    cluster.on(1, did.Loaded(OffsetAndEpoch(1, 1), sum_at(cluster, 1), 1, "follower"))


@breaks("S15")
def delivers_nothing() -> None:
    led().on(1, did.Delivered(0, ()))


@breaks("S15")
def delivers_from_elsewhere() -> None:
    led().on(1, did.Delivered(1, (entry(0, 1),)))


@breaks("S15")
def delivers_before_it_knows_of_the_commit() -> None:
    """2 has the batch, and has not heard that it is committed."""
    led().on(2, did.Delivered(0, (entry(0, 1),)))


@breaks("S15")
def hears_of_an_older_leader() -> None:
    """After a newer one."""
    cluster = led()
    cluster.on(2, did.LeaderReported(1, 1, 1, 0), did.LeaderReported(1, 1, 1, 0))


@breaks("S15")
def may_append_below_the_end() -> None:
    """Something is there already."""
    cluster = led()
    cluster.on(1, did.Delivered(0, (entry(0, 1),)), did.LeaderReported(1, 1, 0, 1))


@holds
def hears_that_it_leads() -> None:
    cluster = led()
    cluster.on(1, did.Delivered(0, (entry(0, 1),)), did.LeaderReported(1, 1, 1, 1))
