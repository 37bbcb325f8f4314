"""Damaged segments: everything that is left is found, and everything that is lost is reported."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kraftwire.decode.files.report import FileFinding, FindingSink
from kraftwire.decode.files.scan import FoundBatch, Scanner
from kraftwire.decode.files.source import open_source
from tests.support.logs.bytes import batch, legacy_message, segment

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "logs"
REAL = GOLDEN / "controller/__cluster_metadata-0/00000000000000000000.log"
# Findings about bytes that no batch holds; the others are about a batch that is returned.
_SKIPPED = {"hole", "garbage", "batch-cut", "zero-tail"}


@dataclass
class Scanned:
    """What a scan of some bytes gave."""

    batches: list[FoundBatch] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [finding.id for finding in self.findings]

    @property
    def offsets(self) -> list[int]:
        return [found.header.base_offset for found in self.batches]

    @property
    def valid_bytes(self) -> set[bytes]:
        return {
            found.buffer[found.start : found.start + found.header.size]
            for found in self.batches
            if found.is_valid
        }


def scan(folder: Path, content: bytes) -> Scanned:
    path = folder / "00000000000000000000.log"
    path.write_bytes(content)
    result = Scanned()
    with open_source(path) as source:
        sink = FindingSink(str(path), result.findings.append)
        result.batches = list(Scanner(source, sink).batches())
    return result


def test_a_clean_segment_has_no_findings(tmp_path: Path) -> None:
    """A false alarm teaches people not to look."""
    result = scan(tmp_path, b"".join(segment(100, 5)))
    assert result.offsets == [100, 103, 106, 109, 112]
    assert result.findings == []


def test_a_flipped_bit_is_a_wrong_crc_and_the_walk_continues(tmp_path: Path) -> None:
    """The records are still tried, so the batch is returned, marked invalid."""
    parts = segment(0, 3)
    damaged = bytearray(parts[1])
    damaged[-5] ^= 4
    result = scan(tmp_path, parts[0] + bytes(damaged) + parts[2])
    assert [found.is_valid for found in result.batches] == [True, False, True]
    assert result.ids == ["batch-crc"]
    assert result.findings[0].position == len(parts[0])
    assert result.findings[0].is_loss


@pytest.mark.parametrize("size", [13, 61, 200, 5000])
def test_a_hole_of_zeros_is_skipped(tmp_path: Path, size: int) -> None:
    """What a crash leaves between two writes; the next batch may itself begin with zeros."""
    parts = segment(0, 2)
    result = scan(tmp_path, parts[0] + bytes(size) + parts[1])
    assert result.offsets == [0, 3]
    (finding,) = result.findings
    assert (finding.id, finding.position, finding.size) == ("hole", len(parts[0]), size)


def test_garbage_between_batches_is_skipped_and_shown(tmp_path: Path) -> None:
    """The first bytes of what is skipped are shown, but not a megabyte of them."""
    parts = segment(0, 2)
    noise = random.Random(1).randbytes(3000)
    result = scan(tmp_path, parts[0] + noise + parts[1])
    assert result.offsets == [0, 3]
    (finding,) = result.findings
    assert (finding.id, finding.size) == ("garbage", 3000)
    assert finding.rest == noise[:64]


def test_a_batch_cut_by_the_end_of_the_file_is_not_a_loss(tmp_path: Path) -> None:
    """An active segment is copied while the broker writes to it."""
    parts = segment(0, 2)
    for size in range(1, len(parts[1])):
        result = scan(tmp_path, parts[0] + parts[1][:size])
        assert result.offsets == [0], size
        # The first bytes of base offset 3 are zeros, as a preallocated tail would be.
        assert result.ids == ["zero-tail" if size < 8 else "batch-cut"], size
        assert not result.findings[0].is_loss


def test_a_preallocated_tail_is_not_a_loss(tmp_path: Path) -> None:
    """With log.preallocate a segment is full of zeros until it is written."""
    parts = segment(0, 2)
    result = scan(tmp_path, b"".join(parts) + bytes(100_000))
    assert result.offsets == [0, 3]
    assert [(f.id, f.size, f.is_loss) for f in result.findings] == [("zero-tail", 100_000, False)]


@pytest.mark.parametrize("length", [0, 1, 60, 90, 100_000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_damaged_length_costs_no_other_batch(tmp_path: Path, length: int) -> None:
    """The CRC does not cover the length, so it can prove which length is right."""
    parts = segment(0, 4)
    damaged = bytearray(parts[1])
    damaged[8:12] = length.to_bytes(4, "big")
    result = scan(tmp_path, parts[0] + bytes(damaged) + parts[2] + parts[3])
    intact = [0, 6, 9]
    assert [offset for offset in result.offsets if offset in intact] == intact
    assert result.ids in (["wrong-length"], ["garbage"])


def test_a_damaged_length_is_repaired_where_the_header_is_plausible(tmp_path: Path) -> None:
    """Then not even the damaged batch is lost."""
    parts = segment(0, 3)
    damaged = bytearray(parts[1])
    damaged[11] ^= 0x10
    result = scan(tmp_path, parts[0] + bytes(damaged) + parts[2])
    assert result.ids == ["wrong-length"]
    assert result.valid_bytes == set(parts)


def test_legacy_messages_are_walked_and_found_again(tmp_path: Path) -> None:
    """Segments from before Kafka 0.11 are still in archives."""
    parts = [legacy_message(n, b"value %d" % n, magic=n % 2) for n in range(6)]
    result = scan(tmp_path, parts[0] + parts[1] + bytes(40) + parts[2] + b"".join(parts[3:]))
    assert result.offsets == [0, 1, 2, 3, 4, 5]
    assert result.ids == ["hole"]


def test_a_batch_inside_a_value_is_not_taken_for_one(tmp_path: Path) -> None:
    """A topic may hold copies of batches; only damage to the outer one would expose them."""
    inner = batch(7, [b"inner"])
    outer = batch(0, [inner, inner])
    result = scan(tmp_path, outer + batch(2, [b"x"]))
    assert result.offsets == [0, 2]


def test_a_file_of_noise_holds_nothing(tmp_path: Path) -> None:
    """Every byte of it is accounted for, in one finding."""
    result = scan(tmp_path, b"\x81" + random.Random(2).randbytes(50_000))
    assert result.batches == []
    assert [(f.id, f.size) for f in result.findings] == [("garbage", 50_001)]


def test_a_file_of_wrong_crcs_is_searched_once(tmp_path: Path) -> None:
    """The search for the next intact batch is kept, so time stays linear in the damage."""
    parts = [bytearray(part) for part in segment(0, 2000)]
    for part in parts:
        part[-1] ^= 1
    result = scan(tmp_path, b"".join(parts))
    assert len(result.batches) == 2000
    assert set(result.ids) == {"batch-crc"}


def _damage(rng: random.Random, content: bytes) -> tuple[bytes, int, int]:
    """Damaged content, and the range of the original that was touched."""
    start = rng.randrange(len(content))
    end = min(len(content), start + rng.choice((1, 2, 7, 61, 300, 2000)))
    kind = rng.choice(("flip", "zero", "noise", "drop", "insert"))
    size = end - start
    if kind == "flip":
        flipped = bytearray(content)
        flipped[start] ^= 1 << rng.randrange(8)
        return bytes(flipped), start, start + 1
    middle = {
        "zero": bytes(size),
        "noise": rng.randbytes(size),
        "drop": b"",
        "insert": rng.randbytes(size),
    }[kind]
    behind = start if kind == "insert" else end
    return content[:start] + middle + content[behind:], start, max(behind, start)


@pytest.mark.parametrize("seed", range(150))
def test_random_damage_costs_only_the_batches_it_touches(tmp_path: Path, seed: int) -> None:
    """On a real segment: untouched batches are all found, nothing is invented, no byte is lost."""
    rng = random.Random(seed)
    original = REAL.read_bytes()
    content, start, end = _damage(rng, original)
    clean = scan(tmp_path, original)
    result = scan(tmp_path, content)
    untouched = {
        original[found.position : found.position + found.header.size]
        for found in clean.batches
        if found.position + found.header.size <= start or found.position >= end
    }
    assert untouched <= result.valid_bytes, f"seed {seed}"
    covered = [(found.position, found.header.size) for found in result.batches]
    covered += [(f.position, f.size) for f in result.findings if f.id in _SKIPPED]
    position = 0
    for begin, size in sorted(covered):
        assert begin == position, f"seed {seed}"
        position += size
    assert position == len(content), f"seed {seed}"
    if not result.findings:
        # The CRC does not cover base offset and leader epoch.
        assert all(f.is_valid for f in result.batches), f"seed {seed}"
