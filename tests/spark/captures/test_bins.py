"""Decoding by connection gives what one pass over the file gives, in whatever bins."""

from __future__ import annotations

import gzip
import lzma
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.capture.capture import Capture
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.spark.captures import Recording, decode_tables, index_capture
from kraftwire.spark.captures.file_index import IndexedConnection
from kraftwire.spark.captures.plan import bins
from tests.support.captures.damage import damage, recut, segments_of
from tests.support.captures.decoded import GOLDEN, golden

Row = dict[str, Any]
PLACES = ("kafka", "tls", "other", "duplicate", "header", "bad")


def _one_pass(path: Path) -> Counter[tuple[Any, ...]]:
    """The frames of a file by one pass over it, with their findings."""
    decoder = FrameDecoder(Settings(RecordsForm("summary")))
    found: Counter[tuple[Any, ...]] = Counter()
    for frame in Capture(path):
        decoded = decoder.decode(frame)
        findings = [(f.id, f.offset, f.path) for f in decoded.findings if f.id != "not-canonical"]
        found[
            frame.position, frame.end_position, frame.connection, frame.direction, frame.time_ns,
            frame.api_key, frame.correlation_id, frame.size, decoded.remaining, tuple(findings),
        ] += 1  # fmt: skip
    return found


def _frames(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(
        (
            row["position"], row["end_position"], row["connection"], row["direction"],
            row["time_ns"], row["api_key"], row["correlation_id"], row["size"], row["remaining"],
            tuple((each["id"], each["offset"], each["path"]) for each in row["findings"]),
        )
        for row in rows
    )  # fmt: skip


def _sorted(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def _assert_conserved(files: list[Row]) -> None:
    for row in files:
        assert sum(row[f"{place}_bytes"] for place in PLACES) == row["size"], row


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["quorum", "clients"])
def test_damaged_captures_are_the_same_in_any_bins(name: str, seed: int, tmp_path: Path) -> None:
    """With losses, copies and reordered packets, separate decoding could give other results."""
    segments = segments_of(golden(name))
    path = tmp_path / "damaged.pcap"
    path.write_bytes(damage(recut(segments) if seed % 2 else segments, seed))
    whole = {n: t.to_pylist() for n, t in decode_tables(path).items()}
    assert _frames(whole["frames"]) == _one_pass(path)
    _assert_conserved(whole["files"])
    for size in (1, 20_000):
        cut = decode_tables(path, bytes_max=size)
        for table, rows in whole.items():
            assert _sorted(cut[table].to_pylist()) == _sorted(rows), table


@pytest.mark.parametrize("name", GOLDEN)
def test_packed_captures_give_what_plain_ones_give(name: str, tmp_path: Path) -> None:
    """Positions are those of the unpacked file; a packed file cannot be read at them."""
    raw = lzma.decompress(golden(name).read_bytes())
    plain, packed = tmp_path / "c.pcap", tmp_path / "c.pcap.gz"
    plain.write_bytes(raw)
    packed.write_bytes(gzip.compress(raw))
    tables = decode_tables(plain)
    for table, made in decode_tables(packed, bytes_max=1).items():
        rows = made.to_pylist()
        for row in rows:
            for column in row.keys() & {"file", "response_file", "recording"}:
                row[column] = row[column] and str(plain)
        assert _sorted(rows) == _sorted(tables[table].to_pylist()), table


def test_a_rotated_capture_is_read_as_one(tmp_path: Path) -> None:
    """A response in the next file belongs to its request in this one."""
    raw = lzma.decompress(golden("quorum").read_bytes())
    borders = [24]
    while borders[-1] < len(raw):
        size = int.from_bytes(raw[borders[-1] + 8 : borders[-1] + 12], "little")
        borders.append(borders[-1] + 16 + size)
    paths = []
    cuts = [borders[0], borders[len(borders) // 3], borders[len(borders) // 2], len(raw)]
    for at, (begin, end) in enumerate(pairwise(cuts)):
        paths.append(tmp_path / f"part{at}.pcap")
        paths[-1].write_bytes(raw[:24] + raw[begin:end])
    whole_path = tmp_path / "whole.pcap"
    whole_path.write_bytes(raw)
    whole, parts = decode_tables(whole_path), decode_tables(paths, bytes_max=10_000)
    moved = {str(path): begin - 24 for path, begin in zip(paths, cuts, strict=False)}
    for table in ("frames", "exchanges", "batches", "quorum_observations"):
        rows = parts[table].to_pylist()
        for row in rows:
            row["position"] += moved[row["file"]]
            row["file"] = str(whole_path)
            for name in ("end_position", "response_file", "response_position"):
                row.pop(name, None)
        wanted = whole[table].to_pylist()
        for row in wanted:
            for name in ("end_position", "response_file", "response_position"):
                row.pop(name, None)
        assert _sorted(rows) == _sorted(wanted), table
    _assert_conserved(parts["files"].to_pylist())
    assert [row["file"] for row in parts["files"].to_pylist()] == list(map(str, paths))


def test_a_cut_capture_is_reported_and_conserved(tmp_path: Path) -> None:
    """The bytes after the last whole packet are in bad_input and in the sums."""
    raw = lzma.decompress(golden("clients").read_bytes())
    path = tmp_path / "cut.pcap"
    path.write_bytes(raw[:-7])
    tables = {name: made.to_pylist() for name, made in decode_tables(path).items()}
    _assert_conserved(tables["files"])
    told = [row for row in tables["bad_input"] if row["id"] == "file-cut"]
    assert len(told) == 1
    assert told[0]["length"] == tables["files"][0]["bad_bytes"] > 0


def test_bins_are_about_equal_and_hold_every_connection_once() -> None:
    """The largest bin decides how long a job takes."""
    series = Recording([index_capture(golden("quorum"))])
    chosen = bins(dict(enumerate(series.connections, 1)), 30_000)
    numbers = sorted(number for each in chosen for number in each)
    assert numbers == list(range(1, len(series.connections) + 1))
    loads = [sum(series.connections[number - 1].size for number in each) for each in chosen]
    largest = max(indexed.size for indexed in series.connections)
    assert max(loads) <= max(30_000, largest) + min(loads)


def test_names_of_topics_are_known_on_all_connections() -> None:
    """A consumer that fetches by id may never ask for names on the connection it fetches on."""
    index = index_capture(golden("clients"))
    assert index.shared_names.topics
    rows = decode_tables(golden("clients"))["partition_traffic"].to_pylist()
    assert all(row["topic"] for row in rows)


def test_a_long_connection_is_decoded_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SharedNames must not depend on the bytes of a single connection."""
    from kraftwire.spark.captures import tables

    path = tmp_path / "damaged.pcap"
    path.write_bytes(damage(segments_of(golden("quorum")), 3))
    wanted = decode_tables(path)
    monkeypatch.setattr(tables, "_HELD_BYTES_MAX", 2000)
    monkeypatch.setattr(tables, "_PAUSE_FRAMES", 7)
    for table, made in decode_tables(path).items():
        assert _sorted(made.to_pylist()) == _sorted(wanted[table].to_pylist()), table


def test_very_many_connections_are_not_in_one_bin() -> None:
    """Each costs memory of its own while it is decoded, however little it sent."""
    connections = {at + 1: IndexedConnection(b"key", at, size=74) for at in range(20_000)}
    chosen = bins(connections, 32 * 1024 * 1024)
    assert max(map(len, chosen)) < 8_200
    assert sorted(number for each in chosen for number in each) == list(range(1, 20_001))
