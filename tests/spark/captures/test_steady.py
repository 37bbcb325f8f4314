"""The lane for runs of alike frames gives the same rows, in the same order, as frame by frame."""

from __future__ import annotations

import lzma
import random
import struct
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.capture.framing.health import Health  # noqa: E402
from kraftwire.capture.packets.pcap import read_packets  # noqa: E402
from kraftwire.capture.packets.source import CaptureSource  # noqa: E402
from kraftwire.spark.captures import (  # noqa: E402
    CAPTURE_TABLES,
    Selection,
    Series,
    Tables,
    decode_tables,
    index_capture,
    tables,
)
from kraftwire.spark.captures.steady.harvest import Harvest  # noqa: E402
from kraftwire.spark.captures.walk import Walk  # noqa: E402
from tests.support.capture_damage import damage, recut, segments_of  # noqa: E402
from tests.support.captures import GOLDEN, golden, shared  # noqa: E402

SHARED = (
    "a_hard.pcap", "a_kraft_quorum.pcapng", "b_hard_mid.pcap", "b_mixed_clients.pcapng",
    "d_tls.pcapng", "e_sasl.pcapng",
)  # fmt: skip
NEVER = 1 << 60
LONG = Path(__file__).parents[2] / "golden" / "captures" / "kraft_quorum.pcapng.xz"


def _assert_same(
    paths: Path | list[Path],
    monkeypatch: pytest.MonkeyPatch,
    wanted: Collection[str] = CAPTURE_TABLES,
    *,
    portion_bytes: int | None = None,
) -> int:
    """Decode with the lane and without it; returns how many frames the lane took.

    With `portion_bytes` no connection is held as a whole.
    """
    taken = 0
    take = Harvest.take

    def counted(self: Harvest, *pending: object) -> object:
        nonlocal taken
        taken += len(self._run.starts)
        return take(self, *pending)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Harvest, "take", counted)
        # Short runs, too, so that small captures take it.
        patch.setattr(tables, "PACKETS_MIN", 8)
        patch.setattr("kraftwire.spark.captures.steady.lane.PACKETS_MIN", 8)
        if portion_bytes is not None:
            patch.setattr(tables, "_HELD_BYTES_MAX", 0)
            patch.setattr("kraftwire.spark.captures.pieces._PORTION_BYTES", portion_bytes)
            patch.setattr(Walk, "run_bytes_max", 1)
        found = decode_tables(paths, tables=wanted)
    with monkeypatch.context() as patch:
        patch.setattr(tables, "PACKETS_MIN", NEVER)
        slow = decode_tables(paths, tables=wanted)
    assert found.keys() == slow.keys()
    for name, table in slow.items():
        assert found[name].equals(table), name
    return taken


def _packets(path: Path) -> list[tuple[int, bytes]]:
    with CaptureSource(str(path)) as source:
        return [
            (time_ns, bytes(data[start : start + captured]))
            for time_ns, _, data, start, captured, *_ in read_packets(source, Health())
        ]


def _written(packets: list[tuple[int, bytes]], path: Path) -> Path:
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)]
    for time_ns, data in packets:
        parts.append(struct.pack("<IIII", *divmod(time_ns, 1_000_000_000), len(data), len(data)))
        parts.append(data)
    path.write_bytes(b"".join(parts))
    return path


@pytest.mark.parametrize("name", GOLDEN)
def test_small_captures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections of a few dozen packets."""
    _assert_same(golden(name), monkeypatch)


@pytest.mark.parametrize("name", SHARED)
def test_shared_captures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quorums through failures, clients of many kinds, and damage."""
    taken = _assert_same(shared("captures", f"{name}.xz"), monkeypatch)
    assert taken > 5_000 or not name.startswith("a_")


@pytest.mark.parametrize("name", GOLDEN)
def test_small_captures_in_portions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame may begin in one portion and end in a later one."""
    _assert_same(golden(name), monkeypatch, portion_bytes=3_000)


def test_long_captures_in_portions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is known about a connection is kept from portion to portion, and from file to file."""
    path = _written(_packets(LONG), tmp_path / "long.pcap")
    assert _assert_same(path, monkeypatch, portion_bytes=100_000) > 5_000
    packets = _packets(LONG)[:6_000]
    halves = packets[:2_500], packets[2_500:]
    paths = [_written(each, tmp_path / f"{len(each)}.pcap") for each in halves]
    assert _assert_same(paths, monkeypatch, portion_bytes=30_000) > 2_000


