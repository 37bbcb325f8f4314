"""Lines of a file: their keys, what options change, findings and the exit code."""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kraftwire.decode.files import (
    FINDINGS,
    LOSSES,
    ExitCode,
    FileFinding,
    FileKind,
    FileOptions,
    FileReport,
    decode_file,
)
from kraftwire.errors import UsageError
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.records.metadata import encode_metadata
from tests.support.logs.bytes import batch, legacy_message, segment

ROOT = Path(__file__).resolve().parents[4]
README = ROOT / "kraftwire" / "decode" / "README.md"
GOLDEN = ROOT / "tests" / "golden" / "logs"
METADATA = GOLDEN / "controller/__cluster_metadata-0/00000000000000000000.log"
SNAPSHOT = GOLDEN / "controller/__cluster_metadata-0/00000000000000001156-0000000004.checkpoint"
BATCH_KEYS = [
    "file", "position", "baseOffset", "lastOffset", "count", "baseSequence", "lastSequence",
    "producerId", "producerEpoch", "partitionLeaderEpoch", "isTransactional", "isControl",
    "deleteHorizonMs", "timestampType", "maxTimestamp", "size", "magic", "compression", "crc",
    "isValid", "records",
]  # fmt: skip


@dataclass
class Decoded:
    """What decoding a file gave."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)
    report: FileReport = field(default_factory=FileReport)

    @property
    def ids(self) -> list[str]:
        return [finding.id for finding in self.findings]


def decode(path: Path, **options: Any) -> Decoded:
    result = Decoded()
    result.report.on_finding = result.findings.append
    lines = decode_file(path, FileOptions(**options), result.report)
    result.lines = [line.json for line in lines]
    return result


def write(path: Path, *parts: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(parts))
    return path


@pytest.mark.parametrize("magic", [1, 2])
def test_a_batch_line_has_exactly_the_keys_of_the_contract(tmp_path: Path, magic: int) -> None:
    """Consumers of the lines rely on the closed set, in every batch format."""
    content = batch(0, [b"v"]) if magic == 2 else legacy_message(0, b"v")
    (line,) = decode(write(tmp_path / "t-0" / f"{0:020d}.log", content)).lines
    assert list(line) == BATCH_KEYS
    assert list(line["records"][0]) == ["offset", "timestamp", "key", "value", "headers", "decoded"]
    assert line["records"][0]["value"] == b64encode(b"v").decode()


def test_positions_count_from_the_start_of_the_file(tmp_path: Path) -> None:
    """This holds however the file is split for reading."""
    parts = segment(0, 200, value_size=9000)
    result = decode(write(tmp_path / "t-0" / f"{0:020d}.log", *parts))
    assert [line["position"] for line in result.lines[:3]] == [0, len(parts[0]), 2 * len(parts[0])]
    assert sum(line["size"] for line in result.lines) == sum(map(len, parts))
    assert result.findings == []


def test_index_and_state_lines_have_their_keys() -> None:
    """Three keys of a state file; an index line has a position or a timestamp."""
    (state,) = decode(GOLDEN / "broker/.kafka_cleanshutdown").lines
    assert list(state) == ["file", "type", "data"]
    assert state["type"] == "kafka_cleanshutdown"
    line = decode(METADATA.with_suffix(".index")).lines[0]
    assert list(line) == ["file", "entry", "offset", "position"]
    line = decode(METADATA.with_suffix(".timeindex")).lines[0]
    assert list(line) == ["file", "entry", "offset", "timestamp"]
    (state,) = decode(GOLDEN / "broker/recovery-point-offset-checkpoint").lines
    assert state["type"] == "recovery-point-offset-checkpoint"


def test_records_can_be_summarized_or_left_out() -> None:
    """Sizes and types answer most questions; headers alone are fastest."""
    summary = decode(METADATA, records="summary").lines[0]["records"][0]
    assert summary["type"] == "LeaderChangeMessage"
    assert "value" not in summary
    assert decode(METADATA, records="none").lines[0]["records"] is None


def test_the_folder_tells_how_records_are_decoded(tmp_path: Path) -> None:
    """An option overrides it; a file elsewhere is only taken for what its content shows."""
    content = METADATA.read_bytes()
    here = decode(write(tmp_path / "elsewhere" / METADATA.name, content))
    assert here.lines[1]["records"][0]["decoded"]["type"] == "BeginTransactionRecord"
    there = decode(write(tmp_path / "topic-0" / METADATA.name, content))
    assert there.lines[1]["records"][0]["decoded"] is None
    forced = decode(tmp_path / "topic-0" / METADATA.name, family="metadata")
    assert forced.lines[1]["records"][0]["decoded"]["type"] == "BeginTransactionRecord"
    plain = decode(METADATA, family="none")
    assert plain.lines[1]["records"][0]["decoded"] is None


def test_secrets_of_the_metadata_log_are_hidden_unless_asked_for() -> None:
    """A log directory in a bug report must not give away SCRAM keys."""
    shown = [
        record["decoded"]["data"]
        for line in decode(METADATA, show_secrets=True).lines
        for record in line["records"]
        if record["decoded"]["type"] == "UserScramCredentialRecord"
    ]
    assert shown
    hidden = json.dumps(decode(METADATA).lines)
    for data in shown:
        for key in ("salt", "storedKey", "serverKey"):
            assert data[key] in json.dumps(decode(METADATA, show_secrets=True).lines)
            assert data[key] not in hidden


def test_findings_about_a_metadata_log_show_no_bytes_unless_asked(tmp_path: Path) -> None:
    """The remains of a damaged batch may be a key."""
    content = METADATA.read_bytes()
    path = write(tmp_path / "__cluster_metadata-0" / METADATA.name, content[:1000])
    assert [f.rest for f in decode(path).findings] == [b""]
    assert decode(path, show_secrets=True).findings[0].rest


def test_a_gap_in_the_metadata_log_is_reported_and_one_in_a_compacted_topic_is_not(
    tmp_path: Path,
) -> None:
    """Only the metadata log is never compacted."""
    record = PartitionRecord()
    value = encode_metadata(record, 0)
    parts = [batch(offset, [value]) for offset in (7, 8, 12)]
    told = decode(write(tmp_path / "__cluster_metadata-0" / f"{7:020d}.log", *parts))
    assert told.ids == ["offset-gap"]
    assert told.report.exit_code is ExitCode.CLEAN
    assert decode(write(tmp_path / "t-0" / f"{7:020d}.log", *parts)).findings == []


def test_offsets_and_epochs_that_go_back_are_reported(tmp_path: Path) -> None:
    """The CRC does not cover them, so nothing else would show the damage."""
    parts = [batch(5, [b"a"], leader_epoch=3), batch(5, [b"b"], leader_epoch=2)]
    result = decode(write(tmp_path / "t-0" / f"{9:020d}.log", *parts))
    assert result.ids == ["not-monotonic"] * 3
    assert result.report.exit_code is ExitCode.CLEAN


def test_a_snapshot_without_its_footer_is_reported(tmp_path: Path) -> None:
    """Unless it is still being fetched."""
    content = SNAPSHOT.read_bytes()
    cut = write(tmp_path / SNAPSHOT.name, content[:-75])
    assert decode(cut).ids == ["snapshot-incomplete"]
    assert decode(SNAPSHOT).ids == []
    part = write(tmp_path / f"{SNAPSHOT.name}.part", content[:-75])
    assert decode(part).ids == []


def test_records_that_cannot_be_decompressed_are_reported(tmp_path: Path) -> None:
    """The line is there with the header; the loss is in the exit code."""
    content = batch(0, [b"abc" * 50], attributes=3)
    result = decode(write(tmp_path / "t-0" / f"{0:020d}.log", content))
    assert result.lines[0]["isValid"]
    assert result.lines[0]["records"] == []
    assert result.ids == ["batch-damaged"]
    assert result.report.exit_code is ExitCode.PARTIAL


def test_a_legacy_message_that_leads_outside_is_reported(tmp_path: Path) -> None:
    """Its CRC may still be right; the messages around it are shown."""
    body = bytes.fromhex("0100") + bytes(8) + (999).to_bytes(4, "big") + bytes(4)
    crc = zlib.crc32(body).to_bytes(4, "big")
    broken = bytes(7) + b"\x01" + (len(body) + 4).to_bytes(4, "big") + crc + body
    parts = [legacy_message(0, b"a"), broken, legacy_message(2, b"b")]
    result = decode(write(tmp_path / "t-0" / f"{0:020d}.log", *parts))
    assert [line["baseOffset"] for line in result.lines] == [0, 2]
    assert result.ids == ["batch-damaged"]


def test_an_unknown_codec_is_reported(tmp_path: Path) -> None:
    """A header of a future Kafka is shown, its records are not."""
    result = decode(write(tmp_path / "t-0" / f"{0:020d}.log", batch(0, [b"v"], attributes=6)))
    assert [line["records"] for line in result.lines] == [[]]
    assert result.ids == ["batch-damaged"]


def test_undecodable_records_of_a_batch_are_one_finding(tmp_path: Path) -> None:
    """A wrong --records-as must not print a finding for each record."""
    content = batch(0, [b"\xff" * 9] * 100)
    path = write(tmp_path / "t-0" / f"{0:020d}.log", content)
    result = decode(path, family="metadata")
    assert result.ids == ["record-undecoded"]
    assert "99 more" in result.findings[0].detail


def test_a_metadata_record_of_an_unknown_type_is_a_loss_that_names_the_type(
    tmp_path: Path,
) -> None:
    """It is of a newer Kafka: it is shown unchanged, and nobody takes it for decoded."""
    content = batch(0, [b"\x01\x7e\x00abc", encode_metadata(PartitionRecord(), 0)])
    result = decode(write(tmp_path / "__cluster_metadata-0" / f"{0:020d}.log", content))
    unknown, known = result.lines[0]["records"]
    assert (unknown["decoded"], unknown["value"]) == (None, "AX4AYWJj")
    assert known["decoded"]["type"] == "PartitionRecord"
    assert result.ids == ["record-undecoded"]
    assert result.findings[0].detail.endswith("unknown type of a metadata record: 126")
    assert result.report.exit_code is ExitCode.PARTIAL


def test_exit_codes(tmp_path: Path) -> None:
    """Clean, nothing, partial."""
    parts = segment(0, 3)
    log = tmp_path / "t-0" / f"{0:020d}.log"
    assert decode(write(log, *parts)).report.exit_code is ExitCode.CLEAN
    assert decode(write(log)).report.exit_code is ExitCode.CLEAN
    assert decode(write(log, *parts, parts[0][:40])).report.exit_code is ExitCode.CLEAN
    assert decode(write(log, parts[0], bytes(50), parts[1])).report.exit_code is ExitCode.PARTIAL
    assert decode(write(log, b"\xff" * 999)).report.exit_code is ExitCode.NOTHING
    assert decode(write(tmp_path / "notes.txt", b"hello")).report.exit_code is ExitCode.NOTHING
    assert decode(tmp_path / "gone").report.exit_code is ExitCode.NOTHING


def test_an_unknown_file_is_reported_and_is_not_a_failure(tmp_path: Path) -> None:
    """Folders hold other people's files too."""
    result = decode(write(tmp_path / "notes.txt", b"hello"))
    assert result.ids == ["unknown-file"]
    assert not result.findings[0].is_loss
    assert result.report.files[FileKind.UNKNOWN] == 1
    assert str(result.findings[0]).endswith("[68656c6c6f]")


