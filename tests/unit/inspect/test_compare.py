"""`kraftwire diff`: where two logs, or two captures, diverge."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import kraftwire.decode
from kraftwire.inspect.compare import compare_captures, compare_logs
from tests.support.captures.builder import Segment, Session, pcap_of, request, response
from tests.support.commands.run import run_kraftwire

GOLDEN = Path(__file__).parents[2] / "golden"
LOG = GOLDEN / "logs" / "broker" / "txn-out-0"
SEGMENT = "00000000000000000000.log"


def _copies(folder: Path) -> tuple[Path, Path]:
    """The same log twice, in folders of other names."""
    copies = folder / "one" / "orders-0", folder / "other" / "orders-0"
    for copy in copies:
        shutil.copytree(LOG, copy)
    return copies


def _starts(path: Path) -> list[tuple[int, int, int, int]]:
    """Position, size, first and last offset of each batch."""
    return [
        (each.position, each.batch.size, each.batch.base_offset, each.batch.last_offset)
        for each in kraftwire.decode.batches(path)
    ]


def test_copies_are_the_same(tmp_path: Path) -> None:
    """This holds even if their segments end at different offsets."""
    one, other = _copies(tmp_path)
    found = compare_logs(one.parent, other.parent)
    assert (found.differences, found.problems) == ([], [])
    batches = _starts(other / SEGMENT)
    assert found.compared == len(batches)
    position, _, offset, _ = batches[len(batches) // 2]
    data = (other / SEGMENT).read_bytes()
    (other / f"{offset:020}.log").write_bytes(data[position:])
    (other / SEGMENT).write_bytes(data[:position])
    again = compare_logs(one, other)
    assert (again.differences, again.compared) == ([], len(batches))


def test_a_log_that_ends_earlier_lacks_records(tmp_path: Path) -> None:
    """The offsets and their number are reported."""
    one, other = _copies(tmp_path)
    batches = _starts(other / SEGMENT)
    position, _, first, _ = batches[-2]
    data = (other / SEGMENT).read_bytes()
    (other / SEGMENT).write_bytes(data[:position])
    (found,) = compare_logs(one.parent, other.parent).differences
    last = batches[-1][3]
    assert found.subject == "orders-0"
    expected = {"firstOffset": first, "lastOffset": last, "onlyIn": "first"}
    assert {key: found.details[key] for key in expected} == expected
    assert f"after the end of the second at {first}" in found.text


def test_a_gap_inside_is_reported(tmp_path: Path) -> None:
    """So is the side that has the records."""
    one, other = _copies(tmp_path)
    position, size, first, last = _starts(one / SEGMENT)[3]
    data = (one / SEGMENT).read_bytes()
    (one / SEGMENT).write_bytes(data[:position] + data[position + size :])
    (found,) = compare_logs(one.parent, other.parent).differences
    assert found.details["onlyIn"] == "second"
    assert (found.details["firstOffset"], found.details["lastOffset"]) == (first, last)
    assert "missing inside the first" in found.text


def test_the_first_batch_that_differs_is_reported(tmp_path: Path) -> None:
    """The CRC does not cover a leader epoch, but the bytes differ."""
    one, other = _copies(tmp_path)
    position, _, offset, _ = _starts(other / SEGMENT)[2]
    data = bytearray((other / SEGMENT).read_bytes())
    data[position + 15] += 1
    (other / SEGMENT).write_bytes(data)
    (found,) = compare_logs(one.parent, other.parent).differences
    assert found.text.startswith(f"offset {offset}: the first batch that differs, in leader epoch")
    assert f"{other / SEGMENT} at {position}" in found.text


def test_damage_is_trouble_and_not_a_difference(tmp_path: Path) -> None:
    """What cannot be trusted makes the exit code 2."""
    one, other = _copies(tmp_path)
    position, *_ = _starts(other / SEGMENT)[2]
    data = bytearray((other / SEGMENT).read_bytes())
    data[position + 80] ^= 1
    (other / SEGMENT).write_bytes(data)
    done = run_kraftwire("diff", str(one), str(other))
    assert done.code == 2
    assert "batch-crc" in done.err


def _segments() -> list[Segment]:
    session = Session().open()
    for number in range(6):
        session.client(request(number)).server(response(number, bytes(9)))
    return session.close().segments


def test_frames_that_only_one_capture_has(tmp_path: Path) -> None:
    """They are reported by connection and direction."""
    segments = _segments()
    one, other = tmp_path / "one.pcap", tmp_path / "other.pcap"
    one.write_bytes(pcap_of(segments))
    payloads = [each for each in segments if each.payload]
    other.write_bytes(pcap_of(each for each in segments if each not in payloads[-2:]))
    found = compare_captures(one, other)
    assert [each.details for each in found.differences] == [
        {"onlyIn": "first", "count": 1, "frames": ["Metadata v1 request 5, 16 bytes"]},
        {"onlyIn": "first", "count": 1, "frames": ["Metadata v1 response 5, 13 bytes"]},
    ]
    assert found.compared == 10


def test_the_first_frame_that_differs(tmp_path: Path) -> None:
    """By its bytes, whatever they mean."""
    segments = _segments()
    one, other = tmp_path / "one.pcap", tmp_path / "other.pcap"
    one.write_bytes(pcap_of(segments))
    changed = [
        replace(each, payload=each.payload[:-1] + b"\x07")
        if each.payload in (response(2, bytes(9)), response(4, bytes(9)))
        else each
        for each in segments
    ]
    other.write_bytes(pcap_of(changed))
    done = run_kraftwire("diff", str(one), str(other), "--json")
    assert done.code == 1
    difference = json.loads(done.out)
    assert (difference["difference"], difference["count"]) == ("frame", 2)
    assert difference["first"] == "Metadata v1 response 2, 13 bytes"


def test_frames_with_missing_bytes_leave_the_answer_open(tmp_path: Path) -> None:
    """A capture that kept the start of each packet only shows neither sameness nor difference."""
    segments = _segments()
    one, other = tmp_path / "one.pcap", tmp_path / "other.pcap"
    one.write_bytes(pcap_of(segments))
    other.write_bytes(pcap_of(segments, snap=70))
    done = run_kraftwire("diff", str(one), str(other))
    assert (done.code, done.out) == (2, "")
    assert "12 frames in both are incomplete and not compared" in done.err
    assert "0 frames in both, no difference" in done.err
    whole = [each for each in segments if each.payload != request(5)]
    one.write_bytes(pcap_of(whole))
    done = run_kraftwire("diff", str(one), str(other))
    assert done.code == 1
    assert "1 frame only in the second" in done.out


@pytest.mark.parametrize("name", ["quorum.pcap.xz", "sasl.pcap.xz"])
def test_a_capture_is_the_same_as_itself(name: str) -> None:
    """The exit code says so."""
    path = str(GOLDEN / "captures" / name)
    done = run_kraftwire("diff", path, path)
    assert (done.code, done.out) == (0, "")
    assert "no difference" in done.err


@pytest.mark.slow
def test_unreadable_inputs_are_problems(tmp_path: Path) -> None:
    """A capture and a log, a folder with nothing in it, a name that does not exist."""
    capture, log = str(GOLDEN / "captures" / "quorum.pcap.xz"), str(LOG)
    for pair, words in (
        ((capture, log), "is a capture"),
        ((str(tmp_path), str(tmp_path)), "nothing to compare"),
        ((log, str(tmp_path / "missing")), "no such file"),
    ):
        done = run_kraftwire("diff", *pair)
        assert done.code == 2
        assert words in done.err
        assert "Traceback" not in done.err
