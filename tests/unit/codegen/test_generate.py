"""Regenerating when schemas change: edit a schema, run one command, use the new field."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.errors import SchemaError
from codegen.generate import compare, generate
from kraftwire.errors import WireError
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from tests.support.messages.vectors import vectors

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = ROOT / "schemas"
# Small, and with every construct: nested and common structs, tags, nulls, records, old versions.
SAMPLE = (
    "header/RequestHeader", "rpc/DescribeQuorumRequest", "rpc/DescribeQuorumResponse",
    "rpc/FetchRequest", "rpc/FetchResponse", "rpc/DescribeTopicPartitionsRequest",
    "rpc/DescribeTopicPartitionsResponse", "metadata/PartitionChangeRecord",
    "coordinator/OffsetCommitKey", "coordinator/OffsetCommitValue", "control/VotersRecord",
)  # fmt: skip
NEW_FIELD = """\
    { "name": "QuorumName", "type": "string", "versions": "3+", "nullableVersions": "3+",
      "taggedVersions": "3+", "tag": 0, "default": "null",
      "about": "Name an operator gave the quorum" },
"""
# The response in the first draft of KIP-595, before anything was released.
DRAFT = """\
// Everything about the quorum, as its leader sees it.
{
  "apiKey": 55, "type": "response", "name": "DescribeQuorumResponse",
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    { "name": "ErrorCode", "type": "int16", "versions": "0+" },
    { "name": "ClusterId", "type": "string", "versions": "0+" },
    { "name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
      { "name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName" },
      { "name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        { "name": "PartitionIndex", "type": "int32", "versions": "0+" },
        { "name": "LeaderId", "type": "int32", "versions": "0+" },
        { "name": "LeaderEpoch", "type": "int32", "versions": "0+" },
        { "name": "HighWatermark", "type": "int64", "versions": "0+" },
        { "name": "CurrentVoters", "type": "[]ReplicaState", "versions": "0+" },
        // Voters that an ongoing reassignment leads to.
        { "name": "TargetVoters", "type": "[]ReplicaState", "versions": "0+" },
        { "name": "Observers", "type": "[]ReplicaState", "versions": "0+" }
      ] }
    ] }
  ],
  "commonStructs": [
    { "name": "ReplicaState", "versions": "0+", "fields": [
      { "name": "ReplicaId", "type": "int32", "versions": "0+" },
      { "name": "LogEndOffset", "type": "int64", "versions": "0+" }
    ] }
  ]
}
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A folder with a few schemas."""
    folder = tmp_path / "schemas"
    for name in SAMPLE:
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(SCHEMAS / f"{name}.json", path)
    return folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where to generate a package that can then be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    target = tmp_path / f"{tmp_path.name.replace('-', '_')}_messages"
    yield target
    for name in [each for each in sys.modules if each.partition(".")[0] == target.name]:
        del sys.modules[name]


def imported(package: Path) -> ModuleType:
    """The generated package."""
    importlib.invalidate_caches()
    return importlib.import_module(package.name)


def edit(path: Path, old: str, new: str) -> None:
    """Replace text that occurs in a file once."""
    text = path.read_text("utf-8")
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.slow
def test_a_new_tagged_field_in_a_new_version_is_one_edit_away(
    tmp_path: Path, package: Path
) -> None:
    """What a contributor does when a KIP adds a field: edit, generate, use."""
    schemas = tmp_path / "schemas"
    shutil.copytree(SCHEMAS, schemas)
    response = schemas / "rpc" / "DescribeQuorumResponse.json"
    newest = DescribeQuorumResponse.VERSIONS.high
    now, then = (f'"validVersions": "0-{high}"' for high in (newest, newest + 1))
    edit(response, now, then)
    field = NEW_FIELD.replace("3+", f"{newest + 1}+")
    edit(response, '    { "name": "Nodes"', field + '    { "name": "Nodes"')
    edit(schemas / "rpc" / "DescribeQuorumRequest.json", now, then)
    assert main(["generate", "--schemas", str(schemas), "--target", str(package)]) == 0
    messages = imported(package)
    assert messages.API_VERSIONS[55] == (0, newest + 1)
    new = messages.find("DescribeQuorumResponse")
    assert new is not DescribeQuorumResponse
    check_round_trip(new, newest + 1)
    check_old_versions(new)


def check_round_trip(new: Any, version: int) -> None:
    """The new field survives, is left out at its default, and older versions refuse it."""
    named, plain = new(quorum_name="main"), new()
    for message in (named, plain):
        data = message.encode(version)
        assert new.decode(data, version) == (message, len(data))
        assert new.from_json(message.to_json(version), version) == message
    assert named.encode(version) == plain.encode(version)[:-1] + bytes.fromhex("010005056d61696e")
    assert plain.encode(version) == plain.encode(version - 1)
    refusal = f"quorumName: version {version - 1} cannot carry the field"
    with pytest.raises(WireError, match=refusal):
        named.encode(version - 1)
    assert "Name an operator gave the quorum" in [each.about for each in new.facts().root.fields]


def check_old_versions(new: Any) -> None:
    """What was released keeps its bytes."""
    for vector in vectors()["DescribeQuorumResponse"]:
        message, end = new.decode(vector.data, vector.version)
        assert end == len(vector.data)
        assert message.encode(vector.version) == vector.data
        assert message.to_json(vector.version) == vector.printed


def test_an_early_draft_of_a_message_is_a_file_away(sample: Path, package: Path) -> None:
    """Captures of experiments can be read with the schema of the KIP's draft."""
    (sample / "rpc" / "DescribeQuorumResponse.json").write_text(DRAFT)
    # The request had that version only, too.
    request = sample / "rpc" / "DescribeQuorumRequest.json"
    versions = re.compile('"validVersions": "[^"]*"')
    request.write_text(versions.sub('"validVersions": "0"', request.read_text()))
    generate(sample, package)
    imported(package)
    module = importlib.import_module(f"{package.name}.describe_quorum_response")
    replica = module.ReplicaState(replica_id=1, log_end_offset=9)
    partition = module.PartitionData(
        leader_id=1, leader_epoch=5, high_watermark=9,
        current_voters=[replica], target_voters=[replica], observers=[],
    )  # fmt: skip
    topic = module.TopicData(topic_name="t", partitions=[partition])
    response = module.DescribeQuorumResponse(cluster_id="kraft", topics=[topic])
    data = response.encode(0)
    state = "0200000001000000000000000900"
    assert data.hex() == (
        "0000" "066b72616674" "02" "0274" "02" "00000000" "00000001" "00000005"
        "0000000000000009" + state + state + "01" "00" "00" "00"
    )  # fmt: skip
    assert module.DescribeQuorumResponse.decode(data, 0) == (response, len(data))
    printed = response.to_json(0)
    assert printed["topics"][0]["partitions"][0]["targetVoters"] == [
        {"replicaId": 1, "logEndOffset": 9}
    ]
    assert module.DescribeQuorumResponse.from_json(printed, 0) == response


