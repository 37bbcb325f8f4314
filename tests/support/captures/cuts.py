"""Captures made of parts of a golden one: times cut out, or shifted by days."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.decode.options import Options
from kraftwire.decode.sinks import Sink
from kraftwire.inspect.run.inputs import Inputs
from kraftwire.inspect.run.run import Run
from kraftwire.inspect.stories.raft import RaftWriter
from tests.support.captures.builder import pcap
from tests.support.captures.decoded import ROOT

DAY_S = 86_400
_SECOND_NS = 1_000_000_000

# Time in nanoseconds, and bytes.
Packets = Sequence[tuple[int, bytes]]


QUORUM, GROUPS = "kraft_quorum.pcapng.xz", "groups.pcapng.xz"


@cache
def packets(name: str = QUORUM) -> Packets:
    """The packets of a golden capture, by default the recording of a quorum."""
    with CaptureSource(ROOT / "tests" / "golden" / "captures" / name) as source:
        return [
            (p.time_ns, bytes(p.data[p.start : p.start + p.captured]))
            for p in read_packets(source, Health())
        ]


def part(start: float, end: float, *, shift: float = 0.0, of: str = QUORUM) -> Packets:
    """The packets of a time, in seconds since the first packet, with their times shifted."""
    whole = packets(of)
    first, last = (whole[0][0] + round(each * _SECOND_NS) for each in (start, end))
    moved = round(shift * _SECOND_NS)
    return [(time + moved, data) for time, data in whole if first <= time < last]


def without(whole: Packets, start: float, end: float) -> Packets:
    """Packets without those of a time, in seconds since the first of them."""
    first, last = (whole[0][0] + round(each * _SECOND_NS) for each in (start, end))
    return [each for each in whole if not first <= each[0] < last]


def save(path: Path, *parts: Packets) -> Path:
    """Write packets as a capture."""
    path.write_bytes(pcap([each for some in parts for each in some], nanoseconds=True))
    return path


def read_into(sink: Sink, paths: Iterable[Path]) -> list[str]:
    """Read inputs as the command line does; return what it says about them."""
    problems: list[str] = []
    run = Run(Options(), sink)
    Inputs(run, problems.append).read([str(path) for path in paths])
    run.finish()
    return problems


def raft_text(*paths: Path) -> str:
    """The story of a quorum as text, in one line."""
    stream = io.StringIO()
    read_into(RaftWriter(stream), paths)
    return " ".join(stream.getvalue().split())


def raft_story(*paths: Path) -> dict[str, Any]:
    """The story of a quorum as JSON."""
    stream = io.StringIO()
    read_into(RaftWriter(stream, as_json=True), paths)
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found
