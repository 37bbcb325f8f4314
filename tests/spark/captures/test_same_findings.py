"""The tables find in a capture what `kraftwire decode --format jsonl` finds in it.

The pipeline decodes each connection from its packets alone, `decode` all of them as they come. So
nothing that is decided about one connection may depend on when packets of others come.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.captures import decode_tables
from tests.support.captures.builder import (
    ACK,
    FIN,
    RST,
    Segment,
    Session,
    pcap_of,
    request,
    response,
)
from tests.support.captures.damage import damage, recut, segments_of
from tests.support.captures.decoded import decode

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
CAPTURES = ("clients.pcap.xz", "groups.pcapng.xz", "kraft_quorum.pcapng.xz", "quorum.pcap.xz",
            "sasl.pcap.xz", "tls.pcap.xz")  # fmt: skip
SECOND = 1_000_000_000

# Metadata v1: no topics; no brokers, controller or topics.
METADATA = bytes(4)
ANSWER = bytes(4) + b"\xff\xff\xff\xff" + bytes(4)

# The tables leave it out: it is harmless, and costs as much as decoding.
LEFT_OUT = "not-canonical"

Found = Counter[tuple[str, str, int | None, str, str]]


def _printed(path: Path) -> Found:
    return _found(iter(decode(path).lines))


def _in_tables(path: Path) -> Found:
    rows = decode_tables(path, tables=("frames",))["frames"].to_pylist()
    return _found({**row, "correlationId": row["correlation_id"]} for row in rows)


def _found(frames: Iterator[dict[str, object]]) -> Found:
    """The findings of all frames, and each frame as such."""
    found: Found = Counter()
    for frame in frames:
        own = str(frame["connection"]), str(frame["direction"]), frame["correlationId"]
        found[*own, "", ""] += 1  # type: ignore[index]
        for each in frame["findings"]:  # type: ignore[attr-defined]
            if each["id"] != LEFT_OUT:
                found[*own, each["id"], each["detail"]] += 1  # type: ignore[index]
    return found


def _ids(found: Found) -> set[str]:
    return {each[3] for each in found}


@pytest.mark.parametrize("name", CAPTURES)
def test_recorded_captures(name: str) -> None:
    """Captures as they were recorded, those of TLS and SASL included."""
    path = GOLDEN / name
    assert _in_tables(path) == _printed(path)


@pytest.mark.parametrize("name", ["quorum.pcap.xz", "clients.pcap.xz"])
@pytest.mark.parametrize("seed", range(3))
def test_damaged_captures(tmp_path: Path, name: str, seed: int) -> None:
    """Packets that are late, missing, cut or there twice; every other capture ends early."""
    data = damage(recut(segments_of(GOLDEN / name)), seed)
    path = tmp_path / "a.pcap"
    path.write_bytes(data[: len(data) * 2 // 3] if seed % 2 else data)
    found = _printed(path)
    assert _in_tables(path) == found
    assert len(_ids(found)) > 1 or name.startswith("quorum")


@pytest.mark.parametrize("seed", range(3))
def test_connections_that_are_reset(tmp_path: Path, seed: int) -> None:
    """Every connection is reset with packets missing, some so late that the capture ends first."""
    source = random.Random(seed)
    segments = list(recut(segments_of(GOLDEN / "quorum.pcap.xz")))
    ends = {segment.source: at for at, segment in enumerate(segments)}
    kept = []
    for at, segment in enumerate(segments):
        if source.random() < 0.9:
            kept.append(segment)
        if at in ends.values() or source.random() < 0.01:
            kept.append(replace(segment, flags=RST | ACK, payload=b""))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(kept))
    found = _printed(path)
    assert _in_tables(path) == found
    assert {"gap", "resync"} & _ids(found)


@pytest.mark.parametrize("flags", [FIN, RST])
@pytest.mark.parametrize("seconds", [0.5, 0.999, 1.0, 1.001, 1.5, 5])
def test_half_a_frame_at_the_end_of_a_connection(
    tmp_path: Path, flags: int, seconds: float
) -> None:
    """Whether the connection or the capture ended first depends on the clock, not on who looks."""
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of([*_cut(flags), *_another(seconds)]))
    found = _printed(path)
    assert _in_tables(path) == found
    assert _ids(found) & {"cut-by-close", "cut-by-capture-end"}


def _cut(flags: int) -> list[Segment]:
    """A connection that ends within its second request."""
    session = Session().open()
    session.client(request(1, METADATA)).server(response(1, ANSWER)).ack(by_client=True)
    session.client(request(2, METADATA)[:-1])
    session.server_seq += 10  # bytes that may still come, so the connection lingers
    if flags & FIN:
        session.close()
    else:
        session.reset()
    return session.segments


def _another(seconds: float) -> list[Segment]:
    """A connection that opens so long after the end of that one."""
    begin = _cut(RST)[-1].time_ns + int(seconds * SECOND)
    return Session(client_end=("10.0.0.3", 40001), now_ns=begin).open().segments
