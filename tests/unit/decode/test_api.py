"""`kraftwire.decode` for programs: frames, exchanges, batches and records under one import."""

from __future__ import annotations

import io
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kraftwire.decode
from kraftwire.decode import FilterOptions, Memory, Options
from kraftwire.decode.files import FileOptions, FileReport, decode_file
from kraftwire.errors import StorageError, UsageError
from kraftwire.messages.vote_request import VoteRequest
from tests.support.captures.decoded import GOLDEN, ROOT, decode, golden

LOGS = ROOT / "tests" / "golden" / "logs"
SEGMENT = LOGS / "broker" / "__consumer_offsets-1" / "00000000000000000000.log"
READMES = ("docs/decode.md", "kraftwire/decode/README.md", "kraftwire/story/README.md")
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CAPITAL = re.compile(r"[A-Z]")


def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda match: f"_{match[0].lower()}", name)


@pytest.mark.parametrize("name", GOLDEN)
def test_frames_have_the_attributes_of_json_lines(name: str) -> None:
    """Users who know the lines know the attributes."""
    lines = decode(golden(name)).lines
    frames = list(kraftwire.decode.open(golden(name)))
    assert len(frames) == len(lines)
    for frame, line in zip(frames, lines, strict=True):
        json = frame.to_json()
        assert json == line
        for key in line.keys() - {"header", "body", "findings"}:
            assert getattr(frame, _snake(key)) == line[key], key
        assert frame.header_json == line["header"]
        assert frame.body_json == line["body"]
        assert [each.id for each in frame.findings] == [each["id"] for each in line["findings"]]


def test_a_known_body_has_its_type() -> None:
    """Type checkers see fields of the message after isinstance, and with body_as."""
    epochs: list[int] = []
    for frame in kraftwire.decode.open(golden("quorum")):
        if isinstance(frame.body, VoteRequest):
            epochs += [part.replica_epoch for t in frame.body.topics for part in t.partitions]
            vote = frame.body_as(VoteRequest)
            assert vote is not None
            assert vote.cluster_id == frame.body.cluster_id
    assert epochs


def test_any_source_and_any_name() -> None:
    """Programs have bytes more often than paths."""
    content = golden("quorum").read_bytes()
    frames = list(kraftwire.decode.open(io.BytesIO(content), name="upload"))
    assert {frame.file for frame in frames} == {"upload"}
    assert len(frames) == len(list(kraftwire.decode.open(str(golden("quorum")))))


def test_filters_choose_frames_and_exchanges() -> None:
    """An exchange is shown whole, even if only one side matches."""
    options = Options(filters=FilterOptions(api=("Vote",)))
    frames = list(kraftwire.decode.open(golden("quorum"), options=options))
    assert {frame.api_name for frame in frames} == {"Vote"}
    found = list(kraftwire.decode.exchanges(golden("quorum"), options=options))
    assert sum(bool(each.request) + bool(each.response) for each in found) == len(frames)
    failed = Options(filters=FilterOptions(error=("any",)))
    for each in kraftwire.decode.exchanges(golden("clients"), options=failed):
        assert each.error_names
        assert each.request is not None
        assert each.response is not None
        assert each.response.error_names == each.error_names
        assert each.request.correlation_id == each.correlation_id


def test_health_and_memory_are_there_at_the_end() -> None:
    """Totals, and what the next run may start from."""
    frames = kraftwire.decode.open(golden("clients"))
    count = sum(1 for _ in frames)
    assert frames.health.frames == count
    assert frames.health.bytes.unaccounted == 0
    assert frames.memory.topics.by_id()
    with kraftwire.decode.open(golden("clients"), memory=frames.memory.copy()) as again:
        assert again.memory == frames.memory


def test_options_go_through_pickle() -> None:
    """Workers get the same options as the command line."""
    options = Options(records="summary", filters=FilterOptions(topic=("a*",), since="2026-11-21"))
    assert pickle.loads(pickle.dumps(options)) == options
    assert pickle.loads(pickle.dumps(Memory())) == Memory()


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Errors name the file, and invalid calls are refused."""
    with pytest.raises(StorageError, match="missing"):
        kraftwire.decode.open(tmp_path / "missing.pcap")
    with pytest.raises(StorageError, match="not a capture"):
        list(kraftwire.decode.open(b"no capture at all, only text"))
    with pytest.raises(UsageError):
        kraftwire.decode.open(golden("quorum"), options=Options(filters=FilterOptions(since="x")))
    with pytest.raises(UsageError, match="neither a segment"):
        list(kraftwire.decode.batches(golden("quorum")))
    with pytest.raises(StorageError):
        list(kraftwire.decode.records(tmp_path / "missing.log"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [line.json for line in decode_file(path, FileOptions(), FileReport())]


@pytest.mark.parametrize("path", sorted(LOGS.rglob("*.log")), ids=lambda path: path.parent.name)
def test_batches_and_records_are_those_of_the_lines(path: Path) -> None:
    """The same file, with values in the place of JSON."""
    lines = _lines(path)
    found = list(kraftwire.decode.batches(path))
    assert [(each.position, each.batch.base_offset, each.is_valid) for each in found] == [
        (line["position"], line["baseOffset"], line["isValid"]) for line in lines
    ]
    offsets = [record["offset"] for line in lines for record in line["records"]]
    records = list(kraftwire.decode.records(path))
    assert [record.offset for record in records] == offsets
    with path.open("rb") as stream:
        again = list(kraftwire.decode.records(stream))
    assert [each.record for each in again] == [each.record for each in records]


def test_damage_of_a_segment_is_reported_and_not_skipped(tmp_path: Path) -> None:
    """Batches continue after damage; records that may be wrong are an error."""
    data = bytearray(SEGMENT.read_bytes())
    data[100] ^= 1
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    told: list[str] = []
    found = list(kraftwire.decode.batches(path, lambda finding: told.append(finding.id)))
    assert told == ["batch-crc"]
    assert [each.is_valid for each in found] == [each is not found[0] for each in found]
    with pytest.raises(StorageError, match="CRC") as caught:
        list(kraftwire.decode.records(path))
    assert (caught.value.file, caught.value.position) == (str(path), 0)


def test_every_name_is_there_and_typed() -> None:
    """What type checkers see must exist, under the same name."""
    for name in kraftwire.decode.__all__:
        assert getattr(kraftwire.decode, name).__name__ == name
    with pytest.raises(AttributeError, match="nonsense"):
        kraftwire.decode.nonsense  # noqa: B018


def test_importing_the_package_loads_no_decoder() -> None:
    """The command line and other packages must not pay for what they do not use."""
    code = (
        "import sys, kraftwire.decode\n"
        "print([name for name in sys.modules if name.startswith('kraftwire.decode.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _examples() -> list[Any]:
    return [
        pytest.param(match[1], id=f"{path}:{text[: match.start()].count(chr(10)) + 1}")
        for path in READMES
        for text in [(ROOT / path).read_text()]
        for match in _PYTHON.finditer(text)
    ]


@pytest.mark.parametrize("code", _examples())
def test_examples_of_the_readme_run(code: str) -> None:
    """An example that fails for a newcomer is worse than none."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
