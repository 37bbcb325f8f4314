"""A connection that is decoded in parts gives the same as the whole, wherever it is cut."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

import itertools

from kraftwire.spark.captures import (
    CAPTURE_TABLES,
    CaptureTables,
    Recording,
    Selection,
    decode_tables,
    file_rows,
    index_capture,
)
from kraftwire.spark.captures.connection_parts import decode_part, parts
from kraftwire.spark.captures.packet_index import PacketIndexer
from kraftwire.spark.captures.plan import divide
from tests.support.captures.builder import (
    Segment,
    Session,
    block,
    ethernet,
    interface,
    ip_packet,
    packet_block,
    pcap,
    pcap_of,
    section,
)
from tests.support.captures.busy_connection import busy_connection
from tests.support.captures.damage import damage
from tests.support.captures.decoded import GOLDEN, golden

SEEDS = 120
Rows = dict[str, list[str]]


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a connection be cut after any packet, not only every 256 KiB."""
    monkeypatch.setattr(PacketIndexer, "run_bytes_max", 1)


def _paths(folder: Path, content: bytes, borders: list[int]) -> list[Path]:
    """A pcap file, rotated before some packets."""
    at, packets = 24, []
    while at < len(content):
        size = 16 + int.from_bytes(content[at + 8 : at + 12], "little")
        packets.append(content[at : at + size])
        at += size
    cuts = [0, *sorted(border % len(packets) for border in borders), len(packets)]
    made = []
    for number, (begin, end) in enumerate(itertools.pairwise(cuts)):
        if begin < end:
            made.append(folder / f"part{number}.pcap")
            made[-1].write_bytes(content[:24] + b"".join(packets[begin:end]))
    return made


def _whole(series: Recording, selection: Selection, wanted: tuple[str, ...]) -> Rows:
    tables = CaptureTables(wanted, selection)
    found = list(tables.decode(series, range(1, len(series.connections) + 1)))
    return _rows(tables, series, found)


def _in_parts(
    series: Recording, size: int, selection: Selection, wanted: tuple[str, ...]
) -> tuple[Rows, int]:
    """Rows, and how many parts they come from; each part is decoded as another process would."""
    tables = CaptureTables(wanted, selection)
    found = []
    count = 0
    for number in range(1, len(series.connections) + 1):
        made = list(parts(series, number, size, wanted, selection))
        count += len(made)
        for part in reversed(made):
            again = Recording([pickle.loads(pickle.dumps(file)) for file in series.files])
            only = again.limited_to((number,), part.span)
            found += list(decode_part(tables, only, pickle.loads(pickle.dumps(part))))
    return _rows(tables, series, found), count


def _rows(tables: CaptureTables, series: Recording, found: list[tuple[str, object]]) -> Rows:
    for name, cells in file_rows(series, tables.sums):
        tables.add(name, cells)
    rows: Rows = {name: [] for name in tables.rows}
    for name, batch in [*found, *tables.take_batches()]:
        rows[name] += map(repr, batch.to_pylist())  # type: ignore[attr-defined]
    return {name: sorted(each) for name, each in rows.items()}


