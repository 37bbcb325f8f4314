"""The byte view: every byte once, in order, with its field; secrets as stars."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.tls import KeyLog
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.layouts import Span
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.files import FileOptions, FileReport, decode_file, walk
from kraftwire.inspect.bytes import BytesWriter, frame_spans, hexdump
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from tests.support.captures.frames import FrameMaker

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
CAPTURES = sorted((GOLDEN / "captures").glob("*.pcap.xz"))


def _vote() -> RawFrame:
    partition = PartitionData(replica_epoch=4, replica_id=3, last_offset=878, pre_vote=True)
    topic = TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return FrameMaker().request(VoteRequest(voter_id=1, topics=[topic]), 2)


def _decoded(frame: RawFrame, *, show_secrets: bool = False) -> Frame:
    return FrameDecoder(Settings(RecordsForm(show_secrets=show_secrets))).decode(frame)


def _spans(frame: Frame) -> list[Span]:
    return list(frame_spans(frame, frame.settings.topics))


def _assert_covers(found: list[Span], start: int, end: int) -> None:
    position = start
    for span in found:
        assert span.start == position, span
        assert span.end > span.start, span
        position = span.end
    assert position == end


def test_a_vote_is_taken_apart_to_the_last_byte() -> None:
    """The page of a protocol guide, made from real bytes."""
    found = {span.path: span for span in _spans(_decoded(_vote()))}
    epoch = found["topics[0].partitions[0].replicaEpoch"]
    assert (epoch.end - epoch.start, epoch.value) == (4, "4")
    assert found["apiKey"].value == "52 Vote"
    assert found["size"].start == -4
    assert found["topics.length"].value == "2 (1)"
    assert found["topics[0].partitions[0].preVote"].value == "true"


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_spans_cover_every_frame_without_gap_or_overlap(path: Path) -> None:
    """A byte that no field claims would be overlooked."""
    decoder = FrameDecoder(Settings())
    keys = KeyLog.read(str(GOLDEN / "captures" / "tls.keylog"))
    count = 0
    for frame in Capture(str(path), keys=keys):
        decoded = decoder.decode(frame)
        _assert_covers(_spans(decoded), -4, len(decoded.payload.data) if not decoded.is_token
                       else len(frame.data))
        count += 1
    assert count


def test_spans_cover_damaged_frames_as_well() -> None:
    """What cannot be read is shown as such, not left out."""
    whole = _vote()
    for size in range(len(whole.data)):
        frame = _vote()
        frame.data = frame.data[:size]
        frame.size = size
        _assert_covers(_spans(_decoded(frame)), -4, size)
    changed = _vote()
    for index in range(len(whole.data)):
        changed.data = whole.data[:index] + b"\xff" + whole.data[index + 1 :]
        _assert_covers(_spans(_decoded(changed)), -4, len(whole.data))


def test_secrets_are_stars_in_both_columns() -> None:
    """Neither hex nor text nor value may reveal a password."""
    frame = FrameMaker().request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0hunter2"), 2)
    settings = Settings()
    stream = io.StringIO()
    writer = BytesWriter(stream, topics=settings.topics)
    writer.frame(FrameDecoder(settings).decode(frame))
    writer.finish()
    text = stream.getvalue()
    assert "hunter" not in text
    assert b"hunter2".hex(" ")[:11] not in text
    assert "authBytes = [redacted]" in text
    shown = _spans(_decoded(frame, show_secrets=True))
    assert any("hunter2" in str(span.value) or not span.is_hidden for span in shown)
    assert not any(span.is_hidden for span in shown)


def test_long_fields_are_cut_unless_all_is_wanted() -> None:
    """Nobody reads half a megabyte of records in hex."""
    span = Span("data", 0, 1000, "")
    short = list(hexdump([span], bytes(1000)))
    assert len(short) == 33
    assert short[-1].strip() == "... 744 bytes more, -v shows all"
    assert len(list(hexdump([span], bytes(1000), is_full=True))) == 125


def test_rows_have_range_hex_text_path_and_value() -> None:
    """The exact columns."""
    lines = list(hexdump([Span("name", 2, 12, '"abcdefghij"')], b"..abcdefghij", 0))
    assert lines == [
        '[ 2, 12)  61 62 63 64 65 66 67 68  abcdefgh  name = "abcdefghij"',
        "          69 6a                    ij      ",
    ]


def test_files_are_shown_from_their_first_byte_on() -> None:
    """Positions are those of the file, so that a hex editor finds the same bytes."""
    folder = GOLDEN / "logs" / "controller"
    for path in walk([folder], print):
        stream, settings = io.StringIO(), Settings()
        writer = BytesWriter(stream, topics=settings.topics)
        end = 0
        for line in decode_file(path, FileOptions(), FileReport()):
            writer.file_line(line)
            end = line.position + len(line.data)
        writer.finish()
        if end:
            assert re.search(r"\[ *0, ", stream.getvalue()), path
            assert re.search(rf", *{end}\)", stream.getvalue()), path
