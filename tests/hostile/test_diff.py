"""Files that are made for ``kraftwire diff`` (SEC-BOMB, SEC-TERMINAL)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.records.header import HEADER_SIZE
from tests.hostile.hostile_names import assert_harmless, capture, log_folder
from tests.support.captures.builder import Session, pcap_of, request
from tests.support.commands.memory import CLI, Measured, check_cost, run, small_input


def _diff(one: Path, other: Path) -> Measured:
    found = run(CLI, "diff", one, other)
    size = one.stat().st_size + other.stat().st_size
    check_cost(found, size, CLI, "diff", small_input(one), small_input(other))
    return found


def test_frames_without_number_are_not_kept(tmp_path: Path) -> None:
    """Each is 24 bytes, next to none in gzip, and took half a kilobyte."""
    paths = [tmp_path / "one.pcap.gz", tmp_path / "other.pcap.gz"]
    for first, path in enumerate(paths):
        many = b"".join(request(each, client_id=None) for each in range(first, 130_000))
        path.write_bytes(gzip.compress(pcap_of(Session().open().client(many, mss=16_000).segments)))
    found = _diff(*paths)
    assert found.code == 2
    assert found.errors.count("too many frames") == 2


def test_batches_that_are_all_damaged_are_counted(tmp_path: Path) -> None:
    """Each was a line of three hundred bytes, kept to the end."""
    batch = bytearray(HEADER_SIZE)
    batch[8:12] = (HEADER_SIZE - 12).to_bytes(4, "big")
    batch[16] = 2
    paths = [tmp_path / f"{name}.log.gz" for name in ("one", "other")]
    for path in paths:
        path.write_bytes(gzip.compress(batch * 100_000))
    found = _diff(*paths)
    assert found.code == 2
    assert "199,980 more problems" in found.errors


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("is_log", [False, True])
def test_names_in_differences(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], is_log: bool, as_json: bool
) -> None:
    """Of folders, of what is damaged, and of connections."""
    sides = [tmp_path / "one", tmp_path / "other"]
    for side in sides:
        side.mkdir()
    if is_log:
        for segment in [log_folder(side) / f"{0:020}.log" for side in sides][1:]:
            segment.write_bytes(segment.read_bytes()[100:])
    else:
        sides = [capture(side / "a.pcap") for side in sides]
        sides[1].write_bytes(sides[1].read_bytes()[:-2_000])
    assert main(["diff", *(["--json"] if as_json else []), *map(str, sides)]) in (1, 2)
    out, err = capfd.readouterr()
    assert_harmless(out)
    assert_harmless(err)
    assert out + err
