"""The fast paths to fields and their bytes name what the slow paths name."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftwire.decode
from kraftwire import messages
from kraftwire.decode.body import layouts
from kraftwire.decode.body.layouts import Span, spans
from kraftwire.decode.body.walk import FieldWalk
from kraftwire.inspect.bytes.file_spans import _leaves
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.records.header import HEADER_SIZE
from kraftwire.wire.reader import annotate
from tests.support.vectors import vectors

GOLDEN = Path(__file__).parents[2] / "golden"


def test_a_walk_names_what_the_annotating_reader_names() -> None:
    """In every message and version that Kafka has."""
    walk = FieldWalk()
    count = 0
    for vector in (each for found in vectors().values() for each in found):
        cls, data = messages.find(vector.name), vector.data
        root, _ = annotate(cls.facts(), data, vector.version)
        found = walk.spans(cls, vector.version, data, 0)
        assert found is not None, vector.name
        expected = list(_leaves(root))
        places = [each[:3] for each in found]
        assert places == [each[:3] for each in expected], (vector.name, vector.version)
        for one, other in zip(found, expected, strict=True):
            # Fields of type records are left to the reader of batches.
            assert one.value == other.value or one.value is None
        count += 1
    assert count > 2000


def test_a_walk_stops_at_what_it_does_not_know() -> None:
    """An unknown tagged field, or bytes that end too early."""
    header = _header("tester", 1)
    header.unknown_tagged_fields = {7: b"x"}
    data = header.encode(2)
    assert FieldWalk().spans(RequestHeader, 2, data, 0) is None
    assert FieldWalk().spans(RequestHeader, 2, data[:9], 0) is None


def _header(client_id: str | None, correlation_id: int) -> RequestHeader:
    return RequestHeader(
        request_api_key=3,
        request_api_version=9,
        correlation_id=correlation_id,
        client_id=client_id,
    )


def _long(name: str, data: bytes, at: int) -> list[Span]:
    return list(layouts._spans(layouts._container(name, data, at), ""))


@pytest.mark.parametrize("client_id", [None, "", "tester", "größer"])
@pytest.mark.parametrize("at", [0, 5])
def test_headers_have_the_spans_of_their_layouts(client_id: str | None, at: int) -> None:
    """The fast path and construct agree, wherever a header begins."""
    for version in (1, 2):
        data = bytes(at) + _header(client_id, 70_000).encode(version) + b"\0"
        name = f"request header v{version}"
        assert spans(name, data, at) == _long(name, data, at)
    for version in (0, 1):
        data = bytes(at) + ResponseHeader(correlation_id=-5).encode(version) + b"\0"
        name = f"response header v{version}"
        assert spans(name, data, at) == _long(name, data, at)


@pytest.mark.parametrize("folder", ["txn-out-0", "headers-0", "comp-gzip-0"])
def test_batches_and_records_have_the_spans_of_their_layouts(folder: str) -> None:
    """Records with headers take the slow path."""
    (segment,) = (GOLDEN / "logs" / "broker" / folder).glob("*.log")
    for each in kraftwire.decode.batches(segment):
        data = bytes(each.batch.raw)
        assert spans("record batch", data) == _long("record batch", data, 0)
        at = HEADER_SIZE
        while at < len(data) and not each.batch.codec:
            found = spans("record", data, at)
            assert found == _long("record", data, at)
            at = found[-1].end
