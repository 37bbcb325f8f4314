"""Every test file goes to one process, and nobody waits while there is work."""

from __future__ import annotations

import pytest

from tests.support.shifts import BEGINS_WITH, LEFT_FOR_LAST, chosen
from tests.tidy.sources import ROOT

FILES = ("tests/crash/a", "tests/interop/b", "tests/interop/c", "tests/spark/d", "tests/unit/e")


def test_the_folders_are_there() -> None:
    """None was renamed, and each can be taken up by a process that began with another."""
    assert all((ROOT / name).is_dir() for name in BEGINS_WITH)
    assert set(LEFT_FOR_LAST) == set(BEGINS_WITH)


@pytest.mark.parametrize(
    ("process", "order"),
    [(0, "bcaed"), (1, "daebc"), (2, "bcaed"), (3, "aebcd"), (4, "bcaed")],
)
def test_a_process_takes_its_own_kind_first(process: int, order: str) -> None:
    """Then all others, in the order of the folders, those with Spark last."""
    waiting = list(FILES)
    taken = []
    while waiting:
        taken.append(chosen(waiting, process))
        waiting.remove(taken[-1])
    assert "".join(file[-1] for file in taken) == order
