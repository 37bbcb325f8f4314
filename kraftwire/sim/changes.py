"""Checks voter changes: what a leader may write, and the answers to operators.

Invariants S12 and S16, based only on the current sets.
"""

from __future__ import annotations

from kraftwire.sim import words
from kraftwire.sim.violation import Violation
from kraftwire.sim.voters import InForce, Key, Voters


def check_change(node: int, now: InForce, *, high_watermark: int, has_committed: bool) -> None:
    """A leader writes a voter set. S16: one member differs, and all before is committed.

    `now` is in effect from then on; `has_committed` is True if the leader knows that a record of
    its own epoch is committed.
    """
    before = now.before
    if before is None or now.offset == before.offset:
        return
    old, new = _comparable(before.voters, now.voters)
    if not new:
        raise Violation("S16", f"{node} writes a voter set of nobody")
    if old == new:
        return
    if len(old ^ new) > 1:
        raise Violation(
            "S16",
            f"{node} changes more than one voter at once",
            f"in force: {words.voters(sorted(old))}",
            f"written: {words.voters(sorted(new))}",
        )
    if before.offset >= high_watermark:
        raise Violation(
            "S16", f"{node} changes voters, the set at {before.offset} is not committed"
        )
    if not has_committed:
        raise Violation("S16", f"{node} changes voters, nothing of its epoch is committed")


def _comparable(old: Voters, new: Voters) -> tuple[set[Key], set[Key]]:
    """Return both sets in comparable form: the upgrade from kraft.version 0 adds directory ids."""
    if any(any(member[1]) for member in old):
        return set(old), set(new)
    return {(one[0], b"") for one in old}, {(one[0], b"") for one in new}


def check_added(committed: InForce, key: Key) -> None:
    """Check the answer to an operator that a voter is added, and that this is committed. S12."""
    if not any(key in force.voters for force in committed.past()):
        raise Violation(
            "S12",
            f"voter {key[0]} was acknowledged, and is in no committed set",
            f"committed: {words.voters(committed.voters)}",
        )


def check_removed(committed: InForce, key: Key) -> None:
    """Check the answer to an operator that a voter is removed, and that this is committed. S12."""
    for force in committed.past():
        if key not in force.voters and force.before is not None and key in force.before.voters:
            return
    raise Violation(
        "S12",
        f"the removal of voter {key[0]} was acknowledged, and is not committed",
        f"committed: {words.voters(committed.voters)}",
    )
