"""The bytes of frames and of lines of files, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.decode.files import FileLine, FileOptions, FileReport, decode_file, walk
from kraftwire.errors import StorageError
from kraftwire.inspect.bytes import frame_spans, line_spans
from tests.support.captures.decoded import decoded_frames, golden
from tests.support.logs.bytes import legacy_message

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "logs"
METADATA = GOLDEN / "controller/__cluster_metadata-0/00000000000000000000.log"


def lines(path: Path, *, show_secrets: bool = True) -> Iterator[FileLine]:
    return decode_file(path, FileOptions(show_secrets=show_secrets), FileReport())


def fail(error: StorageError) -> None:
    raise error


@pytest.mark.parametrize("folder", ["controller", "observer", "broker"])
def test_spans_cover_every_byte_of_every_line(folder: str) -> None:
    """A byte view that leaves out bytes, or shows some twice, is worse than none."""
    for path in walk([GOLDEN / folder], fail):
        for line in lines(path):
            position = line.position
            for span in line_spans(line):
                assert span.start == position, f"{path} {span}"
                position = span.end
            assert position == line.position + len(line.data), path


def test_a_metadata_record_is_taken_apart() -> None:
    """Down to the fields of its schema, by the names of the JSON form."""
    line = list(lines(METADATA))[1]
    paths = [span.path for span in line_spans(line)]
    assert paths[:3] == ["baseOffset", "batchLength", "partitionLeaderEpoch"]
    second = [path for path in paths if path.startswith("records[1].value")]
    assert second == [
        "records[1].value.length",
        "records[1].value.frameVersion",
        "records[1].value.type",
        "records[1].value.version",
        "records[1].value.name.length",
        "records[1].value.name",
        "records[1].value.featureLevel",
        "records[1].value.taggedFields",
    ]


def test_a_coordinator_record_is_taken_apart() -> None:
    """In key and value, a type and a version precede the message."""
    line = next(lines(GOLDEN / "broker/__consumer_offsets-1/00000000000000000000.log"))
    found = {span.path: span.value for span in line_spans(line)}
    assert found["records[0].key.type"] == 2
    assert found["records[0].key.group"] == "grp-classic-0"
    assert found["records[0].value.version"] == 3


def test_compressed_records_are_one_span() -> None:
    """Their bytes in the file are not those of the records."""
    line = next(lines(GOLDEN / "broker/comp-zstd-0/00000000000000001378.log"))
    *_, last = line_spans(line)
    assert (last.path, last.start, last.end) == ("records", 61, line.json["size"])
    assert last.value == f"{line.json['count']} in zstd"


def test_a_legacy_message_is_taken_apart(tmp_path: Path) -> None:
    """The oldest format has no record count and no producer."""
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(legacy_message(0, b"v"))
    paths = [span.path for span in line_spans(next(lines(path)))]
    assert paths[2:] == ["crc", "magic", "attributes", "timestamp", "key.length", "value.length",
                         "value.value"]  # fmt: skip


def test_records_with_secrets_are_hidden() -> None:
    """The bytes of a SCRAM key are the key; other batches are shown."""
    shown = list(lines(METADATA, show_secrets=False))
    hidden = [line for line in shown if any(span.is_hidden for span in line_spans(line))]
    assert hidden
    assert len(hidden) < len(shown)
    for line in hidden:
        *_, last = line_spans(line)
        assert (last.value, last.end) == ("[redacted]", line.position + len(line.data))
        assert "UserScramCredentialRecord" in str(line.json)


def test_a_field_called_size_is_named_as_itself() -> None:
    """The sizes of tagged fields have the same name."""
    frames = decoded_frames(golden("quorum"))
    (frame, *_) = [
        each for each in frames if each.api_name == "FetchSnapshot" and not each.is_request
    ]
    paths = [each.path for each in frame_spans(frame, frame.settings.topics)]
    assert "topics[0].partitions[0].size" in paths
    assert not [path for path in paths if path.endswith("size.size")]
