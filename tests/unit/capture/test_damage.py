"""Damaged captures: almost every frame is found, and none is invented."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from tests.support.captures.builder import decode, pcap_of
from tests.support.captures.damage import (
    Identity,
    damage,
    frame_identity,
    plain_frames,
    recut,
    segments_of,
)
from tests.support.captures.decoded import GOLDEN, golden, shared

pytestmark = pytest.mark.slow

LARGE = {
    "a_kraft_quorum": "a_hard.pcap.xz",
    "b_mixed_clients": "b_hard_mid.pcap.xz",
}
FOUND_MIN = 0.99


def _check(frames: list[RawFrame], truth: list[tuple[int, Identity]], start_ns: int) -> float:
    """The share of frames that were found; fails if any was invented."""
    found = frame_identity(frames)
    invented = found - Counter(identity for _, identity in truth)
    assert not invented
    wanted = Counter(identity for time_ns, identity in truth if time_ns >= start_ns)
    return (found & wanted).total() / wanted.total()


@pytest.mark.parametrize("name", ["a_kraft_quorum", "b_mixed_clients", "e_sasl"])
def test_an_undamaged_capture_gives_every_frame_in_order(name: str) -> None:
    """API, version, correlation id and client id as Kafka's own readers see them."""
    frames = list(Capture(str(shared("captures", f"{name}.pcapng.xz"))))
    with lzma.open(shared("captures", "expected", f"{name}.jsonl.xz"), "rt") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(frames) == len(rows)
    for number, (frame, row) in enumerate(zip(frames, rows, strict=True)):
        header = row["header"]
        client_id = frame.request.client_id if frame.is_request and frame.request else None
        assert (number, frame.api_key, frame.api_version, frame.correlation_id) == (
            row["id"],
            row["key"],
            row["version"],
            header["correlationId"],
        )
        assert "QR"[not frame.is_request] == row["dir"]
        assert client_id == header.get("clientId")
        assert frame.packet_findings == ()


@pytest.mark.parametrize("name", LARGE)
def test_recordings_that_were_damaged_once_are_salvaged(name: str) -> None:
    """Packets twice, late, missing and cut; one of them begins in the middle."""
    truth = plain_frames(segments_of(shared("captures", f"{name}.pcapng.xz")))
    path = shared("captures", LARGE[name])
    start_ns = segments_of(path)[0].time_ns
    frames = list(Capture(str(path)))
    assert _check(frames, truth, start_ns) >= FOUND_MIN


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["b_mixed_clients", "e_sasl"])
def test_recordings_are_salvaged_whatever_the_damage(tmp_path: Path, name: str, seed: int) -> None:
    """Other packets each time; a failure is replayed by its seed."""
    print(f"seed {seed}")
    segments = segments_of(shared("captures", f"{name}.pcapng.xz"))
    frames, _ = decode(tmp_path / "damaged.pcap", damage(recut(segments), seed))
    assert _check(frames, plain_frames(segments), 0) >= FOUND_MIN


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", GOLDEN)
def test_small_captures_are_salvaged(tmp_path: Path, name: str, seed: int) -> None:
    """A single lost packet matters more here; the limit is what a packet can hold."""
    print(f"seed {seed}")
    segments = segments_of(golden(name))
    truth = plain_frames(segments)
    frames, _ = decode(tmp_path / "damaged.pcap", damage(recut(segments), seed))
    assert _check(frames, truth, 0) >= 0.97


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("name", GOLDEN)
def test_a_capture_may_begin_anywhere(tmp_path: Path, name: str, part: float) -> None:
    """Frames that begin after the start of the capture are found on connections that are older."""
    segments = segments_of(golden(name))
    rest = list(recut(segments[int(len(segments) * part) :]))
    frames, _ = decode(tmp_path / "rest.pcap", pcap_of(rest))
    assert _check(frames, plain_frames(segments), rest[0].time_ns) >= 0.95
