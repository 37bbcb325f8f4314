"""Produce and Fetch with records of any size: the same rows by columns as frame by frame."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.header import CRC_FIELD
from kraftwire.spark.captures import decode_tables, tables
from kraftwire.spark.captures.steady.alike import Pairs
from kraftwire.spark.captures.steady.harvest import Harvest
from kraftwire.wire.message import Message
from tests.support.frames_made import FrameMaker
from tests.support.pcap_builder import Session, frame, pcap_of

NEVER = 1 << 60
TIME = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
EXCHANGES = 300

Exchange = tuple[Message, Message]
# Makes an exchange of a version, with records in it.
Maker = Callable[[int, bytes, random.Random], Exchange]


def _batch(source: random.Random) -> bytes:
    count = source.randint(1, 30)
    times = [TIME + source.randrange(1000) for _ in range(count)]
    values = [source.randbytes(source.randrange(90)) for _ in range(count)]
    offset = source.randrange(1 << 40)
    header = BatchHeader(base_offset=offset, producer_id=source.randint(-1, 9), base_sequence=3)
    return build_columns(times, [None] * count, values, header=header)


def _records(source: random.Random) -> bytes:
    """Mostly one batch; now and then none, some, one that is cut, odd or has a wrong CRC."""
    data = bytearray(_batch(source))
    odd = source.randrange(60)
    if odd == 0:
        data[CRC_FIELD] ^= 1
    elif odd == 1:
        data += _batch(source)
    elif odd == 2:
        del data[-7:]
    elif odd == 3:
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    elif odd == 4:
        data = bytearray()
    elif odd == 5:
        data[:8] = b"\xff" * 8  # not covered by the CRC
    return bytes(data)


def _produce(version: int, records: bytes, source: random.Random, name: str = "t") -> Exchange:
    topic = {"topic_id": TOPIC_ID} if version >= 13 else {"name": name}
    part = PartitionProduceData(index=2, records=records)
    asked = ProduceRequest(acks=-1, timeout_ms=9, topic_data=[_named(TopicProduceData, topic)])
    asked.topic_data[0].partition_data = [part] * (1 if source.random() < 0.97 else 2)
    code = 7 if source.random() < 0.1 else 0
    answer = PartitionProduceResponse(index=2, error_code=code, base_offset=source.randint(-1, 99))
    told = ProduceResponse(responses=[_named(TopicProduceResponse, topic)])
    told.responses[0].partition_responses = [answer]
    return asked, told


def _fetch(version: int, records: bytes, source: random.Random, name: str = "t") -> Exchange:
    topic = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": name}
    asked = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[_named(FetchTopic, topic)])
    part = FetchPartition(partition=2, fetch_offset=source.randrange(99))
    asked.topics[0].partitions = [part]
    if source.random() < 0.1:
        asked.topics = []
    mark = source.randint(-1, 99)
    answer = PartitionData(
        partition_index=2, high_watermark=mark, last_stable_offset=mark, records=records
    )
    told = FetchResponse(responses=[_named(FetchableTopicResponse, topic)])
    told.responses[0].partitions = [answer]
    return asked, told


def _own_fetch(version: int, records: bytes, source: random.Random) -> Exchange:
    return _fetch(version, records, source, "__consumer_offsets")


def _named(cls: Any, fields: dict[str, object]) -> Any:
    return cls(**fields)


def _write(path: Path, makers: list[tuple[Maker, int]], seed: int, in_flight: int = 1) -> Path:
    source = random.Random(seed)
    frames = FrameMaker()
    session = Session().open()
    for _ in range(EXCHANGES // in_flight):
        asked, told = [], []
        for _ in range(in_flight):
            make, version = source.choice(makers)
            request, response = make(version, _records(source), source)
            asked.append(frame(frames.request(request, version).data))
            told.append(frame(frames.response(response).data))
        session.client(b"".join(asked)).server(b"".join(told))
    path.write_bytes(pcap_of(session.close().segments))
    return path


def _taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compare both ways; returns how many exchanges were taken by columns."""
    taken = 0
    made = Harvest._made

    def counted(self: Harvest, *each: object) -> Pairs:
        nonlocal taken
        pairs = made(self, *each)  # type: ignore[arg-type]
        taken += len(pairs.asked)
        return pairs

    with monkeypatch.context() as patch:
        patch.setattr(Harvest, "_made", counted)
        found = decode_tables(path)
    with monkeypatch.context() as patch:
        patch.setattr(tables, "PACKETS_MIN", NEVER)
        slow = decode_tables(path)
    for name, table in slow.items():
        assert found[name].equals(table), name
    return taken


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("version", [4, 12, 13])
def test_fetches(
    version: int, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Lengths of four bytes and varints, topics by name and by id."""
    path = _write(tmp_path / "fetches.pcap", [(_fetch, version)], seed)
    assert _taken(path, monkeypatch) > EXCHANGES // 8


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("version", [3, 9, 13])
def test_produces(
    version: int, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Batches are reported with their request, even if several are in flight."""
    path = _write(tmp_path / "produces.pcap", [(_produce, version)], seed, in_flight=1 + 2 * seed)
    assert _taken(path, monkeypatch) > EXCHANGES // 8


def test_both_on_a_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows of requests and of responses with records keep their order."""
    path = _write(tmp_path / "both.pcap", [(_fetch, 12), (_produce, 9)], 1, in_flight=4)
    assert _taken(path, monkeypatch) > EXCHANGES // 8


def test_kafkas_own_records_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are more than a batch, so each is decoded."""
    path = _write(tmp_path / "own.pcap", [(_own_fetch, 12)], 1)
    assert _taken(path, monkeypatch) < EXCHANGES // 10
