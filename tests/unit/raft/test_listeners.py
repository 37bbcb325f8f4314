"""What state machines are told, in which order."""

from __future__ import annotations

from kraftwire.raft.effects import DeliverCommitted, Effect, LeaderChanged, LoadSnapshot
from kraftwire.raft.listeners import Listeners
from kraftwire.raft.log_view import LogView
from kraftwire.raft.ports import LogImage, StoredSnapshot
from kraftwire.records.offsets import OffsetAndEpoch

LOG = LogView(LogImage(end_offset=99))


def listeners(next_offset: int = 0) -> Listeners:
    """One state machine, 7."""
    registered = Listeners()
    registered.register(7, next_offset)
    return registered


def test_committed_batches_are_delivered_one_piece_at_a_time() -> None:
    """R-LIS-3: the next delivery begins where the state machine really is."""
    told = listeners(3)
    assert list(told.serve(-1, LOG)) == []
    assert list(told.serve(10, LOG)) == [DeliverCommitted(7, 3, 10)]
    assert list(told.serve(20, LOG)) == []
    told.consumed(7, 8)
    assert list(told.serve(20, LOG)) == [DeliverCommitted(7, 8, 20)]
    told.consumed(7, 20)
    assert list(told.serve(20, LOG)) == []


def test_a_state_machine_cannot_claim_more_than_it_was_given() -> None:
    """It cannot go back or count twice either: deliveries continue without gap or repetition."""
    told = listeners(3)
    told.consumed(7, 99)
    told.consumed(8, 99)
    assert list(told.serve(10, LOG)) == [DeliverCommitted(7, 3, 10)]
    told.consumed(7, 99)
    assert list(told.serve(15, LOG)) == [DeliverCommitted(7, 10, 15)]
    told.consumed(7, 2)
    assert list(told.serve(15, LOG)) == [DeliverCommitted(7, 10, 15)]


def test_registering_twice_does_nothing() -> None:
    """R-LIS-7."""
    told = listeners(3)
    told.register(7, 0)
    assert list(told.serve(10, LOG)) == [DeliverCommitted(7, 3, 10)]


def test_followers_learn_of_a_leader_at_once_and_after_the_batches() -> None:
    """R-LIS-6: the order within a step is batches first."""
    told = listeners()
    told.leader_changed(2, 5, 10, False)
    assert list(told.serve(10, LOG)) == [DeliverCommitted(7, 0, 10), LeaderChanged(7, 2, 5, 10)]
    assert list(told.serve(10, LOG)) == []


def test_a_leader_is_told_that_it_leads_once_it_has_everything_older() -> None:
    """R-LIS-6, KAFKA-15345: its LeaderChange record at 10 must be consumed."""
    told = listeners()
    told.leader_changed(1, 5, 11, True)
    assert list(told.serve(-1, LOG, 11)) == []
    assert list(told.serve(11, LOG, 11)) == [DeliverCommitted(7, 0, 11)]
    told.consumed(7, 10)
    assert list(told.serve(11, LOG, 11)) == [DeliverCommitted(7, 10, 11)]
    told.consumed(7, 11)
    assert list(told.serve(11, LOG, 11)) == [LeaderChanged(7, 1, 5, 11)]


def test_a_leader_that_opens_with_its_voters_is_told_after_all_of_them() -> None:
    """The first batch of a dynamic quorum has three records, and it may write after the third."""
    told = listeners(10)
    told.leader_changed(1, 5, 13, True)
    told.serve(13, LOG, 13)
    told.consumed(7, 12)
    assert list(told.serve(13, LOG, 13)) == [DeliverCommitted(7, 12, 13)]
    told.consumed(7, 13)
    assert list(told.serve(13, LOG, 13)) == [LeaderChanged(7, 1, 5, 13)]


def test_a_late_state_machine_of_a_leader_is_told_where_the_log_ends() -> None:
    """It writes at the offset that it is told: the log has grown since the epoch's start."""
    told = Listeners()
    told.leader_changed(1, 5, 1, True)
    told.register(7, 0, leader_end=6)
    assert list(told.serve(6, LOG, 6)) == [DeliverCommitted(7, 0, 6)]
    told.consumed(7, 3)
    assert list(told.serve(6, LOG, 8)) == [DeliverCommitted(7, 3, 6)], "it lacks three records"
    told.consumed(7, 6)
    assert list(told.serve(6, LOG, 8)) == [LeaderChanged(7, 1, 5, 8)]


