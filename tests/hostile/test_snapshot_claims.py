"""A leader that lies about snapshots is given up, and costs little until then (SEC-SNAPSHOT)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftwire.raft import effects
from kraftwire.raft.config import SNAPSHOT_BYTES_MAX
from kraftwire.raft.downloading import (
    BEGINNING_BYTES_MIN,
    DOWNLOAD_PAUSE_MS,
    PARTS_FREE,
)
from kraftwire.raft.events import SnapshotRejected, SnapshotWritten
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.raft.downloads import (
    EPOCH,
    LEADER,
    SNAPSHOT,
    behind,
    file_of,
    half_way,
    names_asked,
    notes,
    part_asked_for,
    sent_to,
)
from tests.support.raft.lone import Lone
from tests.support.raft.messages import begin, fetched, snapshot_part, updated


def test_a_leader_that_sends_nothing_of_its_snapshots_is_given_up() -> None:
    """Each claim used to be a sign of life, so that the node never stood for election."""
    lone = behind()
    end = lone.now + 20 * lone.config.timers.fetch_timeout_ms
    while lone.core.role == "follower" and lone.now < end:
        sent = lone.last_request
        if sent.destination.id != LEADER or sent.message.NAME == "UpdateRaftVoterRequest":
            lone.fail(sent)
        elif sent.message.NAME == "FetchRequest":
            sent_to(lone, SNAPSHOT)
        else:
            lone.answer(sent, snapshot_part(LEADER, EPOCH, SNAPSHOT, error=98))
        lone.wait(50)
    assert lone.core.role in ("prospective", "candidate")


def test_a_claim_of_less_than_the_log_holds_changes_nothing() -> None:
    """The log already extends past it, in the same epoch."""
    lone = behind()
    end = lone.core.end_offset
    found = sent_to(lone, OffsetAndEpoch(end - 1, lone.epoch_before(end)))
    assert notes(found) == ["snapshot-claim"]
    assert lone.core.end_offset == end


def test_a_download_ends_with_its_leader() -> None:
    """Nothing is left of what the leader of an earlier epoch named."""
    lone, _ = half_way()
    before = len(lone.effects)
    lone.request(begin(3, EPOCH + 1))
    assert effects.DiscardSnapshot(SNAPSHOT) in lone.effects[before:]


# ---- a leader that sends bytes without end -------------------------------------------------------

# From a snapshot's beginning, so that only its size is wrong.
_SOUND = file_of(values=[bytes(1 << 20)] * 3)
_PART = 1 << 20

Liar = Callable[[int, int], tuple[bytes, int]]
"""Returns part and announced size for a position and the bytes that were asked for."""


def _lead_falsely(lone: Lone, liar: Liar, until_ms: int, wait_ms: int = 1) -> None:
    """Lead, name a snapshot whenever asked, and send its parts."""
    while lone.core.role == "follower" and lone.now < until_ms:
        sent = lone.last_request
        name = sent.message.NAME
        if name == "UpdateRaftVoterRequest":
            lone.answer(sent, updated(LEADER, EPOCH))
        elif sent.destination.id != LEADER:
            lone.fetch_gets(fetched(LEADER, EPOCH, error=6))
        elif name == "FetchRequest":
            sent_to(lone)
        else:
            snapshot, position = part_asked_for(lone)
            data, size = liar(position, _PART)
            answer = snapshot_part(
                LEADER, EPOCH, snapshot, data=data, position=position, size=size
            )
            lone.answer(sent, answer)
        lone.wait(wait_ms)


def _kept(lone: Lone) -> int:
    """How many bytes of downloads were written."""
    return sum(len(one.data) for one in lone.all_of(effects.AppendToSnapshot))


@pytest.mark.parametrize("size", [1 << 62, SNAPSHOT_BYTES_MAX + 1])
def test_a_snapshot_of_impossible_size_is_not_begun(size: int) -> None:
    """Three nodes followed such a leader until a disk was full."""
    lone = behind()
    began = lone.now
    _lead_falsely(lone, lambda *_: (_SOUND[:_PART], size), lone.now + 10_000)
    assert lone.core.role == "prospective"
    assert lone.now - began < 10
    assert not _kept(lone)


def test_twice_the_largest_snapshot_that_was_seen_is_believed() -> None:
    """Metadata grows, but not without bounds while a node is away."""
    for size, is_believed in ((600, True), (601, False)):
        lone = behind(snapshot_max_bytes=100)
        lone.handle(SnapshotWritten(OffsetAndEpoch(2, 1), 300))
        sent_to(lone)
        answer = snapshot_part(LEADER, EPOCH, SNAPSHOT, data=b"x" * 9, size=size)
        lone.answer(lone.last_request, answer)
        assert bool(_kept(lone)) is is_believed


@pytest.mark.parametrize(
    "data", [bytes(BEGINNING_BYTES_MIN), b"\xff" + _SOUND[1:_PART]]
)
def test_what_does_not_begin_like_a_snapshot_is_not_kept(data: bytes) -> None:
    """Its end would show that too, a gigabyte later."""
    lone = behind()
    _lead_falsely(lone, lambda *_: (data, SNAPSHOT_BYTES_MAX), lone.now + 10_000)
    assert lone.core.role == "prospective"
    assert not _kept(lone)


@pytest.mark.parametrize("size", [20_000, BEGINNING_BYTES_MIN - 1])
@pytest.mark.parametrize("skipped", [0, 100])
def test_small_parts_do_not_hide_what_a_file_begins_with(size: int, skipped: int) -> None:
    """A leader chose them so that no part was long enough to be looked at."""
    for is_sound in (True, False):
        lone = behind()
        file = _SOUND if is_sound else _SOUND[skipped + 1 :]
        until = lone.now + 50

        def a_part(position: int, _: int, file: bytes = file) -> tuple[bytes, int]:
            return file[position : position + size], len(_SOUND)

        _lead_falsely(lone, a_part, until)
        assert (lone.core.role == "prospective") is not is_sound
        assert (_kept(lone) > BEGINNING_BYTES_MIN) is is_sound


def test_tiny_parts_are_not_asked_for_without_end() -> None:
    """Each of them cost a request, thousands of times a second."""
    lone = behind()
    _lead_falsely(
        lone,
        lambda position, _: (_SOUND[position : position + 1], SNAPSHOT_BYTES_MAX),
        lone.now + 100_000,
        wait_ms=0,
    )
    assert lone.core.role == "prospective"
    assert names_asked(lone).count("FetchSnapshot") <= PARTS_FREE + 2


def test_parts_that_come_slowly_are_no_sign_of_life() -> None:
    """The size is plausible, and every part is progress."""
    lone = behind()
    began = lone.now
    timers = lone.config.timers

    def a_part(position: int, _: int) -> tuple[bytes, int]:
        return _SOUND[position : position + 4096], SNAPSHOT_BYTES_MAX

    _lead_falsely(lone, a_part, lone.now + 100_000, wait_ms=50)
    assert lone.core.role == "prospective"
    assert lone.now - began <= timers.fetch_timeout_ms + timers.election_timeout_ms


def test_a_leader_that_was_given_up_is_asked_ever_more_rarely() -> None:
    """It repeats its lie whenever this node follows it again in the same epoch."""
    lone = behind()
    begun = list[int]()
    for _ in range(6):
        lone.wait(max(DOWNLOAD_PAUSE_MS << len(begun), 20))
        sent_to_leader = [one for one in lone.requests if one.destination.id == LEADER]
        assert len(sent_to_leader) <= 200
        begun.append(lone.now)
        _refuse_votes(lone)
        _lead_falsely(lone, lambda *_: (_SOUND[:_PART], 1 << 62), lone.now + 10_000)
    assert names_asked(lone).count("FetchSnapshot") <= 6
    assert lone.core.epoch == EPOCH


def _refuse_votes(lone: Lone) -> None:
    """Other voters still hear from the leader."""
    for sent in [one for one in lone.requests if one.message.NAME == "VoteRequest"]:
        lone.fail(sent)
    if lone.core.role == "prospective":
        lone.wait(2 * lone.config.timers.election_timeout_ms)


@pytest.mark.parametrize("problem", ["the checksum of a batch is wrong", "No space left on device"])
def test_a_download_that_failed_is_not_repeated_at_once(problem: str) -> None:
    """It would write the same gigabyte again and again."""
    lone, data = half_way()
    lone.handle(SnapshotRejected(SNAPSHOT, problem))
    began = lone.now
    _lead_falsely(
        lone, lambda position, _: (data[position:], len(data)), began + DOWNLOAD_PAUSE_MS - 1
    )
    assert lone.core.role == "follower"
    assert names_asked(lone).count("FetchSnapshot") == 2
    _lead_falsely(
        lone, lambda position, _: (data[position:], len(data)), began + 2 * DOWNLOAD_PAUSE_MS
    )
    assert names_asked(lone).count("FetchSnapshot") == 3


def test_a_leader_that_answers_at_once_without_news_is_not_asked_in_a_loop() -> None:
    """L9: an honest one waits until there is something to tell."""
    lone = behind()
    end = lone.now + 1000
    while lone.now < end:
        sent = lone.last_request
        if sent.message.NAME != "FetchRequest":
            lone.fail(sent)
        elif sent.destination.id != LEADER:
            lone.fetch_gets(fetched(LEADER, EPOCH, error=6))
        else:
            lone.fetch_gets(fetched(LEADER, EPOCH, high_watermark=4))
        lone.wait(1)
    to_leader = [one for one in lone.requests if one.destination.id == LEADER]
    assert 10 < len(to_leader) <= 1000 // lone.config.timers.retry_backoff_ms + 2
    assert lone.core.role == "follower"
