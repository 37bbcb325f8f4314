"""The verdicts: what kills, what survives, and what proves nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from kraftwire.raft.voters import VoterSet
from tests.history.putting_back import Edit
from tests.mutants.catalogue import ALL
from tests.mutants.figures import as_json, as_table
from tests.mutants.mutant import UNTIMED, Mutant
from tests.mutants.running import Verdict, checked, run

_HALF = next(one for one in ALL if one.name == "half of the votes win")


def _tried(*mutants: Mutant) -> list[Verdict]:
    return checked(list(run(mutants, 1)))


def _ring(folder: Path, check: str) -> str:
    """A ring of one test with this check."""
    path = folder / "test_ring.py"
    path.write_text(
        "from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet\n"
        "THREE = VoterSet.of(*(Voter(ReplicaKey(one)) for one in (1, 2, 3, 4)))\n"
        f"def test_ring():\n    {check}\n"
    )
    return str(path)


def test_a_test_that_fails_only_with_the_mutant_kills_it(tmp_path: Path) -> None:
    """In a separate process: in this one the rule still holds."""
    [verdict] = _tried(replace(_HALF, ring=_ring(tmp_path, "assert THREE.majority == 3")))
    assert verdict.is_killed
    assert verdict.by.endswith("::test_ring")
    assert VoterSet().majority == 1


def test_a_mutant_that_no_test_notices_survives(tmp_path: Path) -> None:
    """Finding these is the purpose of the mutants."""
    [verdict] = _tried(replace(_HALF, ring=_ring(tmp_path, "assert THREE.majority > 1")))
    assert (verdict.by, verdict.problem, verdict.is_killed) == ("", "", False)
    shown = json.loads(as_json([verdict], 9, 1.0))
    assert (shown["tried"], shown["killed"], shown["survived"]) == (1, 0, [_HALF.name])


def test_a_test_that_fails_without_the_mutant_too_proves_nothing(tmp_path: Path) -> None:
    """A broken test fails with every mutant."""
    [verdict] = _tried(replace(_HALF, ring=_ring(tmp_path, "assert THREE.majority == 9")))
    assert (bool(verdict.by), verdict.is_killed) == (True, False)
    assert "without the mutant too" in verdict.problem


def test_an_edit_that_does_not_apply_and_a_missing_ring_prove_nothing(tmp_path: Path) -> None:
    """The code has changed, or a test has been renamed."""
    old = Mutant("old", "none", Edit(_HALF.edit.where, "return 17", "return 18"))
    lost = replace(_HALF, ring=str(tmp_path / "test_that_is_not_there.py"))
    found = _tried(old, lost)
    assert [one.is_killed for one in found] == [False, False]
    assert "does not apply" in found[0].problem
    assert "no such test" in found[1].problem
    assert json.loads(as_json(found, 9, 1.0))["proves_nothing"] == [old.name, lost.name]


def test_the_random_walk_kills_with_a_seed_that_is_sound_without_the_mutant() -> None:
    """Only that seed is tried again."""
    [verdict] = _tried(replace(_HALF, ring=UNTIMED))
    assert verdict.is_killed
    assert f"at seed {verdict.seed}" in verdict.by
    assert "| `untimed` | 1 |" in as_table([verdict])


def test_none_begins_once_the_time_is_up() -> None:
    """What was not tried has no verdict."""
    assert list(run([_HALF, _HALF], 1, until=0.0)) == []
