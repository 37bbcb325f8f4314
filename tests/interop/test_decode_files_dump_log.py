"""Files decoded by kraftwire and by Kafka's own dump tool, run at test time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftwire.decode.files import FileOptions, FileReport, decode_file
from tests.support.kafka import dump_log
from tests.support.kafka.dump_compare import compare_entries, compare_file
from tests.support.kafka.dump_log import DumpedFile
from tests.support.kafka.java import run_kafka_tool

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "logs"
TOOL = "org.apache.kafka.tools.DumpLogSegments"
CASES = {
    "controller/__cluster_metadata-0/*.log": ("metadata", "--cluster-metadata-decoder"),
    "controller/__cluster_metadata-0/*.checkpoint": ("metadata", "--cluster-metadata-decoder"),
    "broker/__consumer_offsets-1/*.log": ("group", "--offsets-decoder"),
    "broker/__transaction_state-0/*.log": ("transaction", "--transaction-log-decoder"),
    "broker/__share_group_state-0/*.log": ("share", "--share-group-state-decoder"),
    "broker/comp-*/*.log": (None, "--print-data-log"),
    "broker/txn-out-0/*.log": (None, "--print-data-log"),
}


def dump(paths: list[Path], *options: str) -> dict[str, DumpedFile]:
    result = run_kafka_tool(TOOL, "--files", ",".join(map(str, paths)), *options)
    return dump_log.parse(result.stdout.splitlines(keepends=True))


def decoded(path: Path) -> list[dict[str, Any]]:
    lines = decode_file(path, FileOptions(show_secrets=True), FileReport())
    return [line.json for line in lines]


@pytest.mark.parametrize("pattern", sorted(CASES))
def test_segments_equal_the_tools_reading(pattern: str) -> None:
    """Batches, records and payloads, as the release under test prints them today."""
    family, option = CASES[pattern]
    paths = sorted(GOLDEN.glob(pattern))
    files = dump(paths, option)
    assert len(files) == len(paths) > 0
    for path in paths:
        compare_file(decoded(path), files[str(path)], family)


def test_indexes_equal_the_tools_reading() -> None:
    """All in one run: the tool accepts a list."""
    suffixes = (".index", ".timeindex", ".txnindex", ".snapshot")
    paths = sorted(path for path in GOLDEN.rglob("*") if path.suffix in suffixes)
    files = dump(paths)
    for path in paths:
        compare_entries(decoded(path), files[str(path)])


def test_a_damaged_batch_is_invalid_to_both(tmp_path: Path) -> None:
    """One flipped bit in a value: both give the same CRC verdict, and still the same records."""
    content = bytearray((GOLDEN / "broker/tombs-0/00000000000000000000.log").read_bytes())
    content[-2] ^= 1
    path = tmp_path / "tombs-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(bytes(content))
    (line,) = decoded(path)
    assert not line["isValid"]
    compare_file([line], dump([path], "--print-data-log")[str(path)], None)


def test_a_cut_segment_has_the_same_batches(tmp_path: Path) -> None:
    """The tool counts the bytes of the rest as invalid; here they are a finding."""
    content = (GOLDEN / "broker/comp-zstd-0/00000000000000001378.log").read_bytes()
    path = tmp_path / "comp-zstd-0" / "00000000000000001378.log"
    path.parent.mkdir()
    path.write_bytes(content[:-10])
    dumped = dump([path], "--print-data-log")[str(path)]
    compare_file(decoded(path), dumped, None)
    assert "invalid bytes" in dumped.complaints[0]
