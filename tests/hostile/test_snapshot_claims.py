"""A leader that names snapshots cannot prevent others from standing for election (SEC-SNAPSHOT)."""

from __future__ import annotations

from kraftwire.raft import effects
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.raft_downloads import (
    EPOCH,
    LEADER,
    SNAPSHOT,
    behind,
    half_way,
    notes,
    sent_to,
)
from tests.support.raft_messages import begin, snapshot_part


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
