"""Snapshots that a leader should not have named or sent: gone, wrong, damaged, impossible."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import effects
from kraftwire.raft.batches import OFFSET_MAX
from kraftwire.raft.downloading import DOWNLOAD_PAUSE_MS
from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from tests.support.raft.downloads import (
    EPOCH,
    LEADER,
    NEWER,
    SNAPSHOT,
    behind,
    file_of,
    half_way,
    kinds,
    names_asked,
    next_part,
    notes,
    part_asked_for,
    sent_to,
    take,
)
from tests.support.raft.lone import Lone, append, fetches, leading, stored_log
from tests.support.raft.messages import fetched, snapshot_part

# ---- a snapshot that is gone ---------------------------------------------------------------------


@pytest.mark.parametrize("error", [98, 99, -1])
@pytest.mark.parametrize("where", ["partition", "top"])
def test_a_snapshot_that_is_gone_ends_in_one_fetch(error: int, where: str) -> None:
    """R-FSN-4: 98 and 99, and -1 as Java sends it for both, on either level."""
    lone, _ = half_way()
    answer = snapshot_part(LEADER, EPOCH, SNAPSHOT, error=error)
    if where == "top":
        answer = type(answer)(error_code=error)
    found = lone.answer(lone.last_request, answer)
    assert effects.DiscardSnapshot(SNAPSHOT) in found
    count = len(lone.requests)
    for _ in range(3):
        lone.wait(20)
        if lone.last_request.destination.id != LEADER:
            lone.fetch_gets(fetched(LEADER, EPOCH, error=6))
    assert lone.last_request.destination.id == LEADER
    assert set(names_asked(lone, count - 1)) == {"Fetch"}
    sent_to(lone, NEWER)
    assert part_asked_for(lone) == (NEWER, 0)


def test_a_snapshot_without_an_id_is_gone() -> None:
    """R-FSN-4."""
    lone, _ = half_way()
    found = lone.answer(lone.last_request, snapshot_part(LEADER, EPOCH, OffsetAndEpoch(-1, -1)))
    assert notes(found) == ["snapshot-gone"]


def test_a_leader_that_names_what_it_does_not_have_is_not_asked_in_a_loop() -> None:
    """L9: it would name it again at once, and again."""
    lone = behind()
    end = lone.now + 1000
    while lone.now < end:
        sent = lone.last_request
        if sent.destination.id != LEADER:
            lone.fetch_gets(fetched(LEADER, EPOCH, error=6))
        elif sent.message.NAME == "FetchRequest":
            sent_to(lone)
        else:
            lone.answer(sent, snapshot_part(LEADER, EPOCH, SNAPSHOT, error=98))
        lone.wait(1)
    assert lone.core.role == "follower"
    parts = names_asked(lone).count("FetchSnapshot")
    assert 10 < parts <= 1000 // 20


# ---- a part that was not asked for ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("snapshot", "fields"),
    [
        (NEWER, {}),
        (SNAPSHOT, {"position": 6}),
        (SNAPSHOT, {"position": 8}),
        (SNAPSHOT, {"size": 1000}),
        (SNAPSHOT, {"size": 7}),
        (SNAPSHOT, {"data": b""}),
        (SNAPSHOT, {"data": bytes(5000)}),
    ],
)
def test_a_part_that_was_not_asked_for_is_not_used(
    snapshot: OffsetAndEpoch, fields: dict[str, Any]
) -> None:
    """R-FSN-4: a Java follower ends; here the download is given up and the leader left alone."""
    lone, data = half_way()
    chosen: dict[str, Any] = {"position": 7, "size": len(data), "data": data[7:9], **fields}
    count = len(lone.all_of(effects.AppendToSnapshot))
    found = lone.answer(lone.last_request, snapshot_part(LEADER, EPOCH, snapshot, **chosen))
    assert notes(found) == ["snapshot-part"]
    assert effects.DiscardSnapshot(SNAPSHOT) in found
    assert len(lone.all_of(effects.AppendToSnapshot)) == count
    assert lone.last_request.destination.id != LEADER
    assert lone.core.end_offset == 4


def test_a_chunk_of_another_topic_is_ignored() -> None:
    """The leader is left alone, and asked for the same part again."""
    lone, _ = half_way()
    answer = snapshot_part(LEADER, EPOCH, SNAPSHOT, data=b"x", position=7, size=100)
    answer.topics[0].name = "other"
    assert notes(lone.answer(lone.last_request, answer)) == ["foreign-answer"]
    assert next_part(lone) == (SNAPSHOT, 7)


def test_an_answer_of_a_former_leader_deposes_it() -> None:
    """R-RESP-2: it names the new leader."""
    lone, _ = half_way()
    lone.answer(lone.last_request, snapshot_part(-1, EPOCH + 1, SNAPSHOT, error=6))
    assert (lone.core.role, lone.core.epoch) == ("unattached", EPOCH + 1)


# ---- what a follower does not believe ------------------------------------------------------------


@pytest.mark.parametrize(
    "named",
    [
        OffsetAndEpoch(4, 1),
        OffsetAndEpoch(3, 1),
        BOOTSTRAP_SNAPSHOT,
        OffsetAndEpoch(10, EPOCH + 1),
        OffsetAndEpoch(-1, 1),
        OffsetAndEpoch(10, -1),
        OffsetAndEpoch(OFFSET_MAX + 1, 1),
    ],
)
def test_an_impossible_claim_is_ignored(named: OffsetAndEpoch) -> None:
    """R-FET-21: what is already committed here, the bootstrap checkpoint, a later epoch."""
    lone = behind()
    lone.fetch_gets(fetched(LEADER, EPOCH, high_watermark=4))
    found = sent_to(lone, named)
    assert notes(found) == ["snapshot-claim"]
    assert lone.last_request.message.NAME == "FetchRequest"
    assert lone.last_request.destination.id != LEADER


@pytest.mark.parametrize(("offset", "epoch"), [(-1, 2), (10, -1)])
def test_a_half_named_snapshot_is_a_failure(offset: int, epoch: int) -> None:
    """R-FET-21: exactly one of the two is negative."""
    lone = behind()
    assert notes(sent_to(lone, OffsetAndEpoch(offset, epoch))) == ["snapshot-claim"]


# ---- a damaged file ------------------------------------------------------------------------------


def test_a_damaged_snapshot_is_fetched_again_after_a_pause() -> None:
    """The damage may have happened in transit; the leader's file may be sound."""
    lone, data = behind(), file_of()
    sent_to(lone)
    found = take(lone, data[:-1] + b"?")
    [note] = [one for one in found if isinstance(one, effects.Note)]
    assert (note.level, note.key) == ("error", "snapshot-damaged")
    assert "ResetLog" not in kinds(found)
    assert not lone.core.snapshots
    while lone.last_request.destination.id != LEADER:
        lone.fetch_gets(fetched(LEADER, EPOCH, error=6))
        lone.wait(20)
    sent_to(lone)
    assert names_asked(lone)[-1] == "Fetch"
    lone.wait(DOWNLOAD_PAUSE_MS)
    while lone.last_request.destination.id != LEADER:
        lone.fetch_gets(fetched(LEADER, EPOCH, error=6))
        lone.wait(20)
    sent_to(lone)
    assert part_asked_for(lone) == (SNAPSHOT, 0)
    take(lone, data)
    assert lone.core.start_offset == 10


