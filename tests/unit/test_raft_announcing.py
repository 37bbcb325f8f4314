"""Whom a leader tells that it leads: everybody at first, then those who do not fetch."""

from __future__ import annotations

from tests.support.raft_lone import Lone
from tests.support.raft_nodes import directory_id
from tests.support.raft_quorums import fetches


def _told(lone: Lone, since: int) -> list[int]:
    """Who was told after so many requests."""
    asked = lone.asked[since:]
    return [one.destination.id for one in asked if one.message.NAME == "BeginQuorumEpochRequest"]


def test_a_new_leader_tells_every_voter() -> None:
    """R-BEG-1: without a word from it they would ask others, one at a time."""
    lone = Lone(is_dynamic=True)
    lone.lead()
    assert sorted(_told(lone, 0)) == [2, 3]
    sent = next(one for one in lone.asked if one.message.NAME == "BeginQuorumEpochRequest")
    assert sent.destination.directory_id == directory_id(sent.destination.id)


def test_a_leader_reminds_those_who_do_not_fetch() -> None:
    """R-BEG-1: they may have lost the first message; the others know."""
    lone = Lone(is_dynamic=True)
    lone.lead()
    for sent in lone.asked:
        if sent.message.NAME == "BeginQuorumEpochRequest":
            lone.fail(sent)
    before = len(lone.asked)
    for _ in range(4):
        fetches(lone, 2)
        lone.wait(lone.config.timers.fetch_timeout_ms // 4)
    assert set(_told(lone, before)) == {3}
