"""Keys, values and headers as text: how they are recognised, and the lines made of them."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.cli.main import main
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.filters.frames import topic_test
from kraftwire.decode.options import FilterOptions
from kraftwire.errors import UsageError
from kraftwire.inspect.records import (
    DataJsonWriter,
    DataWriter,
    PlacedRecord,
    Template,
    TemplateWriter,
    content_of,
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
from kraftwire.printable import printable_pieces
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.builder import BatchHeader, build_batch
from kraftwire.records.record import Record
from tests.support.captures.frames import FrameMaker

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
GROUPS = GOLDEN / "captures" / "groups.pcapng.xz"
HEADERS = GOLDEN / "logs" / "broker" / "headers-0" / "00000000000000000000.log"


def _run(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[str]:
    assert main(["records", str(path), "-q", *options]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("data", "quoted", "plain"),
    [
        (None, "null", ""),
        (b"", '""', ""),
        (b"paid in full", '"paid in full"', "paid in full"),
        ("Zürich".encode(), '"Zürich"', "Zürich"),
        (b'{"a": 1}', '{"a": 1}', '{"a": 1}'),
        (b'{\n  "a": [1,\n  2]\n}\n', '{ "a": [1, 2] }', '{ "a": [1, 2] }'),
        (b"{not json", '"{not json"', "{not json"),
        (b"[" * 5000, json.dumps("[" * 5000), "[" * 5000),
        (b"12", '"12"', "12"),
        (b"\xff\x01", "2 bytes ff 01", "ff 01"),
        (b"\x1b[31m", "5 bytes 1b 5b 33 31 6d", "1b 5b 33 31 6d"),
        (b"\0\0\0\x12\x67\x02\x78\x08", "schema 4711 3 bytes 02 78 08", "schema 4711 02 78 08"),
        (b'\x00\x00\x00\x00\x07{"a":1}', 'schema 7 {"a":1}', 'schema 7 {"a":1}'),
        # No schema has the id 0, and five bytes leave nothing for it to describe.
        (bytes(8), "8 bytes 00 00 00 00 00 00 00 00", "00 00 00 00 00 00 00 00"),
        (b"\x00\x00\x00\x00\x07", "5 bytes 00 00 00 00 07", "00 00 00 00 07"),
    ],
)
def test_payloads_are_recognized(data: bytes | None, quoted: str, plain: str) -> None:
    """JSON, text, a schema's id and bytes are distinguished, and nothing else is guessed."""
    payload = content_of(data)
    assert payload.quoted() == quoted
    assert payload.plain() == plain


def _row(**changed: Any) -> PlacedRecord:
    fields: dict[str, Any] = {
        "topic": "orders", "partition": 3, "offset": 12, "timestamp": 1_000,
        "key": b"k", "value": b"v", "headers": (("a", b"1"), ("b", None)),
    }
    return PlacedRecord(**(fields | changed))


@pytest.mark.parametrize(
    ("template", "row", "line"),
    [
        (r"%t %p %o %k %s %h\n", _row(), "orders 3 12 k v a=1,b=NULL\n"),
        ("%t", _row(), "orders\n"),
        (r"%T\t%K/%S\x2e\\%%\n", _row(value=None), "1000\t1/-1.\\%\n"),
        ("<%s>", _row(value=b"two\nlines"), "<two\\u000alines>\n"),
        ("%k", _row(key=b"\xff"), "ff\n"),
        ("%o,%p", _row(offset=None, partition=None), ",\n"),
        ("%s", _row(is_control=True), ""),
    ],
)
def test_templates_have_the_letters_of_kcat(template: str, row: PlacedRecord, line: str) -> None:
    """Scripts made for kcat keep their templates; what is in records never breaks a line."""
    writer = TemplateWriter(io.StringIO(), template=template)
    assert printable_pieces(writer.pieces(row)) == line


@pytest.mark.parametrize("template", ["%q", "%R", "100%"])
def test_a_letter_that_stands_for_nothing_is_refused(template: str) -> None:
    """A typing error must not silently leave out a column."""
    with pytest.raises(UsageError, match="the template"):
        Template(template)


def _produce(error: int = 0) -> list[RawFrame]:
    maker = FrameMaker()
    rows = [Record(n, 1_000 + n, b"k", b"v%d" % n) for n in range(2)]
    batch = build_batch(rows, BatchHeader())
    requested = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(index=1, records=batch)])
        for name in ("orders", "other")
    ]
    returned = [
        TopicProduceResponse(
            name=name,
            partition_responses=[
                PartitionProduceResponse(index=1, error_code=error, base_offset=base)
            ],
        )
        for name, base in (("orders", 70), ("other", 0))
    ]
    return [
        maker.request(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=requested), 9),
        maker.response(ProduceResponse(responses=returned)),
    ]


