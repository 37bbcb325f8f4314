"""Large captures for the benchmarks: copies of one that take as much work as a recording."""

from __future__ import annotations

import lzma
from pathlib import Path

from kraftwire.spark.captures import Series, Tables, index_capture
from tests.bench.inputs import grown
from tests.support.captures import golden


def test_every_copy_has_its_own_connections_and_times(tmp_path: Path) -> None:
    """Copies that merged into one connection would be retransmissions, and cost nothing."""
    path = tmp_path / "quorum.pcap"
    path.write_bytes(lzma.decompress(golden("quorum").read_bytes()))
    size = 3 * path.stat().st_size - 100
    large = grown(path, size)
    assert size <= large.stat().st_size < size + 200
    assert grown(path, size) == large
    one, three = Series([index_capture(path)]), Series([index_capture(large)])
    assert len(three.talks) == 3 * len(one.talks)
    assert max(talk.last_ns for talk in one.talks) < sorted(
        talk.first_ns for talk in three.talks
    )[len(one.talks)]
    assert _exchanges(three) == 3 * _exchanges(one) > 0


def _exchanges(series: Series) -> int:
    tables = Tables(("exchanges",))
    made = list(tables.bin(series, list(range(1, len(series.talks) + 1)))) + list(tables.take())
    return sum(batch.num_rows for _, batch in made)