def trimmed(*snapshots: OffsetAndEpoch) -> LogView:
    """A log that begins at offset 10, and its snapshots."""
    stored = [StoredSnapshot(one, 1000) for one in snapshots]
    return LogView(LogImage(start_offset=10, end_offset=99, snapshots=stored))


def test_a_state_machine_below_the_logs_start_loads_the_newest_snapshot() -> None:
    """R-LIS-2: then the log from there; until it is loaded it is given nothing else."""
    log, told = trimmed(OffsetAndEpoch(10, 1), OffsetAndEpoch(20, 2)), listeners(3)
    assert list(told.serve(-1, log)) == [], "nothing is known to be committed"
    assert list(told.serve(30, log)) == [LoadSnapshot(7, OffsetAndEpoch(20, 2))]
    assert list(told.serve(40, log)) == []
    told.consumed(7, 20)
    assert list(told.serve(40, log)) == [DeliverCommitted(7, 20, 40)]


def test_a_snapshot_of_what_is_not_known_to_be_committed_is_not_loaded() -> None:
    """An older one is loaded, as the log continues from there as well."""
    log, told = trimmed(OffsetAndEpoch(10, 1), OffsetAndEpoch(20, 2)), listeners(3)
    assert list(told.serve(15, log)) == [LoadSnapshot(7, OffsetAndEpoch(10, 1))]


def test_a_state_machine_at_the_logs_start_needs_no_snapshot() -> None:
    """It has everything before; loading would only take time."""
    log, told = trimmed(OffsetAndEpoch(10, 1)), listeners(10)
    assert list(told.serve(12, log)) == [DeliverCommitted(7, 10, 12)]


def test_a_log_that_gets_another_start_is_checked_again() -> None:
    """The high watermark is the same; only the log has changed under a slow state machine."""
    told = listeners(3)
    assert list(told.serve(12, LOG)) == [DeliverCommitted(7, 3, 12)]
    told.consumed(7, 5)
    assert list(told.serve(12, trimmed(OffsetAndEpoch(10, 1)))) == [
        LoadSnapshot(7, OffsetAndEpoch(10, 1))
    ]
    told.consumed(7, 3)
    log = trimmed(OffsetAndEpoch(10, 1), OffsetAndEpoch(12, 1))
    assert list(told.serve(12, log)) == [LoadSnapshot(7, OffsetAndEpoch(12, 1))]


def test_a_leadership_that_is_over_is_not_reported() -> None:
    """R-LIS-6: in Resigned nothing is reported, even if the state machine reaches that offset."""
    told = listeners()
    told.leader_changed(1, 5, 11, True)
    told.serve(11, LOG)
    told.resigned()
    told.consumed(7, 11)
    assert list(told.serve(-1, LOG)) == []
    told.leader_changed(-1, 6, 11, False)
    assert list(told.serve(-1, LOG)) == [LeaderChanged(7, -1, 6, 11)]


def test_an_epoch_has_two_calls_at_most() -> None:
    """R-LIS-6: first no leader, then one; repetitions and older epochs are not reported."""
    told = listeners()
    calls: list[Effect] = []
    for leader_id, epoch in ((-1, 4), (-1, 4), (2, 4), (2, 4), (-1, 4), (3, 3), (-1, 5), (3, 5)):
        told.leader_changed(leader_id, epoch, 0, False)
        calls += told.serve(-1, LOG)
    heard = [(c.leader_id, c.epoch) for c in calls if isinstance(c, LeaderChanged)]
    assert heard == [(-1, 4), (2, 4), (-1, 5), (3, 5)]


def test_a_late_state_machine_is_told_only_the_present_leader() -> None:
    """Earlier leaders are in the log."""
    told = Listeners()
    told.leader_changed(2, 4, 0, False)
    told.leader_changed(3, 6, 9, False)
    told.register(8, 0)
    assert list(told.serve(-1, LOG)) == [LeaderChanged(8, 3, 6, 9)]


def test_an_empty_quorum_without_leader_is_not_news() -> None:
    """Every replica starts with epoch 0 and no leader."""
    told = listeners()
    told.leader_changed(-1, 0, 0, False)
    assert list(told.serve(-1, LOG)) == []


def test_each_state_machine_has_its_own_pace() -> None:
    """A slow one does not hold up the others."""
    told = listeners()
    told.register(8, 5)
    assert list(told.serve(9, LOG)) == [DeliverCommitted(7, 0, 9), DeliverCommitted(8, 5, 9)]
    told.consumed(8, 9)
    assert list(told.serve(12, LOG)) == [DeliverCommitted(8, 9, 12)]
