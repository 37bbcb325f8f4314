"""Files of log directories, damaged in every way: the output is only lines and findings."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from kraftwire.decode.files import FileOptions, FileReport, decode_file
from kraftwire.decode.jsonl import to_line
from kraftwire.inspect.bytes import line_spans

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "logs"
FILES = sorted(
    path
    for folder in ("broker", "controller", "observer")
    for path in (GOLDEN / folder).rglob("*")
    if path.is_file() and path.stat().st_size < 20_000
)
_HEADER_SIZE = 61


def damaged(rng: random.Random, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        size = rng.randrange(1, 50)
        match rng.randrange(4):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at : at + size]
            case 2:
                data[at:at] = rng.randbytes(size)
            case _:
                data[at : at + size] = bytes([rng.choice((0, 1, 127, 255))]) * size
    return bytes(data)


def with_right_crcs(content: bytes) -> bytes:
    """The same batches with CRCs that let the damage through to the records."""
    data = bytearray(content)
    start = 0
    while start + _HEADER_SIZE <= len(data):
        end = start + 12 + int.from_bytes(data[start + 8 : start + 12], "big")
        if not start + _HEADER_SIZE <= end <= len(data):
            break
        data[start + 16] = 2
        struct.pack_into(">I", data, start + 17, crc32c(bytes(data[start + 21 : end])))
        start = end
    return bytes(data)


@pytest.mark.parametrize("block", range(10))
def test_damaged_files_give_lines_and_findings(tmp_path: Path, block: int) -> None:
    """No exception, valid JSON, and spans that cover each line; the seed is in the message."""
    for seed in range(25 * block, 25 * block + 25):
        rng = random.Random(seed)
        source = rng.choice(FILES)
        content = damaged(rng, source.read_bytes())
        if rng.random() < 0.7:
            content = with_right_crcs(content)
        path = tmp_path / source.parent.name / source.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        options = FileOptions(rng.choice(("none", "summary", "full")), rng.random() < 0.5)
        for line in decode_file(path, options, FileReport(str)):
            json.loads(to_line(line.json))
            position = line.position
            for span in line_spans(line):
                assert span.start == position, f"seed {seed}"
                position = span.end
            assert position == line.position + len(line.data), f"seed {seed}"
