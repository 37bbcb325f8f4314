"""A capture that is decoded in parts, as other processes would, gives the frames of the whole."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from tests.support.captures.busy_connection import busy_connection
from tests.support.captures.damage import damage, segments_of
from tests.support.captures.decoded import golden

_HEADER_SIZE = 24


def _packets(content: bytes) -> list[tuple[int, bytes]]:
    at = _HEADER_SIZE
    found = []
    while at < len(content):
        size = 16 + int.from_bytes(content[at + 8 : at + 12], "little")
        found.append((at, content[at : at + size]))
        at += size
    return found


def _told(frames: Iterable[RawFrame]) -> list[object]:
    return [
        (
            f.connection, f.direction, f.position, f.end_position, f.time_ns, f.api_key,
            f.correlation_id, f.size, f.data, f.missing, list(f.packet_findings), f.latency_ms,
            f.request and f.request.client_id,
        )
        for f in frames
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_parts_of_a_capture_give_its_frames(seed: int, tmp_path: Path) -> None:
    """This includes half frames, holes and open requests where it is cut."""
    source = random.Random(seed)
    segments = (
        segments_of(golden("quorum"))
        if seed % 2
        else busy_connection([golden("clients")], source).segments[10:]
    )
    content = damage(segments, seed)
    path = tmp_path / "capture.pcap"
    path.write_bytes(content)
    whole = Capture(path)
    wanted = _told(whole)
    packets = _packets(content)
    borders = sorted({0, len(packets), *source.choices(range(len(packets)), k=20)})
    state: bytes | None = None
    frames: list[object] = []
    for begin, end in pairwise(borders):
        part = Capture(
            iter([(0, content[:_HEADER_SIZE]), *packets[begin:end]]),
            after=None if state is None else pickle.loads(state),
            is_last=end == len(packets),
        )
        frames += _told(part)
        state = pickle.dumps(part.connections)
    assert frames == wanted
    assert part.health.frames == whole.health.frames
    assert part.health.undecoded_bytes == whole.health.undecoded_bytes
    assert part.health.bytes.unaccounted == 0