def _content(source: random.Random) -> bytes:
    """A capture of one long connection, perhaps damaged, perhaps from the middle on."""
    names = source.sample(GOLDEN, source.randint(1, len(GOLDEN)))
    count = source.choice([20, 40, 80])
    segments = busy_connection(map(golden, names), source, count=count).segments
    if source.random() < 0.3:
        segments = segments[source.randrange(len(segments) // 2) :]
    if source.random() < 0.2:
        segments = [*segments, *_again(segments, source)]
    return damage(segments, source.getrandbits(32)) if source.random() < 0.6 else pcap_of(segments)


def _again(segments: list[Segment], source: random.Random) -> list[Segment]:
    """The next connection between the same ends."""
    late = busy_connection([golden("clients")], source, count=20)
    shift = segments[-1].time_ns - late.segments[0].time_ns + 10**9
    return [
        Segment(s.time_ns + shift, s.source, s.target, s.seq + 77_000, s.ack, s.flags, s.payload)
        for s in late.segments
    ]


def _selection(source: random.Random, series: Recording) -> Selection:
    """Mostly all frames."""
    if source.random() < 0.7:
        return Selection()
    first = min(indexed.first_ns for indexed in series.connections)
    last = max(indexed.last_ns for indexed in series.connections)
    since = source.randint(first, last)
    apis = frozenset({1, 3, 18}) if source.random() < 0.5 else None
    return Selection(since, source.randint(since, last), apis)


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_parts_give_what_the_whole_gives(first: int, tmp_path: Path) -> None:
    """With losses, copies and packets out of order, several files, and a choice of frames."""
    for seed in range(first, first + 20):
        source = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        borders = [source.randrange(1000) for _ in range(source.choice([0, 0, 1, 2]))]
        paths = _paths(folder, _content(source), borders)
        series = Recording([index_capture(path) for path in paths])
        selection = _selection(source, series)
        wanted = source.choice([CAPTURE_TABLES, ("frames", "exchanges", "bad_input")])
        whole = _whole(series, selection, wanted)
        size = source.randint(200, max(indexed.size for indexed in series.connections) // 2)
        cut, count = _in_parts(series, size, selection, wanted)
        assert count > 1, f"seed {seed}: nothing was cut"
        for name, rows in whole.items():
            assert cut[name] == rows, f"seed {seed}: {name} in parts of {size}"


def test_every_place_of_a_connection_can_be_cut(tmp_path: Path) -> None:
    """In a frame, between frames, before the first response and after the last."""
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap_of(busy_connection([golden("sasl")], random.Random(4)).segments))
    series = Recording([index_capture(path)])
    cut, count = _in_parts(series, 1, Selection(), CAPTURE_TABLES)
    assert count == series.connections[0].packets
    assert cut == _whole(series, Selection(), CAPTURE_TABLES)


def _hello(kind: int, size: int) -> bytes:
    body = bytes([kind]) + (size - 4).to_bytes(3, "big") + b"\x03\x03" + bytes(size - 6)
    return b"\x16\x03\x03" + size.to_bytes(2, "big") + body


def _tls(source: random.Random) -> Session:
    session = Session().open().client(_hello(1, 300), mss=100).server(_hello(2, 200), mss=100)
    for _ in range(30):
        data = source.randbytes(source.randint(1, 3000))
        record = b"\x17\x03\x03" + len(data).to_bytes(2, "big") + data
        (session.client if source.random() < 0.5 else session.server)(record, mss=500)
    return session.close()


def _http(source: random.Random) -> Session:
    session = Session().open().client(b"GET / HTTP/1.1\r\n\r\n")
    return session.server(source.randbytes(20_000)).reset(by_client=False)


@pytest.mark.parametrize("make", [_tls, _http])
def test_other_protocols_are_counted_in_parts_too(make: object, tmp_path: Path) -> None:
    """Bytes that are not decoded are still counted in the right place."""
    assert callable(make)
    for seed in range(5):
        source = random.Random(seed)
        path = tmp_path / f"{seed}.pcap"
        path.write_bytes(damage(make(source).segments, seed))
        series = Recording([index_capture(path)])
        cut, count = _in_parts(series, source.randint(200, 4000), Selection(), CAPTURE_TABLES)
        assert count > 1
        assert cut == _whole(series, Selection(), CAPTURE_TABLES), f"seed {seed}"


def test_interfaces_of_pcapng_are_known_in_every_part(tmp_path: Path) -> None:
    """They are at the start of the file, or between packets."""
    session = busy_connection([golden("clients")], random.Random(1), count=60)
    blocks = [section(), interface(options=[(9, b"\x09")])]
    for number, each in enumerate(session.segments):
        if number == len(session.segments) // 2:
            blocks += [block(5, bytes(12)), interface(options=[(9, b"\x06")])]
        is_late = number >= len(session.segments) // 2
        ticks = each.time_ns // 1000 if is_late else each.time_ns
        blocks.append(packet_block(ethernet(ip_packet(each)), ticks, interface_id=int(is_late)))
    path = tmp_path / "capture.pcapng"
    path.write_bytes(b"".join(blocks))
    series = Recording([index_capture(path)])
    cut, count = _in_parts(series, 3000, Selection(), CAPTURE_TABLES)
    assert count > 10
    assert cut == _whole(series, Selection(), CAPTURE_TABLES)
    frames = decode_tables(path, tables=("frames",))["frames"].to_pylist()
    assert {frame["time_ns"] // 10**12 for frame in frames} == {session.now_ns // 10**12}


def test_what_is_passed_on_does_not_grow(tmp_path: Path) -> None:
    """A part needs what earlier parts leave open, not all that they contained."""
    path = tmp_path / "capture.pcap"
    session = busy_connection([golden("clients"), golden("quorum")], random.Random(2))
    path.write_bytes(pcap_of(session.segments))
    series = Recording([index_capture(path)])
    sizes = [len(part.state) for part in parts(series, 1, 5000)]
    assert len(sizes) > 20
    assert max(sizes[-10:]) < 100_000
    assert not sizes[0]


def test_parts_are_about_equal_and_cover_all(tmp_path: Path) -> None:
    """The longest part determines how long a connection takes."""
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap_of(busy_connection([golden("clients")], random.Random(3)).segments))
    series = Recording([index_capture(path)])
    size = series.connections[0].size
    spans = series.spans(1, size // 4)
    assert spans[0][0] == 0
    assert spans[-1][1] == path.stat().st_size
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(spans))
    longest = max(map(len, (piece for _, piece in series.stream(1))))
    files = [series.limited_to((1,), span).files for span in spans]
    loads = [sum(runs.size for file in each for runs in file.runs) for each in files]
    assert max(loads) <= size // len(spans) + longest + 100


def test_packed_and_fragmented_captures_are_not_cut(tmp_path: Path) -> None:
    """Each part of a packed file would unpack all before it."""
    segments = busy_connection([golden("sasl")], random.Random(3)).segments
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap_of(segments))
    assert _is_cut(path)
    assert not _is_cut(golden("sasl"))
    packets = [(each.time_ns, bytearray(ethernet(ip_packet(each)))) for each in segments]
    packets[5][1][20] |= 0x20  # more fragments
    path.write_bytes(pcap([(time_ns, bytes(packet)) for time_ns, packet in packets]))
    assert not _is_cut(path)


def _is_cut(path: Path) -> bool:
    return any(each.is_long for each in divide(Recording([index_capture(path)]), (1,), 1000, 1000))
