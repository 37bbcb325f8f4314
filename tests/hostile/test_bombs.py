"""Few bytes that would become many: batches, headers, dictionaries (SEC-BOMB)."""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cramjam
import pytest
from crc32c import crc32c

from kraftwire import engine
from kraftwire.cli import main as cli
from kraftwire.controller.image import MetadataImage
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.compression import compress
from kraftwire.records.header import CRC_FIELD, CRC_START, HEADER, HEADER_SIZE, LOG_OVERHEAD
from kraftwire.records.limits import LOG_RECORDS_FREE, BombError, LogBudget, headers_limit
from kraftwire.records.reader import read_batches
from kraftwire.wire.message import Message
from kraftwire.wire.varint import varint
from tests.hostile.served import request_frame
from tests.support.commands.memory import Measured, check_cost, decode, run, show, small_input
from tests.support.metadata.files import SOUND, TOPIC, batch_of, values_of

_NAME = "00000000000000000000.log"
_RECORD = bytes([12, 0, 0, 0, 1, 1, 0])
_JSON = "decode --format jsonl"
_COMMANDS = ("decode", _JSON, "decode -v", "stats", "story raft", "decode --bytes", "records")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _batch(codec: int, data: bytes, count: int, base_offset: int = 0) -> bytes:
    body = compress(codec, data)
    size = HEADER_SIZE - LOG_OVERHEAD + len(body)
    fields = (0, 2, 0, codec, count - 1, 0, 0, -1, -1, -1, count)
    batch = bytearray(HEADER.pack(base_offset, size, *fields) + body)
    batch[CRC_FIELD : CRC_FIELD + 4] = crc32c(bytes(batch[CRC_START:])).to_bytes(4, "big")
    return bytes(batch)


def _segment(folder: Path, data: bytes) -> Path:
    path = folder / "events-0" / _NAME
    path.parent.mkdir()
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("codec", range(1, 5), ids=_CODECS[1:])
def test_millions_of_records_are_a_finding(tmp_path: Path, codec: int) -> None:
    """In zstd 2.3 million were 1,432 bytes, and took 1.1 GB."""
    bomb = _batch(codec, _RECORD * 600_000, 600_000)
    for command in _COMMANDS if codec == 4 else (_JSON,):
        folder = tmp_path / command.replace(" ", "")
        folder.mkdir()
        found = show(_segment(folder, bomb * 3), *command.split())
        assert found.code == 3
        assert found.errors.count("batch-bomb at") == 3


@pytest.mark.parametrize("codec", range(1, 5), ids=_CODECS[1:])
def test_records_that_expand_too_far_are_a_finding(tmp_path: Path, codec: int) -> None:
    """One record of zeros, 64 MiB long."""
    found = decode(_segment(tmp_path, _batch(codec, bytes(64 << 20), 1)), "--format", "jsonl")
    assert found.code == 3
    assert "batch-bomb at" in found.errors


def test_a_record_far_longer_than_its_batch_is_not_shown(tmp_path: Path) -> None:
    """11 MiB of zeros in 600 bytes: as text they took 200 MB. What producers may send is shown."""
    long, short = (
        _with_value(place, bytes(size)) for place, size in enumerate((11 << 20, 1000_000))
    )
    path = _segment(tmp_path, _batch(4, long + short, 2))
    for command in ("decode", "decode -v", "decode --bytes", "records"):
        found = show(path, *command.split())
        assert found.code == 3
        assert found.errors.count("batch-bomb at") == 1
    out = tmp_path / "lines"
    decode(path, "--format", "jsonl", out=out)
    values = [row["value"] for row in json.loads(out.read_bytes())["records"]]
    assert values[0] is None
    assert len(values[1]) > 1_000_000


def _with_value(number: int, value: bytes) -> bytes:
    fields = b"\x00" + varint(0) + varint(number) + varint(-1) + varint(len(value)) + value
    return varint(len(fields) + 1) + fields + b"\x00"


def test_tiny_records_are_shown_one_by_one(tmp_path: Path) -> None:
    """Uncompressed data is not a bomb, but objects are far larger than seven bytes."""
    count = 150_000
    path = _segment(tmp_path, _batch(0, _RECORD * count, count))
    out = tmp_path / "lines"
    found = decode(path, "--format", "jsonl", out=out)
    assert found.code == 0
    rows = json.loads(out.read_bytes())["records"]
    assert len(rows) == count
    assert rows[0] == rows[-1]
    assert rows[0]["headers"] == []
    assert decode(path).code == 0


