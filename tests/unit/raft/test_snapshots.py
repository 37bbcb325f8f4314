"""Snapshots of a node's own: when one is written, and what the log may then start at."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import effects, events
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.histories import voters_record
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.plain import data_batch
from tests.support.raft.disk import snapshot_bytes
from tests.support.raft.lone import Lone, append, fetches, leading, stored_log
from tests.support.raft.messages import dynamic_set, fetch, fetched, voters_control

LISTENER = 7


def applied(offset: int = 8, mark: int = 8, **config: Any) -> Lone:
    """A follower with six records of epoch 1 and four of epoch 2, of which `mark` are committed
    and `offset` applied by its state machine."""
    log = stored_log((1, 6), (2, 4))
    lone = Lone(log=log, election=ElectionState(2), **config)
    lone.handle(events.ListenerRegistered(LISTENER))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=mark))
    lone.handle(events.ListenerConsumed(LISTENER, offset))
    return lone


def wanted(lone: Lone, offset: int, listener: int = LISTENER) -> list[effects.Effect]:
    """Ask for a snapshot; returns the answer."""
    found = lone.handle(events.SnapshotWanted(listener, offset, 1234))
    kinds = effects.WriteSnapshot | effects.SnapshotRefused
    return [one for one in found if isinstance(one, kinds)]


def refusal(lone: Lone, offset: int, listener: int = LISTENER) -> str:
    """Why there will be no snapshot."""
    [answer] = wanted(lone, offset, listener)
    assert isinstance(answer, effects.SnapshotRefused), answer
    assert (answer.listener_id, answer.end_offset) == (listener, offset)
    return answer.reason


def write(lone: Lone, offset: int) -> OffsetAndEpoch:
    """Have a snapshot written that must be allowed; returns its id."""
    [answer] = wanted(lone, offset)
    assert isinstance(answer, effects.WriteSnapshot), answer
    lone.handle(lone.disk.keep(answer.id, snapshot_bytes(answer.id, answer.control)))
    return answer.id


# ---- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "epoch"), [(1, 1), (6, 1), (7, 2), (8, 2)])
def test_a_snapshots_epoch_is_that_of_its_last_record(offset: int, epoch: int) -> None:
    """R-SNAP-1: the offset is exclusive (KAFKA-14618)."""
    [answer] = wanted(applied(offset), offset)
    assert answer == effects.WriteSnapshot(LISTENER, OffsetAndEpoch(offset, epoch), (), 1234)


def test_no_snapshot_holds_what_is_not_committed() -> None:
    """R-SNAP-2: it would keep what a new leader may revoke."""
    assert "offset 9 is not committed; 8 is the high watermark" in refusal(applied(), 9)


def test_no_snapshot_holds_what_was_not_applied() -> None:
    """The state would differ from what the id says."""
    text = "has not applied exactly what is below"
    assert text in refusal(applied(6), 5)
    assert text in refusal(applied(8), 7)
    assert text in refusal(applied(), 8, listener=9)


def test_a_state_machine_may_ask_in_the_middle_of_a_delivery() -> None:
    """It has applied a part, and asks before it reports that: nothing is delivered in between."""
    lone = applied(6)
    [answer] = wanted(lone, 6)
    assert isinstance(answer, effects.WriteSnapshot)
    lone = applied(6)
    assert lone.all_of(effects.DeliverCommitted)[-1].end_offset == 8
    [answer] = wanted(lone, 7)
    assert isinstance(answer, effects.WriteSnapshot)


@pytest.mark.parametrize(("offset", "is_border"), [(4, True), (5, False), (6, False), (7, True)])
def test_a_snapshot_ends_between_batches(offset: int, is_border: bool) -> None:
    """R-SNAP-2: a follower could not continue inside one."""
    batches = [data_batch(0, 1, 0, [b"x"] * 4), data_batch(4, 1, 0, [b"y"] * 3)]
    lone = Lone(log=batches, election=ElectionState(1))
    lone.handle(events.ListenerRegistered(LISTENER))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=7))
    lone.handle(events.ListenerConsumed(LISTENER, offset))
    [answer] = wanted(lone, offset)
    assert isinstance(answer, effects.WriteSnapshot) is is_border


def test_one_snapshot_is_written_at_a_time() -> None:
    """The file of the first may not be mixed up with the second; afterwards the next may come."""
    lone = applied(7)
    [first] = wanted(lone, 7)
    assert isinstance(first, effects.WriteSnapshot)
    lone.handle(events.ListenerConsumed(LISTENER, 8))
    assert refusal(lone, 8) == "snapshot 7-2 is being written"
    lone.handle(events.SnapshotWritten(first.id, 10))
    assert isinstance(wanted(lone, 8)[0], effects.WriteSnapshot)


def test_a_failed_snapshot_may_be_tried_again() -> None:
    """R-SNAP-5: nothing of it is left, and an error is logged."""
    lone = applied()
    wanted(lone, 8)
    found = lone.handle(events.SnapshotFailed(OffsetAndEpoch(8, 2), "no space left"))
    [note] = [one for one in found if isinstance(one, effects.Note)]
    assert (note.level, note.key) == ("error", "snapshot-failed")
    assert not lone.core.snapshots
    assert isinstance(wanted(lone, 8)[0], effects.WriteSnapshot)


@pytest.mark.parametrize("offset", [6, 7])
def test_there_is_no_second_snapshot_of_the_same_or_an_older_end(offset: int) -> None:
    """R-SNAP-2: the existing one is as good."""
    lone = applied(7)
    write(lone, 7)
    assert "there is already a snapshot that ends at 7" in refusal(lone, offset)


def test_there_is_no_snapshot_of_nothing() -> None:
    """R-SNAP-1: 0-0 is the bootstrap checkpoint's name."""
    assert refusal(applied(0), 0)


