"""Snapshots that a leader should not have named or sent: gone, wrong, damaged, impossible."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import effects
from kraftwire.raft.downloading import DOWNLOAD_PAUSE_MS
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from tests.support.raft_downloads import (
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
from tests.support.raft_messages import fetched, snapshot_part

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
    [OffsetAndEpoch(4, 1), OffsetAndEpoch(3, 1), BOOTSTRAP_SNAPSHOT, OffsetAndEpoch(10, EPOCH + 1)],
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
