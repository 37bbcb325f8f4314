"""Small files that are not small: refused with a bound, before they take memory or a disk."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kraftwire.decode.files import FileFinding, FileOptions, FileReport, decode_file
from kraftwire.decode.files.source import UNPACKED_FREE, UNPACKED_RATIO
from kraftwire.decode.files.state import ENTRIES_MAX, ODDITIES_MAX
from kraftwire.errors import StorageError, UsageError
from kraftwire.limits import SMALL_FILE_BYTES_MAX
from kraftwire.log.files import LocalFiles
from kraftwire.node.config import load
from kraftwire.properties import read_properties


def _findings(path: Path) -> list[FileFinding]:
    found: list[FileFinding] = []
    list(decode_file(path, FileOptions(), FileReport(found.append)))
    return found


@pytest.mark.parametrize("name", ["meta.properties", "quorum-state", "partition.metadata"])
def test_a_long_state_file_is_not_read(tmp_path: Path, name: str) -> None:
    """Kafka's have a few hundred bytes."""
    path = tmp_path / name
    path.write_bytes(b"version=1\n" + b"x=" + b"y" * SMALL_FILE_BYTES_MAX)
    (finding,) = _findings(path)
    assert (finding.id, finding.size) == ("unreadable-state", path.stat().st_size)
    assert "too many" in finding.detail


@pytest.mark.slow
def test_a_list_has_a_bounded_number_of_entries(tmp_path: Path) -> None:
    """A line of six bytes becomes an object of hundreds."""
    path = tmp_path / "recovery-point-offset-checkpoint"
    lines = b"a 0 0\n" * (ENTRIES_MAX + 1)
    path.write_bytes(b"0\n%d\n" % (ENTRIES_MAX + 1) + lines)
    (finding,) = _findings(path)
    assert finding.id == "unreadable-state"
    assert "at most 200,000 entries" in finding.detail
    path.write_bytes(b"0\n2\n" + b"a 0 0\n" * 2)
    assert _findings(path) == []


def test_findings_of_a_kind_are_folded(tmp_path: Path) -> None:
    """A list that goes back a thousand times is one problem."""
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"0\n1000\n" + b"".join(b"%d 0\n" % (1000 - n) for n in range(1000)))
    found = _findings(path)
    assert len(found) == ODDITIES_MAX + 1
    assert found[-1].detail == f"{999 - ODDITIES_MAX} more of this kind"


@pytest.mark.slow
def test_a_compressed_file_must_not_become_far_more(tmp_path: Path) -> None:
    """A megabyte of zeros takes a kilobyte; the copy would fill the disk."""
    path = tmp_path / "00000000000000000000.log.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(350):
            file.write(bytes(1024 * 1024))
    most = UNPACKED_FREE + UNPACKED_RATIO * path.stat().st_size
    (finding,) = _findings(path)
    assert finding.id == "unreadable-file"
    assert str(most) in finding.detail


@pytest.mark.parametrize("read", [read_properties, load])
def test_a_configuration_that_never_ends_is_refused(read: object) -> None:
    """Such as a device, given by mistake."""
    with pytest.raises(UsageError, match="/dev/zero: longer than 1048576 bytes"):
        read("/dev/zero")  # type: ignore[operator]


def test_a_replica_reads_no_long_state_file(tmp_path: Path) -> None:
    """Its own are small, whoever wrote to the directory."""
    path = tmp_path / "quorum-state"
    path.write_bytes(bytes(SMALL_FILE_BYTES_MAX + 1))
    with pytest.raises(StorageError, match="longer than"):
        LocalFiles().read_bytes(str(path))
    path.write_bytes(bytes(SMALL_FILE_BYTES_MAX))
    assert len(LocalFiles().read_bytes(str(path))) == SMALL_FILE_BYTES_MAX
