"""The catalogue fits the present code: a mutant that cannot be tried protects no rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.putting_back import put_back
from tests.mutants.catalogue import ALL
from tests.mutants.mutant import UNTIMED, Mutant

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_the_edit_applies(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """When code changes, its mutant has to change too, and its ring has to be reviewed."""
    put_back(mutant.bug, monkeypatch)


def test_the_rings_are_there() -> None:
    """A ring that pytest does not find kills nothing."""
    rings = {one for mutant in ALL for one in mutant.ring.split()} - {UNTIMED}
    assert [one for one in sorted(rings) if not (_ROOT / one.partition("::")[0]).exists()] == []
