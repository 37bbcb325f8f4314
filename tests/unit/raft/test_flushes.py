"""Flushes that end after the log has changed: they say nothing about what was written since."""

from __future__ import annotations

from kraftwire.raft import effects, events
from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.raft.disk import snapshot_bytes, snapshot_control
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import fetched


def _slow() -> Lone:
    """A follower of 2 in epoch 3 with four flushed batches of epoch 1, whose disk is slow."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, 3)
    lone.is_slow = True
    return lone


def _last_flush(lone: Lone) -> effects.FlushLog:
    return lone.all_of(effects.FlushLog)[-1]


def _ends(lone: Lone, flush: effects.FlushLog) -> None:
    lone.handle(events.LogFlushed(flush.end_offset, flush.generation))


def test_a_flush_from_before_a_cut_does_not_count() -> None:
    """Other batches are there now, and a crash would lose them."""
    lone = _slow()
    lone.fetch_gets(fetched(2, 3, b"".join(stored_log((1, 4), (2, 2))[4:])))
    old = _last_flush(lone)
    assert lone.core.end_offset == 6
    lone.follow(3, 4)
    _ends(lone, old)
    assert lone.core.flushed_offset == 6
    lone.fetch_gets(fetched(3, 4, diverging=(1, 4)))
    assert lone.core.end_offset == 4
    lone.fetch_gets(fetched(3, 4, b"".join(stored_log((1, 4), (4, 2))[4:])))
    assert lone.core.end_offset == 6
    _ends(lone, old)
    assert lone.core.flushed_offset == 4
    _ends(lone, _last_flush(lone))
    assert lone.core.flushed_offset == 6


def test_no_fetch_leaves_before_the_newest_flush() -> None:
    """It would acknowledge that the new batches are durable (D2)."""
    lone = _slow()
    lone.fetch_gets(fetched(2, 3, b"".join(stored_log((1, 4), (3, 1))[4:])))
    first, asked = _last_flush(lone), len(lone.requests)
    assert lone.core.flushed_offset == 4
    lone.wait(100)
    assert len(lone.requests) == asked
    _ends(lone, first)
    assert lone.last_request.message.NAME == "FetchRequest"
    assert len(lone.requests) == asked + 1


def test_a_flush_from_before_a_snapshot_does_not_count() -> None:
    """The log begins at the snapshot's end now, and what follows it was never flushed."""
    lone = _slow()
    lone.fetch_gets(fetched(2, 3, b"".join(stored_log((1, 4), (3, 6))[4:])))
    old = _last_flush(lone)
    assert old.end_offset == 10
    snapshot = OffsetAndEpoch(8, 3)
    data = snapshot_bytes(snapshot, ())
    lone.disk.keep(snapshot, data)
    lone.handle(events.SnapshotFinished(snapshot, len(data), snapshot_control(data)))
    assert lone.core.end_offset == 8
    assert _generation(lone) != old.generation


def _generation(lone: Lone) -> int:
    """The generation of the flush that the next append asks for."""
    lone.follow(3, 4)
    lone.fetch_gets(fetched(3, 4, b"".join(stored_log((3, 8), (4, 1))[8:])))
    return _last_flush(lone).generation
