"""Replicas, voter sets and votes in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kraftwire.raft.effects import ElectionState
from kraftwire.wire.json_form import uuid_to_text

_TAIL = 4


def replica(node: int, directory_id: bytes = b"") -> str:
    """Describe a replica: its id, and its directory id if known."""
    return f"{node} (directory {uuid_to_text(directory_id)})" if any(directory_id) else str(node)


def key(node: int, directory_id: bytes) -> str:
    """Describe a replica briefly: its id, and the end of its directory id."""
    return f"{node}/{uuid_to_text(directory_id)[-_TAIL:]}" if any(directory_id) else str(node)


def voters(keys: Sequence[tuple[int, bytes]]) -> str:
    """Describe a voter set: ids, each with the end of its directory id if there is one."""
    return ", ".join(key(*one) for one in keys) or "nobody"


def vote(
    voter: int, epoch: int, candidate: int, directory_id: bytes = b"", own_id: bytes = b""
) -> str:
    """Describe a vote: voter, epoch and candidate, -1 for none.

    `directory_id` is that of the candidate, `own_id` that of the voter.
    """
    given = f"for candidate {replica(candidate, directory_id)}" if candidate >= 0 else "none"
    return f"voter {replica(voter, own_id)}, epoch {epoch}, vote {given}"


def election(state: ElectionState) -> str:
    """Describe the contents of a quorum-state file, with whole directory ids."""
    return _election(state, replica)


def stored(state: ElectionState) -> str:
    """Describe the contents of a quorum-state file briefly."""
    return _election(state, key)


def _election(state: ElectionState, named: Callable[[int, bytes], str]) -> str:
    parts = [f"epoch {state.epoch}"]
    if state.leader_id >= 0:
        parts.append(f"leader {state.leader_id}")
    if state.voted is not None:
        parts.append(f"vote for candidate {named(state.voted.id, state.voted.directory_id)}")
    return ", ".join(parts)