def _lines(frames: list[RawFrame], filters: FilterOptions) -> list[str]:
    stream = io.StringIO()
    writer = DataWriter(stream, is_wanted_topic=topic_test(filters))
    decoder = FrameDecoder(Settings(RecordsForm()))
    for frame in frames:
        writer.frame(decoder.decode(frame))
    writer.finish()
    return stream.getvalue().splitlines()


def test_offsets_of_produced_records_come_from_the_response() -> None:
    """Only with it is a produced record the same as the fetched one."""
    lines = _lines(_produce(), FilterOptions())
    assert lines[0] == (
        'produced orders-1 offset 70 1970-01-01T00:00:01.000Z key "k" value "v0"'
    )
    assert [line.split()[1:4] for line in lines] == [
        ["orders-1", "offset", "70"],
        ["orders-1", "offset", "71"],
        ["other-1", "offset", "0"],
        ["other-1", "offset", "1"],
    ]


def test_records_that_were_refused_or_never_answered_have_no_offset() -> None:
    """Offset 0 would be a wrong answer."""
    refused = _lines(_produce(int(ErrorCode.NOT_LEADER_OR_FOLLOWER)), FilterOptions())
    assert refused[0].startswith("produced orders-1 offset - 1970-01-01T00:00:01.000Z NOT_LEADER")
    alone = _lines(_produce()[:1], FilterOptions())
    assert alone[0].startswith("produced orders-1 offset - 1970-01-01T00:00:01.000Z key")


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (FilterOptions(topic=("orders",)), 2),
        (FilterOptions(topic=("!orders",)), 2),
        (FilterOptions(topic=("o*",)), 4),
        (FilterOptions(partition=("1",)), 4),
        (FilterOptions(partition=("2+",)), 0),
    ],
)
def test_a_topic_filter_holds_for_records_too(filters: FilterOptions, count: int) -> None:
    """A body has records of many topics, and one is wanted."""
    assert len(_lines(_produce(), filters)) == count


def test_the_command_prints_records_of_a_capture(capsys: pytest.CaptureFixture[str]) -> None:
    """Real clients' records are printed with what real brokers added."""
    lines = _run(capsys, GROUPS, "--topic", "payments")
    assert "produced payments-0 offset 2 2026-11-23T07:43:48.528Z " in lines[2]
    assert lines[2].endswith('key "avro" value schema 4711 3 bytes 02 78 08')
    assert any("EndTxnMarker" in line for line in lines)
    assert all("payments-0" in line for line in lines)


def test_json_has_the_same_records(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get JSON as JSON and bytes unchanged."""
    options = ("--json", "--api", "Produce")
    rows = [json.loads(line) for line in _run(capsys, GROUPS, *options)]
    avro = next(row for row in rows if row["key"]["data"] == "avro")
    assert avro["value"]["schemaId"] == 4711
    assert b64decode(avro["value"]["data"]) == b"\x02x\x08"
    order = next(row for row in rows if row["key"]["data"] == "order-1")
    assert order["value"] == {"format": "json", "data": {"order": 1, "city": "Zürich"}}
    assert order["headers"] == [{"key": "trace", "value": {"format": "text", "data": "t1"}}]


def test_deep_json_does_not_end_the_run() -> None:
    """A payload at the limit of what can be parsed is an attack or an accident."""
    for depth in range(900, 1100):
        text = "[" * depth + "]" * depth
        pieces = DataJsonWriter(io.StringIO()).pieces(_row(value=text.encode()))
        assert json.loads(printable_pieces(pieces))["offset"] == 12


def test_segments_are_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Files and captures have one output."""
    lines = _run(capsys, HEADERS, "--template", "%t-%p@%o %S")
    assert lines[:3] == ["headers-0@0 0", "headers-0@1 1", "headers-0@2 2"]


def test_secrets_of_the_metadata_log_stay_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    """Asking for payloads is not asking for passwords."""
    quorum = GOLDEN / "captures" / "quorum.pcap.xz"
    for options in ((), ("--template", "%s"), ("--json",)):
        hidden = "".join(_run(capsys, quorum, *options))
        shown = "".join(_run(capsys, quorum, *options, "--show-secrets"))
        assert "redacted" in hidden
        assert "redacted" not in shown
