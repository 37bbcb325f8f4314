"""Headers of batches as JSON, by the engine: what is written, and what is left to the reader."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraftwire import engine
from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.json_form import batch_to_json
from kraftwire.records.reader import BatchReader
from tests.engine.texts import compare_json_batches

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

HEAD = b'{"file":null,"position":'


def batch(offset: int = 5, **header: Any) -> bytes:
    """A batch of two records."""
    rows = [Record(offset + at, 1000 + at, b"key", b"value") for at in range(2)]
    return build_batch(rows, BatchHeader(**header))


def changed(data: bytes, at: int, value: bytes) -> bytes:
    """The data with other bytes at a position."""
    return data[:at] + value + data[at + len(value) :]


PLAIN = batch()


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"append_time": 77},
        {"is_transactional": True, "producer_id": 2**62, "producer_epoch": 3, "base_sequence": 7},
        {"base_sequence": 2**31 - 1, "producer_id": 1},
        {"delete_horizon_ms": 123},
        {"compression": "lz4"},
    ],
)
def test_a_header_is_written_as_the_reader_shows_it(header: dict[str, Any]) -> None:
    """All of it but the records, for one batch and for several."""
    data = batch(**header)
    for whole in (data, PLAIN + data, data + PLAIN + data):
        written = engine.core.json_batches(whole, 0, len(whole), HEAD)
        assert written is not None
        forms = [batch_to_json(each, records="none")[0] for each in BatchReader(whole)]
        assert json.loads(written[0]) == [{"file": None, **form} for form in forms]


def test_the_bytes_that_a_crc_covers_come_with_it() -> None:
    """The caller checks them, since a wrong CRC is a finding."""
    data = b"ab" + PLAIN + PLAIN + b"c"
    written = engine.core.json_batches(data, 2, len(data) - 1, HEAD)
    assert written is not None
    crc = int.from_bytes(PLAIN[17:21], "big")
    assert written[1] == [
        (crc, 2 + 21, 2 + len(PLAIN)),
        (crc, 2 + len(PLAIN) + 21, 2 + 2 * len(PLAIN)),
    ]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(PLAIN[:-1], id="cut"),
        pytest.param(PLAIN + PLAIN[:HEADER_SIZE], id="cut after the header"),
        pytest.param(PLAIN + PLAIN[: HEADER_SIZE - 1], id="cut inside the header"),
        pytest.param(PLAIN + b"\0", id="with a byte after it"),
        pytest.param(changed(PLAIN, 16, b"\1"), id="of magic 1"),
        pytest.param(changed(PLAIN, 16, b"\3"), id="of magic 3"),
        pytest.param(changed(PLAIN, 21, b"\0\x20"), id="of control records"),
        pytest.param(changed(PLAIN, 8, b"\xff\xff\xff\xff"), id="of negative length"),
        pytest.param(changed(PLAIN, 8, b"\0\0\0\x30"), id="shorter than its header"),
        pytest.param(changed(PLAIN, 8, b"\x7f\xff\xff\xff"), id="of absurd length"),
    ],
)
def test_anything_else_is_left_to_the_reader(data: bytes) -> None:
    """It finds what is wrong, and shows what Kafka wrote itself."""
    assert engine.core.json_batches(data, 0, len(data), HEAD) is None
    assert not compare_json_batches(data)


def test_odd_numbers_are_shown() -> None:
    """A header is readable whatever its records are; only the names of codecs are Python's."""
    for at, value in ((57, b"\xff" * 4), (23, b"\x80\0\0\0"), (0, b"\xff" * 8)):
        assert compare_json_batches(changed(PLAIN, at, value))
    assert not compare_json_batches(changed(PLAIN, 22, b"\7"))
