"""A lone core in the state in which most tests of voters and snapshots begin: it leads a quorum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kraftwire.raft import effects, events
from kraftwire.raft.voters import ReplicaKey, VoterSet
from tests.support.raft_lone import Lone
from tests.support.raft_messages import fetch


def keys(voters: VoterSet) -> list[ReplicaKey]:
    """The replicas in a set."""
    return [one.key for one in voters]


def fetches(lone: Lone, replica: int, offset: int | None = None, **fields: Any) -> Any:
    """Let a replica fetch at an offset, by default the leader's log end: it has everything before.

    Returns: the answer, which comes at once unless `fields` say otherwise.
    """
    core = lone.core
    at = core.end_offset if offset is None else offset
    fields = {"max_wait_ms": 0, **fields}
    return lone.request(fetch(replica, at, lone.epoch_before(at), core.epoch, **fields))


def follow_up(lone: Lone, *replicas: int) -> None:
    """Let these replicas have everything; with a majority of voters, all is then committed."""
    for one in replicas:
        fetches(lone, one)


def leading(
    voters: Sequence[int] | VoterSet = (1, 2, 3), *, is_dynamic: bool = True, **config: Any
) -> Lone:
    """Node 1 leads, and the first batch of its epoch is committed."""
    lone = Lone(voters=voters, is_dynamic=is_dynamic, **config)
    lone.lead()
    follow_up(lone, *(one.key.id for one in lone.core.voters if one.key.id != lone.id))
    assert lone.core.high_watermark == lone.core.end_offset
    return lone


def caught_up(lone: Lone, replica: int) -> None:
    """Let an observer have everything that the leader has."""
    fetches(lone, replica)


def append(lone: Lone, *values: bytes) -> list[effects.Effect]:
    """Have the leader's state machine append, and let the linger time pass."""
    before = len(lone.effects)
    lone.handle(events.AppendRequested(1, lone.core.epoch, values or (b"x",)))
    lone.wait(lone.config.timers.append_linger_ms)
    return lone.effects[before:]


def replies(found: Sequence[effects.Effect]) -> list[Any]:
    """The answers among effects."""
    return [one.message for one in found if isinstance(one, effects.SendReply)]
