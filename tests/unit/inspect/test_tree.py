"""The field tree: names of the schema, readable values, hidden secrets, long arrays cut."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.files import FileOptions, FileReport, decode_file
from kraftwire.inspect.tree import TreeWriter, json_lines
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.topic_record import TopicRecord
from tests.support.captures.frames import FrameMaker
from tests.support.captures.scripted_quorum import batch

LOGS = Path(__file__).resolve().parents[2] / "golden" / "logs"
METADATA_ID = bytes(15) + b"\x01"


def _tree(
    frames: list[RawFrame], *, is_full: bool = False, show_secrets: bool = False
) -> list[str]:
    settings = Settings(RecordsForm(show_secrets=show_secrets))
    stream = io.StringIO()
    writer = TreeWriter(stream, topics=settings.topics, is_full=is_full)
    decoder = FrameDecoder(settings)
    for frame in frames:
        writer.frame(decoder.decode(frame))
    writer.finish()
    return stream.getvalue().splitlines()


def _fetch(partitions: int = 1, records: bytes = b"", error: int = 0) -> list[RawFrame]:
    maker = FrameMaker()
    asked = [FetchPartition(partition=n, fetch_offset=5) for n in range(partitions)]
    told = [
        PartitionData(partition_index=n, error_code=error, records=memoryview(records))
        for n in range(partitions)
    ]
    return [
        maker.request(
            FetchRequest(
                max_wait_ms=500, topics=[FetchTopic(topic_id=METADATA_ID, partitions=asked)]
            ),
            17,
        ),
        maker.response(
            FetchResponse(
                responses=[FetchableTopicResponse(topic_id=METADATA_ID, partitions=told)]
            )
        ),
    ]


def test_request_and_response_share_one_head() -> None:
    """A response without its request is half of the story."""
    lines = _tree(_fetch())
    assert lines[0] == (
        "1970-01-01T00:16:40.000Z  10.0.0.1:50000-10.0.0.2:9092  Fetch v17  correlation 1  2.500 ms"
    )
    sides = [line for line in lines if line.startswith("  re")]
    assert [side.split(":")[0].strip() for side in sides] == ["request", "response"]
    assert sides[0].endswith("client id tester")


def test_fields_have_the_names_of_the_schema_and_readable_values() -> None:
    """Codes by name, ids by topic: readers need no protocol guide."""
    text = "\n".join(_tree(_fetch(error=1)))
    assert "    maxWaitMs: 500" in text
    assert "topicId: AAAAAAAAAAAAAAAAAAAAAQ (__cluster_metadata)" in text
    assert "errorCode: 1 OFFSET_OUT_OF_RANGE" in text
    assert "isolationLevel: 0 (read uncommitted)" in text


def test_long_arrays_are_cut_unless_all_is_wanted() -> None:
    """A Fetch of a thousand partitions would bury everything else."""
    short, full = _tree(_fetch(40)), _tree(_fetch(40), is_full=True)
    assert sum("... 35 more, -vv shows all" in line for line in short) == 2
    assert not any("more, -vv" in line for line in full)
    assert sum("partitionIndex: " in line for line in full) == 40


def test_batches_are_one_line_each_and_show_the_records_in_them() -> None:
    """The content is in the records; metadata records are decoded."""
    topic = TopicRecord(name="orders", topic_id=bytes(range(16)))
    lines = _tree(_fetch(records=batch(7, 3, [topic])))
    (found,) = [line.strip() for line in lines if "batch offsets" in line]
    assert found.startswith("batch offsets 7-7, 1 record, leader epoch 3, ")
    assert any(line.strip().startswith("offset 7 at ") for line in lines)
    assert any('"name": "orders"' in line for line in lines)


def test_secrets_are_hidden_unless_they_are_asked_for() -> None:
    """Trees are pasted into tickets."""
    maker = FrameMaker()
    login = [
        maker.request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0hunter2"), 2),
        maker.response(SaslAuthenticateResponse()),
    ]
    assert b"hunter2".hex(" ") not in "\n".join(_tree(login))
    assert "authBytes: [redacted]" in "\n".join(_tree(login))
    assert b"hunter2".hex(" ") in "\n".join(_tree(login, show_secrets=True))


def test_a_body_that_breaks_off_shows_what_was_read_and_why() -> None:
    """The first fields of a damaged frame are often enough to identify it."""
    request, _ = _fetch()
    request.data = request.data[:40]
    request.size = 40
    text = "\n".join(_tree([request]))
    assert "maxWaitMs: 500" in text
    assert "finding undecoded at byte" in text


def test_a_request_that_never_gets_an_answer_is_shown_at_the_end() -> None:
    """It waits for its response, but not for ever."""
    request, _ = _fetch()
    assert _tree([request])[0].endswith("no response")


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("controller/__cluster_metadata-0/00000000000000000000.log", "LeaderChangeMessage v0"),
        ("controller/meta.properties", "cluster.id"),
        ("broker/__consumer_offsets-1/00000000000000000000.log", "batch offsets 0-0"),
        ("broker/__consumer_offsets-1/00000000000000000000.index", "position"),
    ],
)
def test_files_have_trees_too(file: str, part: str) -> None:
    """The same view for files on disk."""
    stream, settings = io.StringIO(), Settings()
    writer = TreeWriter(stream, topics=settings.topics)
    for line in decode_file(LOGS / file, FileOptions(), FileReport()):
        writer.file_line(line)
    writer.finish()
    assert part in stream.getvalue()


def test_objects_that_fit_stay_on_one_line() -> None:
    """Otherwise a single record would fill a screen."""
    assert list(json_lines("a", {"b": 1}, "  ", is_full=False)) == ['  a: {"b": 1}']
    long = {"b": "x" * 130, "c": list(range(200))}
    lines = list(json_lines("a", long, "", is_full=False))
    assert lines[0] == "a:"
    assert lines[-1].strip() == "... 195 more, -vv shows all"