def test_no_snapshot_is_written_below_the_logs_start() -> None:
    """R-SNAP-2: its epoch would be a guess."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    lone.handle(events.ListenerRegistered(LISTENER, 9))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=12))
    for offset in (9, 10):
        assert "there is already a snapshot that ends at 10" in refusal(lone, offset)


def test_a_snapshot_states_the_voters_at_its_end() -> None:
    """R-SNAP-2: not those that were appended after it."""
    opening = control_batch(0, 1, 0, voters_control(dynamic_set([1, 2, 3])))
    later = [(ControlType.KRAFT_VOTERS, voters_record(dynamic_set([1, 2])))]
    lone = Lone(log=[opening, control_batch(2, 1, 0, later)], election=ElectionState(1))
    lone.handle(events.ListenerRegistered(LISTENER))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=3))
    for offset, ids in ((2, [1, 2, 3]), (3, [1, 2])):
        lone.handle(events.ListenerConsumed(LISTENER, offset))
        [answer] = wanted(lone, offset)
        assert isinstance(answer, effects.WriteSnapshot)
        assert list(answer.control) == list(voters_control(dynamic_set(ids)))
        lone.handle(events.SnapshotWritten(answer.id, 10))


def test_a_snapshot_is_there_once_it_is_durable() -> None:
    """D6: a follower that asks earlier is not sent to it."""
    lone = leading(is_dynamic=False)
    lone.handle(events.ListenerRegistered(LISTENER))
    append(lone, b"x")
    fetches(lone, 2)
    lone.handle(events.ListenerConsumed(LISTENER, 1))
    end = lone.core.end_offset
    lone.handle(events.ListenerConsumed(LISTENER, end))
    [answer] = wanted(lone, end)
    assert isinstance(answer, effects.WriteSnapshot)
    assert _sent_to(lone, 0) is None
    lone.handle(events.SnapshotWritten(answer.id, 10))
    assert _sent_to(lone, 0) == answer.id
    assert lone.core.snapshots == [answer.id]


def test_a_snapshot_of_what_the_log_lost_meanwhile_is_deleted() -> None:
    """The log begins at a newer one that came from the leader: the node's own file is useless."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    found = lone.handle(events.SnapshotWritten(OffsetAndEpoch(8, 1), 10))
    assert effects.DropLogPrefix(10, (OffsetAndEpoch(8, 1),)) in found
    assert lone.core.snapshots == [OffsetAndEpoch(10, 1)]


