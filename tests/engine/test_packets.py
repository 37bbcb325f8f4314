"""What the engine makes of bytes of captures is what Python makes of them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

np = pytest.importorskip("numpy", reason="needs the extra spark")

from kraftwire import engine  # noqa: E402
from tests.engine.packets import search_packets  # noqa: E402
from tests.fuzz.outcome import seed  # noqa: E402

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

CASES = 2_000


def test_both_engines_agree_on_random_captures() -> None:
    """For ranges in any order, also empty ones and those at the end."""
    generator = random.Random(seed())
    counts: Counter[str] = Counter()
    for _ in range(CASES):
        counts += search_packets(generator)
    assert counts["ranges"] > CASES


@pytest.mark.parametrize(
    ("start", "size"), [(-1, 1), (0, 5), (4, 1), (5, 0), (2, -1), (2**62, 2**62), (1, 2**63 - 1)]
)
def test_ranges_outside_of_the_data_are_refused(start: int, size: int) -> None:
    """They come from the index of a file, which may have been shortened since."""
    with pytest.raises(ValueError, match="outside of the data"):
        engine.core.join_ranges(b"abcd", np.array([0, start]), np.array([1, size]))


def test_as_many_starts_as_sizes() -> None:
    """A missing size would be read from beyond its buffer."""
    for starts, sizes in [(b"", bytes(8)), (bytes(16), bytes(8)), (bytes(7), bytes(7))]:
        with pytest.raises(ValueError, match="outside of the data"):
            engine.core.join_ranges(b"abcd", starts, sizes)