def test_bytes_of_very_many_records_are_not_kept(tmp_path: Path) -> None:
    """Reading fields one by one leaves circles: 80 MiB of them before anybody looked."""
    count = 25_000
    found = decode(_segment(tmp_path, _batch(0, _RECORD * count, count)), "--bytes")
    assert found.code == 0


@pytest.mark.parametrize(
    ("output", "is_damaged"),
    [("--format jsonl", False), ("-vv", False), ("--bytes", False), ("", False), ("-vv", True)],
)
def test_a_message_of_very_many_values_is_cut(
    tmp_path: Path, output: str, is_damaged: bool
) -> None:
    """Topics of eight bytes: 150 took a kilobyte each in bytes by field, 700 MiB for 4 MB."""
    topics = [MetadataRequestTopic(name="abcdef")] * 60_000
    data = bytearray(request_frame(MetadataRequest(topics=topics), 8))
    if is_damaged:
        # The length of the last topic's name.
        data[-8 - 3] = 0x7F
    path = tmp_path / "frames"
    path.write_bytes(data)
    out = tmp_path / "out"
    found = decode(path, "--input", "frames", *output.split(), out=out)
    if is_damaged:
        assert found.code == 3
        assert "undecoded 1" in found.errors
    elif output:
        assert found.code == 3
        assert "message-bomb 1" in found.errors
        assert out.read_bytes().count(b"abcdef") > 10_000
    else:
        assert found.code == 0


def test_damaged_batches_are_let_go(tmp_path: Path) -> None:
    """300 of them, each 870 bytes, took 8 GB: errors that were kept held buffers."""
    data = _RECORD * 5_000 + bytes(8_000_000)
    segment = b"".join(_batch(4, data, 5_001, 5_001 * place) for place in range(20))
    path = _segment(tmp_path, segment)
    found = decode(path)
    assert found.code == 3
    assert found.errors.count("batch-damaged at") == 20


def test_errors_that_are_kept_hold_no_frames() -> None:
    """Neither those of the batch nor those of its records."""
    data = bytearray(_batch(4, _RECORD * 9 + b"\xff", 10))
    (batch,) = read_batches(bytes(data))
    rows, damage = batch.salvage()
    assert len(rows) == 9
    assert damage is not None
    assert damage.__traceback__ is damage.__context__ is damage.__cause__ is None


def test_programs_read_records_in_bounded_memory(tmp_path: Path) -> None:
    """A program that reads records one by one holds few of them."""
    count = 150_000
    path = _segment(tmp_path, _batch(0, _RECORD * count, count))
    program = (
        "import sys, kraftwire.decode\n"
        "print(sum(1 for _ in kraftwire.decode.records(sys.argv[1])))"
    )
    out = tmp_path / "count"
    found = run(program, path, out=out)
    assert found.code == 0, found.errors
    assert int(out.read_text()) == count
    check_cost(found, path.stat().st_size, program, small_input(path))


@pytest.mark.parametrize("packed_size", [1 << 30, 64 << 20])
def test_a_dictionary_must_be_in_proportion_to_its_file(
    tmp_path: Path, packed_size: int
) -> None:
    """One of 2 GiB took 623 MB."""
    head = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    packet = bytes(8) + (4096).to_bytes(4, "little") * 2 + bytes(4096)
    packer = lzma.LZMACompressor(
        lzma.FORMAT_XZ,
        filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 16}],
    )
    data = packer.compress(head + packet * 25_000) + packer.flush()
    path = tmp_path / "capture.pcap.xz"
    path.write_bytes(_with_dictionary(data, packed_size))
    found = decode(path)
    assert "dictionary" in found.errors
    assert found.code != 0


def _with_dictionary(data: bytes, size: int) -> bytes:
    """An xz file whose only block claims a dictionary of another size."""
    changed = bytearray(data)
    header = 12
    length = (changed[header] + 1) * 4
    at = changed.index(b"\x21\x01", header) + 2
    changed[at] = 2 * size.bit_length() - 26
    crc = zlib.crc32(bytes(changed[header : header + length - 4]))
    changed[header + length - 4 : header + length] = crc.to_bytes(4, "little")
    return bytes(changed)