def test_a_broken_schema_names_the_line_to_fix(
    sample: Path, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written: half a package would be worse than the old one."""
    path = sample / "rpc" / "DescribeQuorumResponse.json"
    edit(path, '{ "name": "Nodes", "type"', '{ "name": "Nodes", "tag": 0, "type"')
    assert main(["generate", "--schemas", str(sample), "--target", str(package)]) == 1
    error = capsys.readouterr().err
    place, _, problem = error.partition(": ")
    file, _, line = place.partition(":")
    assert file == "rpc/DescribeQuorumResponse.json"
    assert '"tag": 0' in path.read_text().splitlines()[int(line) - 1]
    assert problem == "DescribeQuorumResponse.Nodes: a tag needs taggedVersions [F4]\n"
    assert not package.exists()


def test_only_what_changed_is_written(sample: Path, package: Path) -> None:
    """A small edit makes a small commit, and keeps the bytecode of everything else."""
    first = generate(sample, package)
    assert len(first.missing) == len(SAMPLE) + 1
    (package / "README.md").write_text("kept")
    before = {path.name: path.stat().st_mtime_ns for path in package.iterdir()}
    assert not generate(sample, package)
    edit(
        sample / "metadata" / "PartitionChangeRecord.json",
        '"about": "What changed',
        '"about": "All',
    )
    (sample / "control" / "VotersRecord.json").unlink()
    difference = generate(sample, package)
    assert difference.changed == ["__init__.py", "partition_change_record.py"]
    assert difference.surplus == ["voters_record.py"]
    assert difference.missing == []
    after = {path.name: path.stat().st_mtime_ns for path in package.iterdir()}
    touched = {"__init__.py", "partition_change_record.py"}
    assert {name: time for name, time in before.items() if name not in touched} == {
        name: time for name, time in after.items() if name not in touched
    } | {"voters_record.py": before["voters_record.py"]}
    assert (package / "README.md").read_text() == "kept"


def test_check_says_what_is_out_of_date(
    sample: Path, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A forgotten run of the generator is found before it is committed."""
    arguments = ["--check", "--schemas", str(sample), "--target", str(package)]
    generate(sample, package)
    assert main(arguments) == 0
    (package / "fetch_request.py").write_text("edited by hand")
    (package / "fetch_response.py").unlink()
    (package / "stray.py").write_text("# Generated by codegen from schemas/old\n")
    assert main(arguments) == 1
    assert capsys.readouterr().err.splitlines() == [
        "missing: fetch_response.py",
        "changed: fetch_request.py",
        "surplus: stray.py",
        "run: python -m codegen generate",
    ]


def test_the_output_depends_on_the_schemas_alone(sample: Path, tmp_path: Path) -> None:
    """The output must not depend on set order or on the machine: CI compares bytes."""
    texts = []
    for seed in ("1", "2"):
        target = tmp_path / f"seed{seed}"
        command = [sys.executable, "-m", "codegen", "generate"]
        subprocess.run(
            [*command, "--schemas", sample, "--target", target],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        texts.append({path.name: path.read_bytes() for path in sorted(target.iterdir())})
    assert texts[0] == texts[1]
    assert len(texts[0]) == len(SAMPLE) + 1


def test_generated_text_carries_its_source(sample: Path, package: Path) -> None:
    """Somebody who opens a module sees that it is generated, and from what."""
    generate(sample, package)
    text = (package / "fetch_request.py").read_text()
    assert "Generated by codegen from schemas/rpc/FetchRequest.json (digest " in text
    assert str(sample.parent) not in text


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("rpc/FetchRequest", '"apiKey": 1,', '"apiKey": 55,', "apiKey 55 is also "),
        ("rpc/FetchResponse", '"apiKey": 1,', '"apiKey": 2,', "the request has no response"),
        ("rpc/FetchRequest", '"apiKey": 1,', '"apiKey": 1, "renamedTo": "Get",', "'Get' is not a "),
        ("rpc/FetchResponse", '"0-18"', '"0-17"', "validVersions 0-17 are not FetchRequest's 0-18"),
        ("coordinator/OffsetCommitValue", "CommitValue", "CommitData", "OffsetCommitValue is mis"),
    ],
)
def test_messages_must_fit_together(
    file: str, old: str, new: str, problem: str, sample: Path, package: Path
) -> None:
    """One schema can be right by itself and wrong next to the others."""
    edit(sample / f"{file}.json", old, new)
    with pytest.raises(SchemaError, match=problem) as caught:
        compare(sample, package)
    assert caught.value.file.endswith(".json")