# ---- the log's start -----------------------------------------------------------------------------


def propose(lone: Lone, snapshot: OffsetAndEpoch) -> list[effects.Effect]:
    """Let retention propose a start; returns the effects."""
    found = lone.handle(events.LogStartProposed(snapshot))
    return [one for one in found if isinstance(one, effects.DropLogPrefix)]


def test_the_log_starts_where_a_snapshot_ends() -> None:
    """R-SNAP-6: older snapshots are deleted."""
    lone = applied(6)
    old = write(lone, 6)
    lone.handle(events.ListenerConsumed(LISTENER, 8))
    new = write(lone, 8)
    assert propose(lone, new) == [effects.DropLogPrefix(8, (old,))]
    assert (lone.core.start_offset, lone.core.snapshots) == (8, [new])
    assert lone.disk.start_offset == 8
    assert (lone.core.end_offset, lone.core.last_epoch) == (10, 2)


def test_only_a_snapshot_that_is_there_replaces_the_log() -> None:
    """R-SNAP-6, KAFKA-14238: an id is not enough."""
    lone = applied(8)
    assert propose(lone, OffsetAndEpoch(8, 2)) == []
    snapshot = write(lone, 8)
    assert propose(lone, OffsetAndEpoch(8, 1)) == []
    assert propose(lone, OffsetAndEpoch(7, 2)) == []
    assert propose(lone, snapshot)
    assert propose(lone, snapshot) == [], "it starts there already"


def test_what_a_slow_state_machine_needs_stays() -> None:
    """It would have to load a snapshot in the middle of a delivery."""
    lone = applied(8)
    lone.handle(events.ListenerRegistered(8))
    snapshot = write(lone, 8)
    lone.handle(events.ListenerConsumed(8, 7))
    assert propose(lone, snapshot) == []
    lone.handle(events.ListenerConsumed(8, 8))
    assert propose(lone, snapshot)


def test_what_is_not_known_to_be_committed_stays() -> None:
    """R-SNAP-6: after a restart the high watermark is not known at first; the file is there."""
    lone = applied(8, is_dynamic=False)
    snapshot = write(lone, 8)
    restarted = Lone(log=lone.disk.batches, election=ElectionState(3))
    restarted.handle(events.SnapshotWritten(snapshot, 10))
    assert propose(restarted, snapshot) == []
    restarted.follow(2, 4)
    restarted.fetch_gets(fetched(2, 4, high_watermark=8))
    assert propose(restarted, snapshot)


def _sent_to(lone: Lone, offset: int, last_epoch: int | None = None) -> OffsetAndEpoch | None:
    """The snapshot that a fetch at an offset is sent to."""
    core = lone.core
    epoch = lone.epoch_before(offset) if last_epoch is None else last_epoch
    answer = lone.request(fetch(2, offset, epoch, core.epoch, max_wait_ms=0))
    partition = answer.responses[0].partitions[0]
    named = partition.snapshot_id
    if named is None or named.end_offset < 0:
        return None
    assert not partition.records
    return OffsetAndEpoch(named.end_offset, named.epoch)


def trimmed() -> tuple[Lone, OffsetAndEpoch]:
    """A leader whose log starts at its snapshot, with a record after it."""
    lone = leading(is_dynamic=False)
    lone.handle(events.ListenerRegistered(LISTENER))
    append(lone, b"x", b"y")
    fetches(lone, 2)
    end = lone.core.end_offset
    lone.handle(events.ListenerConsumed(LISTENER, 1))
    lone.handle(events.ListenerConsumed(LISTENER, end))
    snapshot = write(lone, end)
    append(lone, b"z")
    fetches(lone, 2)
    assert propose(lone, snapshot)
    return lone, snapshot


