"""The answer to UpdateRaftVoter counts as one to a Fetch: followers wait after it (R-UPD-5, L1)."""

from __future__ import annotations

from kraftwire.sim.plan import draw
from kraftwire.sim.run import run_plan

# In these clusters leaders are lost just after such an answer.
_SEEDS = (19, 26)
_LENGTH_MS = 60_000


def test_a_follower_waits_after_the_answer_to_its_update() -> None:
    """A follower that does not stands for election too early: the first seed alone shows it."""
    outcomes = [run_plan(draw(seed, _LENGTH_MS)) for seed in _SEEDS]
    assert [each.violation for each in outcomes if each.violation] == []
    assert all(each.coverage["leader lost after an update"] for each in outcomes)