@pytest.mark.parametrize("seed", range(3))
def test_damaged_captures_in_portions(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Earlier packets may come again in a later portion."""
    path = tmp_path / "damaged.pcap"
    path.write_bytes(damage(segments_of(golden("quorum")), seed))
    _assert_same(path, monkeypatch, portion_bytes=5_000)


def _chosen(path: Path, selection: Selection) -> dict[str, list[object]]:
    """The rows of chosen frames."""
    series = Series([index_capture(path)])
    made = Tables(CAPTURE_TABLES, selection)
    found: dict[str, list[object]] = {name: [] for name in made.rows}
    for name, batch in made.bin(series, range(1, len(series.talks) + 1)):
        found[name] += batch.to_pylist()
    for name, batch in made.take():
        found[name] += batch.to_pylist()
    return found


def _selections(path: Path) -> Iterator[Selection]:
    """Times within a capture, and APIs that are frequent, rare, or inform about others."""
    rows = decode_tables(path, tables=("frames",))["frames"]
    times = sorted(rows["time_ns"].to_pylist())
    early, late = times[len(times) // 3], times[2 * len(times) // 3]
    yield Selection(since=early)
    yield Selection(until=late)
    yield Selection(since=early, until=late, apis=frozenset({1}))
    for apis in ({1}, {18}, {3, 0}, {52, 53, 55}, {11, 12, 14}, {999}):
        yield Selection(apis=frozenset(apis))


@pytest.mark.parametrize("path", [LONG, *map(golden, GOLDEN)], ids=lambda path: path.name)
def test_chosen_frames(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice of times or APIs leaves the same rows with the lane as without it."""
    monkeypatch.setattr("kraftwire.spark.captures.steady.lane.PACKETS_MIN", 8)
    for selection in _selections(path):
        with monkeypatch.context() as patch:
            patch.setattr(tables, "PACKETS_MIN", 8)
            found = _chosen(path, selection)
            patch.setattr(tables, "PACKETS_MIN", NEVER)
            assert found == _chosen(path, selection), selection


@pytest.mark.parametrize(
    "wanted", [("exchanges",), ("frames", "batches"), ("raft_exchanges",), ("files",)]
)
def test_some_tables_alone(wanted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is the same whatever others are wanted."""
    assert _assert_same(LONG, monkeypatch, wanted) > 5_000


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", GOLDEN)
def test_damaged_captures(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Copies, losses and packets out of order, in packets of the usual size and in long ones."""
    segments = segments_of(golden(name))
    path = tmp_path / "damaged.pcap"
    path.write_bytes(damage(recut(segments) if seed % 2 else segments, seed))
    _assert_same(path, monkeypatch)


def _part(seed: int) -> Iterator[tuple[int, bytes]]:
    """The packets of a part of a long capture, some bytes of their payloads changed."""
    generator = random.Random(seed)
    packets = _packets(LONG)
    begin = generator.randrange(len(packets) - 6_000)
    for time_ns, data in packets[begin : begin + 6_000]:
        changed = bytearray(data)
        if len(data) > 70 and generator.random() < 0.02:
            changed[generator.randrange(54, len(data))] ^= 1 << generator.randrange(8)
        yield time_ns, bytes(changed)


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lengths, ids, CRCs and numbers that are wrong, in the middle of equal frames."""
    path = _written(list(_part(seed)), tmp_path / "changed.pcap")
    assert _assert_same(path, monkeypatch) > 500


@pytest.mark.parametrize("seed", range(2))
def test_a_rotated_series(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs continue from one file to the next."""
    generator = random.Random(seed)
    packets = _packets(LONG)[:9_000]
    cuts = [0, *sorted(generator.sample(range(1, len(packets)), 3)), len(packets)]
    paths = [
        _written(packets[begin:end], tmp_path / f"part{begin}.pcap")
        for begin, end in pairwise(cuts)
    ]
    assert _assert_same(paths, monkeypatch) > 2_000


def test_a_cut_capture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file ends inside a packet."""
    path = tmp_path / "cut.pcap"
    path.write_bytes(lzma.decompress(golden("quorum").read_bytes())[:-9])
    assert _assert_same(path, monkeypatch) > 100