def test_a_fetch_below_the_new_start_is_sent_to_the_snapshot() -> None:
    """R-FET-7: the same follower was served from the log a moment ago."""
    lone, snapshot = trimmed()
    assert _sent_to(lone, 1) == snapshot
    assert _sent_to(lone, 0) == snapshot
    assert _sent_to(lone, snapshot.offset) is None
    assert _sent_to(lone, snapshot.offset, last_epoch=0) == snapshot
    answer = fetches(lone, 3, snapshot.offset)
    assert answer.responses[0].partitions[0].log_start_offset == snapshot.offset


def test_a_parked_fetch_keeps_waiting_when_the_log_start_advances() -> None:
    """No request waits below: only those at the end of the log wait."""
    lone = leading(is_dynamic=False)
    lone.handle(events.ListenerRegistered(LISTENER))
    end = lone.core.end_offset
    lone.handle(events.ListenerConsumed(LISTENER, end))
    snapshot = write(lone, end)
    epoch = lone.core.epoch
    assert lone.request(fetch(2, end, epoch, epoch, high_watermark=end)) is None
    before = len(lone.effects)
    assert propose(lone, snapshot)
    append(lone, b"x")
    [answer] = [one for one in lone.effects[before:] if isinstance(one, effects.SendReply)]
    assert answer.part == effects.LogSlice(end, 1 << 20, end + 1)


def test_a_log_that_starts_above_0_is_there_after_a_restart() -> None:
    """R-START-2: start, snapshot and epochs, for elections and for followers."""
    lone, snapshot = trimmed()
    end, epoch = lone.core.end_offset, lone.core.last_epoch
    lone.restart()
    assert (lone.core.start_offset, lone.core.end_offset) == (snapshot.offset, end)
    assert (lone.core.last_epoch, lone.core.snapshots) == (epoch, [snapshot])
    lone.lead()
    assert _sent_to(lone, 1) == snapshot
    fetches(lone, 2)
    assert lone.core.high_watermark == lone.core.end_offset


@pytest.mark.parametrize("extra", [0, 1])
def test_a_snapshot_leaves_what_a_cut_returns_to(extra: int) -> None:
    """R-ID-8: voters that are not committed stand in the log, right after the snapshot's end or
    later; they are cut off, and those before them count again."""
    lone = Lone(is_dynamic=True, log=stored_log((1, 6)), election=ElectionState(1))
    lone.handle(events.ListenerRegistered(LISTENER))
    lone.follow(2, 3)
    before = (ControlType.KRAFT_VOTERS, voters_record(dynamic_set([1, 2, 3, 4])))
    after = (ControlType.KRAFT_VOTERS, voters_record(dynamic_set([1, 2, 3, 4, 5])))
    log = control_batch(6, 3, 0, [before])
    for number in range(extra):
        log += data_batch(7 + number, 3, 0, [b"x"])
    log += control_batch(7 + extra, 3, 0, [after])
    lone.fetch_gets(fetched(2, 3, log, high_watermark=7))
    lone.handle(events.ListenerConsumed(LISTENER, 7))
    write(lone, 7)
    assert lone.core.voters == dynamic_set([1, 2, 3, 4, 5])
    lone.fetch_gets(fetched(2, 3, diverging=(3, 7), high_watermark=7))
    assert lone.core.end_offset == 7
    assert (lone.core.voters, lone.core.kraft_version) == (dynamic_set([1, 2, 3, 4]), 1)
    assert lone.core.voters_offset == 6


def test_snapshots_bound_how_many_voter_sets_are_remembered() -> None:
    """R-ID-8, L10: otherwise a cluster that changes for years would keep every set."""
    lone = Lone(is_dynamic=True)
    lone.handle(events.ListenerRegistered(LISTENER))
    lone.follow(2, 1)
    for offset in range(20):
        record = (ControlType.KRAFT_VOTERS, voters_record(dynamic_set([1, 2, 3 + offset % 2])))
        batch = control_batch(offset, 1, 0, [record])
        lone.fetch_gets(fetched(2, 1, batch, high_watermark=offset + 1))
        lone.handle(events.ListenerConsumed(LISTENER, offset + 1))
        write(lone, offset + 1)
    assert lone.core.voters == dynamic_set([1, 2, 4])
    history = lone.core._state.history
    assert history.at(18).voters_offset is None
    assert history.at(19).voters_offset == 19