def test_a_log_of_zeros_in_gzip_is_unpacked_to_disk(tmp_path: Path) -> None:
    """It is then read through a window."""
    path = tmp_path / f"{_NAME}.gz"
    path.write_bytes(gzip.compress(bytes(200 << 20), 1))
    assert decode(path).code == 0


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_a_packed_log_does_not_decide_how_much_is_read_at_once(tmp_path: Path, kind: str) -> None:
    """A batch of 200 MiB, a header and zeros, took as much from some kB."""
    size = 200 << 20
    good = _batch(0, _RECORD * 5, 5)
    bomb = bytearray(_batch(0, b"", 1))
    bomb[8:12] = (size - LOG_OVERHEAD).to_bytes(4, "big")
    pieces = [bytes(bomb), *[bytes(1 << 20)] * 199, bytes((1 << 20) - len(bomb)), good]
    path = tmp_path / f"{_NAME}.{kind}"
    path.write_bytes(_packed(kind, pieces))
    found = decode(path)
    assert found.code == 3
    assert found.errors.count("batch-bomb at") == 1
    assert "1 line" in found.errors


def _packed(kind: str, pieces: list[bytes]) -> bytes:
    """All of them, compressed."""
    if kind == "zst":
        return bytes(cramjam.zstd.compress(b"".join(pieces), level=1))
    if kind == "gz":
        packer: Any = zlib.compressobj(1, zlib.DEFLATED, 31)
    else:
        packer = lzma.LZMACompressor(preset=0)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def test_a_packed_state_file_is_not_read_whole_for_its_name(tmp_path: Path) -> None:
    """60 MiB of lines are 90 kB in gzip."""
    path = tmp_path / "replication-offset-checkpoint.gz"
    path.write_bytes(gzip.compress(b"0\n1000\n" + b"topic 0 1\n" * 6_000_000, 9))
    found = decode(path)
    assert found.code == 1
    assert "unreadable-state at" in found.errors, found.errors


def test_a_list_of_too_many_entries_costs_little(tmp_path: Path) -> None:
    """The search for secrets in what is not shown took 15 times its size."""
    path = tmp_path / "leader-epoch-checkpoint"
    lines = b"".join(b"%d %d\n" % (number, number) for number in range(600_000))
    path.write_bytes(b"0\n600000\n" + lines)
    found = decode(path)
    assert found.code == 1
    assert "too long" in found.errors


def _with_headers(number: int, headers: bytes, count: int) -> bytes:
    fields = b"\x00" + varint(0) + varint(number) + varint(-1) * 2 + varint(count) + headers
    return varint(len(fields)) + fields


def _size(headers: int) -> int:
    """The size of a batch of an empty record and one with this many empty headers."""
    return HEADER_SIZE + len(_RECORD) + len(_with_headers(1, bytes(2 * headers), headers))


def _in_lines(path: Path, *commands: str) -> Iterator[Measured]:
    for command in commands:
        yield show(path, *command.split())


@pytest.mark.parametrize("codec", [0, 4], ids=["none", "zstd"])
def test_a_record_of_millions_of_headers_is_a_finding(tmp_path: Path, codec: int) -> None:
    """Each is two bytes, or next to nothing in zstd, and was a hundred as an object."""
    count = 1_500_000
    path = _segment(tmp_path, _batch(codec, _with_headers(0, bytes(2 * count), count), 1))
    for found in _in_lines(path, "decode", _JSON, "decode --bytes", "records"):
        assert found.code == 3
        assert found.errors.count("batch-bomb at") == 1
        assert "the headers of a record are too many" in found.errors


def test_records_of_many_headers_are_read_piece_by_piece(tmp_path: Path) -> None:
    """400,000 headers in all, while no record is a bomb: they took 180 MB at once."""
    records = [_with_headers(n, b"\x04ab\x04cd" * 200, 200) for n in range(2_000)]
    path = _segment(tmp_path, _batch(4, b"".join(records), len(records)))
    for found in _in_lines(path, "decode", _JSON):
        assert found.code == 0


def test_lines_of_many_headers_are_not_kept(tmp_path: Path) -> None:
    """256 records were made lines together, 250 MB with so many headers."""
    records = [_with_headers(n, b"\x04ab\x04cd" * 1_500, 1_500) for n in range(300)]
    path = _segment(tmp_path, _batch(4, b"".join(records), len(records)))
    for found in _in_lines(path, "records", "records --json", "records --template %h"):
        assert found.code == 0