def test_a_damaged_state_file_is_reported_with_its_place(tmp_path: Path) -> None:
    """The JSON line has no place for half of it."""
    result = decode(write(tmp_path / "leader-epoch-checkpoint", b"0\n1\n1 x\n"))
    assert result.lines == []
    assert [(f.id, f.position) for f in result.findings] == [("unreadable-state", 4)]


def test_a_capture_is_refused(tmp_path: Path) -> None:
    """It has another reader; the caller asks for the kind first."""
    path = write(tmp_path / "c.pcap", b"\xd4\xc3\xb2\xa1" + bytes(20))
    with pytest.raises(UsageError, match="capture"):
        decode(path)


def test_a_broken_archive_is_reported(tmp_path: Path) -> None:
    """Not a traceback."""
    path = write(tmp_path / f"{0:020d}.log.gz", gzip.compress(b"x" * 5000)[:-9])
    assert decode(path).ids == ["unreadable-file"]


def test_the_page_lists_every_finding() -> None:
    """The exit code and the documentation use the same ids."""
    text = (ROOT / "docs" / "findings.md").read_text()
    for id, meaning in FINDINGS.items():
        assert f"| `{id}` | {'yes' if id in LOSSES else ''} | {meaning} |" in text
    assert set(FINDINGS) > LOSSES


def test_the_example_of_the_readme_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the first thing that a reader copies."""
    monkeypatch.chdir(README.parents[2])
    (example,) = (
        block.partition("```")[0]
        for block in README.read_text().split("```python\n")[1:]
        if "open_source" in block
    )
    exec(compile(example, str(README), "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 {'offset-gap': 1}")