def test_a_plan_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """What is read in which versions, without reading templates."""
    assert main(["--explain", "DescribeQuorumResponse"]) == 0
    told = capsys.readouterr().out
    versions = f"versions 0-{DescribeQuorumResponse.VERSIONS.high}"
    assert told.startswith(
        f"DescribeQuorumResponse: response, API key 55, {versions}, flexible 0+\n"
        "from schemas/rpc/DescribeQuorumResponse.json to "
        "kraftwire/messages/describe_quorum_response.py\n"
    )
    assert f"\nReplicaState, {versions}, Compact\n" in told
    assert "\n  if version >= 2:\n    unpack o.replica_id, o.replica_directory_id, " in told
    assert "\n  array current_voters Compact array ReplicaState\n" in told


def test_every_plan_can_be_explained(capsys: pytest.CaptureFixture[str], sample: Path) -> None:
    """Every construct of the schema language is described."""
    for name in SAMPLE:
        message = name.partition("/")[2]
        assert main(["--explain", message, "--schemas", str(sample)]) == 0
        assert capsys.readouterr().out.startswith(f"{message}: ")


def test_an_unknown_message_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str], sample: Path
) -> None:
    """Such names are easily mistyped."""
    assert main(["--explain", "FetchRequst", "--schemas", str(sample)]) == 1
    assert "there is no message 'FetchRequst' (near: FetchRequest" in capsys.readouterr().err


def test_something_must_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A bare run must not write files by surprise."""
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    assert "expected generate, --check or --explain MESSAGE" in capsys.readouterr().err


ODD = {
    "type": "data", "name": "OddValue", "validVersions": "0", "flexibleVersions": "none",
    "about": 'Says """quoted""" and \\backslash',
    "fields": [
        {"name": "Text", "type": "string", "versions": "0+", "default": "a \"b\" 'c' \\ \n \u20ac"},
        {"name": "Len", "type": "[]string", "versions": "0+"},
        {"name": "Bytes", "type": "bytes", "versions": "0+"},
        {"name": "PutStrings", "type": "[]string", "versions": "0+"},
    ],
}  # fmt: skip


def test_texts_and_names_that_mean_something_to_python_come_through(
    tmp_path: Path, package: Path
) -> None:
    """A default with quotes, an about with three of them, a field that is called Len."""
    schemas = tmp_path / "odd"
    schemas.mkdir()
    (schemas / "OddValue.json").write_text(json.dumps(ODD), "utf-8")
    generate(schemas, package)
    imported(package)
    odd = importlib.import_module(f"{package.name}.odd_value").OddValue
    assert odd().text == "a \"b\" 'c' \\ \n \u20ac"
    value = odd(len=["x", "y"], bytes=b"z", put_strings=["w"])
    assert odd.decode(value.encode(0), 0)[0] == value


def test_only_generated_files_are_removed(sample: Path, package: Path) -> None:
    """A folder named by mistake must not lose handwritten files."""
    generate(sample, package)
    (package / "own.py").write_text("# mine\n", "utf-8")
    (sample / "rpc" / "FetchRequest.json").unlink()
    (sample / "rpc" / "FetchResponse.json").unlink()
    assert generate(sample, package).surplus == ["fetch_request.py", "fetch_response.py"]
    assert (package / "own.py").is_file()


def test_a_target_that_is_a_file_is_refused(sample: Path, tmp_path: Path) -> None:
    """The error is ours, not a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SchemaError, match="the target is not a folder"):
        generate(sample, tmp_path / "file")