@pytest.mark.parametrize("name", ["python", "c"])
def test_both_engines_refuse_the_same_headers(name: str) -> None:
    """32,768, and one more for each 256 bytes of the batch; the records before are read."""
    before = engine.name()
    if name not in engine.available():
        name = engine.PYTHON
    try:
        engine.use(name)
        for more in (0, 1):
            most = next(n for n in range(33_100, 0, -1) if n <= headers_limit(_size(n))) + more
            data = _RECORD + _with_headers(1, bytes(2 * most), most)
            (batch,) = read_batches(_batch(0, data, 2))
            rows, damage = batch.salvage()
            assert [len(row.headers) for row in rows] == ([0, most] if not more else [0])
            assert isinstance(damage, BombError) == bool(more)
            if more:
                assert damage is not None
                assert damage.path == "records[1].headers_count"
                with pytest.raises(BombError):
                    batch.records()
                with pytest.raises(BombError):
                    batch.ensure_readable()
            else:
                batch.ensure_readable()
    finally:
        engine.use(before)


def _metadata_bomb(folder: Path, make: Callable[[int], list[Message]]) -> Path:
    """A metadata log whose batches expand within their limits, one after the other."""
    out = batch_of(SOUND, 0)
    offset = len(SOUND)
    for number in range(12):
        values = values_of(make(number))
        header = BatchHeader(base_offset=offset, partition_leader_epoch=1, compression="zstd")
        out += build_columns([0] * len(values), [None] * len(values), values, header=header)
        offset += len(values)
    path = folder / "__cluster_metadata-0" / _NAME
    path.parent.mkdir()
    path.write_bytes(out)
    return path


_LONG = "x" * 32_000
_KEPT: dict[str, Callable[[int], list[Message]]] = {
    "replicas": lambda at: [
        PartitionRecord(partition_id=at * 10 + one, topic_id=TOPIC, replicas=[0] * 100_000, isr=[3])
        for one in range(10)
    ],
    "topics": lambda at: [
        TopicRecord(name=f"{at}-{one}{_LONG}", topic_id=(at * 200 + one + 9).to_bytes(16, "big"))
        for one in range(200)
    ],
    "configs": lambda at: [
        ConfigRecord(resource_type=2, resource_name="orders", name=f"{at}-{one}{_LONG}", value="1")
        for one in range(200)
    ],
}


@pytest.mark.parametrize("kind", _KEPT)
def test_what_is_kept_of_a_metadata_log_is_bounded_as_a_whole(tmp_path: Path, kind: str) -> None:
    """Each batch is within its limit: partitions of 100,000 replicas in 462 KiB took 4 GB."""
    path = _metadata_bomb(tmp_path, _KEPT[kind])
    assert path.stat().st_size < 200_000
    for command in ("metadata show", "story raft", "decode"):
        found = show(path, *command.split())
        assert found.code == 3
        if command != "metadata show":
            assert "batch-bomb at" in found.errors


def test_the_state_of_a_bomb_says_where_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What fits is shown; a node that replays such records knows that its image lacks some."""
    path = _metadata_bomb(tmp_path, _KEPT["topics"])
    assert cli.main(["metadata", "show", str(path)]) == 3
    out = capsys.readouterr().out
    problem = "the batch at offset 4 cannot be read: RecordBatch"
    assert f"12 records could not be applied; the first: {problem}" in " ".join(out.split())
    assert "would become far more than their bytes account for" in " ".join(out.split())
    assert "orders-0" in out
    assert cli.main(["metadata", "diff", str(path), f"{path}@3"]) == 2
    image = MetadataImage()
    for batch in read_batches(path.read_bytes()):
        assert isinstance(batch, RecordBatch)
        image.replay(batch)
    assert image.problem.startswith(problem)
    assert list(image.topics.ids) == ["orders"]


def test_a_compressed_metadata_log_that_is_none_is_read(tmp_path: Path) -> None:
    """Of a log that shrinks to a half, all counts, however long it is."""
    budget = LogBudget()
    assert all(budget.take(1000, 2000) for _ in range(10_000))
    assert not LogBudget().take(100, LOG_RECORDS_FREE + 201)
    path = _metadata_bomb(
        tmp_path, lambda at: [TopicRecord(name=f"t{at}", topic_id=bytes([at + 9] * 16))]
    )
    found = show(path, "metadata", "show")
    assert found.code == 0