def _ignores(lone: Lone, leader: int, epoch: int, named: OffsetAndEpoch) -> None:
    """Nothing is downloaded, and the log stays as it is."""
    before = (lone.core.start_offset, lone.core.end_offset, lone.core.last_epoch)
    found = sent_to(lone, named, leader=leader, epoch=epoch)
    assert notes(found) == ["snapshot-claim"], named
    assert lone.last_request.message.NAME == "FetchRequest", named
    assert (lone.core.start_offset, lone.core.end_offset, lone.core.last_epoch) == before


@pytest.mark.parametrize(
    "named", [OffsetAndEpoch(offset, epoch) for offset in (7, 10) for epoch in (1, 2, 3)]
)
def test_a_snapshot_inside_an_own_one_is_not_fetched_after_a_restart(named: OffsetAndEpoch) -> None:
    """R-FET-21, S11: what a snapshot of this node holds is committed, although no high watermark is
    known yet and the log still begins before it. An honest leader has that, too."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2))
    own = OffsetAndEpoch(10, 1)
    lone.disk.snapshots[own] = file_of(own)
    lone.restart()
    assert (lone.core.start_offset, lone.core.high_watermark) == (0, -1)
    lone.follow(2, 3)
    _ignores(lone, 2, 3, named)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_a_snapshot_inside_what_a_former_leader_committed_is_not_fetched(offset: int) -> None:
    """R-FET-21, S11: it committed that itself; the next leader has it, or lies."""
    lone = leading(is_dynamic=False)
    append(lone, b"a", b"b")
    fetches(lone, 2)
    assert lone.core.high_watermark == 3
    epoch = lone.core.epoch + 1
    lone.follow(2, epoch)
    _ignores(lone, 2, epoch, OffsetAndEpoch(offset, epoch))


@pytest.mark.parametrize("offset", [1, 8, 11])
def test_a_snapshot_inside_a_log_of_its_epoch_or_later_is_not_fetched(offset: int) -> None:
    """R-FET-21: such a log is cut where it diverges; none of it is known to be committed."""
    lone = Lone(log=stored_log((1, 4), (2, 8)), election=ElectionState(2))
    lone.follow(2, 3)
    for epoch in (1, 2):
        _ignores(lone, 2, 3, OffsetAndEpoch(offset, epoch))
        while lone.last_request.destination.id != 2:
            lone.fetch_gets(fetched(2, 3, error=6))
            lone.wait(20)


@pytest.mark.parametrize("named", [OffsetAndEpoch(12, 1), OffsetAndEpoch(8, 3)])
def test_a_snapshot_that_a_log_can_not_be_cut_to_is_fetched(named: OffsetAndEpoch) -> None:
    """R-FET-21: one that ends where this log ends, whose last epoch never committed anything; and
    one of a later epoch."""
    lone = Lone(log=stored_log((1, 4), (2, 8)), election=ElectionState(2))
    lone.follow(2, 3)
    sent_to(lone, named)
    assert part_asked_for(lone) == (named, 0)
    take(lone, file_of(named))
    assert (lone.core.start_offset, lone.core.end_offset) == (named.offset, named.offset)
    assert lone.core.last_epoch == named.epoch


def test_a_snapshot_of_nothing_is_not_fetched() -> None:
    """R-FET-21: it ends at offset 0, and no log has an epoch there."""
    lone = Lone(election=ElectionState(1))
    lone.follow(2, 3)
    _ignores(lone, 2, 3, OffsetAndEpoch(0, 2))


# ---- limits --------------------------------------------------------------------------------------


def _is_fetched(lone: Lone) -> bool:
    """Whether a download begins once the leader names its snapshot again."""
    while lone.last_request.destination.id != LEADER:
        lone.fetch_gets(fetched(LEADER, EPOCH, error=6))
        lone.wait(20)
    sent_to(lone)
    return lone.last_request.message.NAME == "FetchSnapshotRequest"


def test_each_failure_doubles_the_pause() -> None:
    """A file that is always damaged is not fetched ten times a second."""
    lone = behind()
    sent_to(lone)
    for pause in (DOWNLOAD_PAUSE_MS, 2 * DOWNLOAD_PAUSE_MS, 4 * DOWNLOAD_PAUSE_MS):
        take(lone, file_of()[:-1] + b"?")
        lone.wait(pause - DOWNLOAD_PAUSE_MS // 2)
        assert not _is_fetched(lone)
        lone.wait(pause)
        assert _is_fetched(lone)


@pytest.mark.parametrize(("over", "is_believed"), [(0, True), (1, False)])
def test_a_leader_may_announce_twice_the_largest_snapshot(over: int, is_believed: bool) -> None:
    """A quorum whose snapshots have outgrown the limit goes on to work."""
    lone = Lone(
        log=stored_log((1, 12)), election=ElectionState(2), log_start=10, snapshot_max_bytes=1
    )
    [own] = lone.disk.snapshots.values()
    lone.follow(LEADER, EPOCH)
    sent_to(lone, NEWER)
    part = snapshot_part(LEADER, EPOCH, NEWER, data=b"x", size=2 * len(own) + over)
    found = lone.answer(lone.last_request, part)
    assert ("snapshot-refused" not in notes(found)) is is_believed
