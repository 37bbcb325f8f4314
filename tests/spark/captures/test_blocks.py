"""An index made by blocks equals the one made packet by packet."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire import engine
from kraftwire.spark.captures import FileIndex, blocks, index_capture
from kraftwire.spark.captures.blocks import BlockWalk
from kraftwire.spark.captures.walk import Walk
from tests.fuzz.outcome import seed
from tests.support.capture_damage import damage, segments_of
from tests.support.captures import GOLDEN, golden
from tests.support.pcap_builder import pcap


@pytest.fixture(autouse=True)
def _single_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every packet be a run, and every block hold a few of them."""
    monkeypatch.setattr(Walk, "run_bytes_max", 1)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 700)


def _assert_same(path: Path) -> FileIndex:
    found, wanted = BlockWalk(str(path), None).index(), Walk(str(path), None).index()
    assert found == wanted
    return found


@pytest.mark.parametrize("engine_name", engine.available())
@pytest.mark.parametrize("name", GOLDEN)
def test_captures(name: str, engine_name: str, tmp_path: Path) -> None:
    """Connections that begin, end, have copies and give names of topics."""
    path = tmp_path / "plain.pcap"
    path.write_bytes(damage(segments_of(golden(name)), 0))
    before = engine.name()
    engine.use(engine_name)
    try:
        found = _assert_same(path)
    finally:
        engine.use(before)
    assert found.payload > 0
    assert any(talk.round_trip_ns is not None for talk in found.talks) or name == "midstream"


@pytest.mark.parametrize("name", GOLDEN)
def test_what_connections_learn_from_each_other(name: str) -> None:
    """Requests and responses are read in order, wherever blocks end."""
    found = _assert_same(golden(name))
    assert found.memory == index_capture(golden(name)).memory


@pytest.mark.parametrize("tail", [b"x", bytes(15), bytes(16), b"\xff" * 40, bytes(8) + b"\xff" * 9])
def test_files_that_end_oddly(tail: bytes, tmp_path: Path) -> None:
    """Cut off in a packet or in its header, or with an impossible length."""
    data = damage(segments_of(golden("clients")), 1)
    for end in (len(data), len(data) - 3, 24):
        path = tmp_path / "odd.pcap"
        path.write_bytes(data[:end] + tail)
        _assert_same(path)


def test_random_bytes_in_packets(tmp_path: Path) -> None:
    """Headers of all kinds: other protocols, fragments, lengths beyond the packet."""
    generator = random.Random(seed())
    data = damage(segments_of(golden("quorum")), 2)
    path = tmp_path / "random.pcap"
    for _ in range(30):
        changed = bytearray(data)
        at = 24
        while at + 16 < len(data):
            size = int.from_bytes(data[at + 8 : at + 12], "little")
            if generator.random() < 0.3 and size:
                changed[at + 16 + generator.randrange(min(size, 54))] = generator.randrange(256)
            at += 16 + size
        path.write_bytes(changed)
        _assert_same(path)


def test_packets_larger_than_a_block(tmp_path: Path) -> None:
    """A block grows until a whole packet is in it."""
    path = tmp_path / "large.pcap"
    path.write_bytes(pcap([(at, bytes(5_000 + at)) for at in range(5)]))
    assert _assert_same(path).packets == 5
