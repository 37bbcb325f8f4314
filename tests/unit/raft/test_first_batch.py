"""The first batch of an epoch, with the voters if no other replica has them."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft import effects, events
from kraftwire.raft.batches import control_records
from kraftwire.raft.histories import voter_set
from kraftwire.records.control import ControlType
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone, fetches, follow_up
from tests.support.raft.messages import LISTENER, dynamic_set

OPENING = [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]


def first_batch(lone: Lone) -> list[tuple[Any, Any]]:
    """Type and message of the records in the last batch of a new leader's log."""
    return [(kind, message) for _, kind, message in control_records(lone.disk.batches[-1])]


def led(**fields: Any) -> Lone:
    """Node 1 leads, and nothing is committed yet."""
    lone = Lone(**fields)
    lone.lead()
    return lone


def test_a_leader_of_configured_voters_opens_with_its_change_alone() -> None:
    """R-LEAD-2: voters and those that granted, in one record."""
    [(kind, message)] = first_batch(led())
    assert kind is ControlType.LEADER_CHANGE
    assert isinstance(message, LeaderChangeMessage)
    assert [one.voter_id for one in message.voters] == [1, 2, 3]
    assert {one.voter_id for one in message.granting_voters} >= {1}
    assert len(message.granting_voters) >= 2


def test_the_first_leader_of_a_dynamic_quorum_puts_the_voters_into_the_log() -> None:
    """R-LEAD-2, trap 11: the checkpoint that has them is never replicated."""
    lone = led(is_dynamic=True)
    records = first_batch(lone)
    assert [kind for kind, _ in records] == OPENING
    assert records[1][1].kraft_version == 1
    assert voter_set(records[2][1]) == dynamic_set([1, 2, 3])
    assert len(lone.disk.batches) == 1
    assert lone.core.voters_offset == 2


def test_a_later_leader_does_not_repeat_them() -> None:
    """They are in the log, where followers find them."""
    lone = led(is_dynamic=True)
    follow_up(lone, 2)
    lone.handle(events.ResignRequested(lone.core.epoch))
    lone.lead()
    assert [kind for kind, _ in first_batch(lone)] == [ControlType.LEADER_CHANGE]


def test_a_leader_whose_own_entry_is_out_of_date_rewrites_it() -> None:
    """R-LEAD-2: no other node would report it; the others' entries stay."""
    lone = led(is_dynamic=True)
    follow_up(lone, 2)
    moved = (Endpoint(LISTENER, "elsewhere", 9999),)
    again = Lone(
        is_dynamic=True, log=lone.disk.batches, election=lone.disk.election, endpoints=moved
    )
    again.lead()
    records = first_batch(again)
    assert [kind for kind, _ in records] == OPENING
    voters = voter_set(records[2][1])
    assert voters.endpoint(1, LISTENER) == moved[0]
    assert voters.without(1) == dynamic_set([2, 3])
    assert again.core.voters == voters


@pytest.mark.parametrize("voters", [(1,), (1, 2, 3)])
def test_nothing_is_appended_before_the_voters_are_committed(voters: tuple[int, ...]) -> None:
    """KIP-853: until then another first leader could write other voters at the same place."""
    lone = Lone(voters=voters, is_dynamic=True, is_slow=True)
    lone.lead()
    request = events.AppendRequested(1, lone.core.epoch, [b"x"])
    [refused] = [one for one in lone.handle(request) if isinstance(one, effects.AppendRefused)]
    assert (refused.reason, "not committed yet" in refused.detail) == ("NotLeader", True)
    assert lone.core.end_offset == 3
    lone.flush(lone.all_of(effects.FlushLog)[-1])
    if len(voters) > 1:
        fetches(lone, 2)
    assert lone.core.high_watermark == 3
    [accepted] = [one for one in lone.handle(request) if isinstance(one, effects.AppendAccepted)]
    assert (accepted.base_offset, accepted.last_offset) == (3, 3)


def test_a_leader_of_configured_voters_takes_records_at_once() -> None:
    """There is nothing that another leader could have written differently."""
    lone = led()
    found = lone.handle(events.AppendRequested(1, lone.core.epoch, [b"x"]))
    assert [type(one) for one in found][:1] == [effects.AppendAccepted]


def test_a_state_machine_may_write_after_the_whole_batch() -> None:
    """KAFKA-15345: it is told of its leadership with the next offset."""
    lone = Lone(is_dynamic=True)
    lone.handle(events.ListenerRegistered(7))
    lone.lead()
    follow_up(lone, 2)
    lone.handle(events.ListenerConsumed(7, 1))
    lone.handle(events.ListenerConsumed(7, 3))
    [told] = [one for one in lone.all_of(effects.LeaderChanged) if one.leader_id == 1]
    assert told.end_offset == 3
    wanted = events.AppendRequested(1, lone.core.epoch, [b"x"], told.end_offset)
    assert [type(one) for one in lone.handle(wanted)][:1] == [effects.AppendAccepted]


def test_a_node_without_the_checkpoint_learns_the_voters_from_the_log() -> None:
    """It starts with only addresses to ask."""
    cluster = Cluster([1, 2, 3], [4], dynamic=True)
    cluster.start(1, 2, 3, 4)
    assert len(cluster.core(4).voters) == 0
    assert cluster.run_until(lambda: cluster.core(4).high_watermark == 3)
    assert (cluster.core(4).voters, cluster.core(4).kraft_version) == (dynamic_set([1, 2, 3]), 1)
    assert not cluster.core(4).is_voter
