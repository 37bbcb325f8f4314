"""What the engine makes of bytes of captures is what Python makes of them."""

from __future__ import annotations

import lzma
import random
from collections import Counter
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="needs the extra spark")

from kraftwire import engine  # noqa: E402
from tests.engine.captures import FORMS, damaged, same_index  # noqa: E402
from tests.engine.packets import search_packets  # noqa: E402
from tests.fuzz.outcome import seed  # noqa: E402
from tests.support.captures.decoded import golden  # noqa: E402

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

CASES = 2_000


def test_both_engines_agree_on_random_captures() -> None:
    """For ranges in any order, also empty ones and those at the end, and for damaged captures."""
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


@pytest.mark.parametrize("form", [None, *FORMS])
def test_both_engines_make_the_same_index(form: str | None, tmp_path: Path) -> None:
    """On every usual link and in both formats: connections, runs of packets, counts, names."""
    data = lzma.decompress(golden("quorum").read_bytes())
    path = tmp_path / "capture"
    path.write_bytes(data if form is None else FORMS[form](data))
    index = same_index(str(path))
    assert index.payload > 10_000
    assert len(index.connections) > 3


def test_both_engines_make_the_same_index_of_damaged_captures(tmp_path: Path) -> None:
    """Packets that are lost, repeated, in another order, cut or changed."""
    generator = random.Random(seed())
    path = tmp_path / "capture"
    for _ in range(40):
        path.write_bytes(damaged(generator))
        same_index(str(path))


def test_ranges_near_and_far_from_each_other_are_read_from_a_file(tmp_path: Path) -> None:
    """Those that lie close together are read at once."""
    generator = random.Random(seed())
    data = generator.randbytes(1_000_000)
    path = tmp_path / "bytes"
    path.write_bytes(data)
    with path.open("rb") as file:
        for _ in range(50):
            starts, sizes, position = [], [], 0
            while position < len(data) - 200_000:
                starts.append(position)
                sizes.append(generator.choice((0, 1, 100, 5_000, 70_000)))
                position += sizes[-1] + generator.choice((0, 1, 4_000, 5_000, 60_000))
            parts = [data[start:][:size] for start, size in zip(starts, sizes, strict=True)]
            found = engine.core.read_ranges(file.fileno(), np.array(starts), np.array(sizes))
            assert found == b"".join(parts)


def test_ranges_are_read_from_a_file(tmp_path: Path) -> None:
    """In any order; None where the file ends before a range does."""
    path = tmp_path / "bytes"
    path.write_bytes(b"abcdef")
    with path.open("rb") as file:
        read = engine.core.read_ranges
        starts, sizes = np.array([4, 0, 2]), np.array([2, 1, 0])
        assert read(file.fileno(), starts, sizes) == b"efa"
        assert read(file.fileno(), np.array([5]), np.array([2])) is None
        with pytest.raises(ValueError, match="outside of a file"):
            read(file.fileno(), np.array([-1]), np.array([2]))
