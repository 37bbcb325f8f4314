"""Importing schemas: what is kept of a release's jars, how releases merge, what the report says.

The schemas here are invented and tiny; `test_schemas` looks at the real ones.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kraftwire.errors import UsageError
from tools.import_schemas.__main__ import main
from tools.import_schemas.jars import read_releases
from tools.import_schemas.maven import fetch_release
from tools.import_schemas.merge import union_of_releases
from tools.import_schemas.render import render_schema
from tools.import_schemas.schema import Message, parse_schema
from tools.import_schemas.texts import collect_texts
from tools.import_schemas.tree import read_tree
from tools.import_schemas.versions import Versions, parse_versions


def field(name: str, kind: str = "int32", versions: str = "0+", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, **more}


def request(valid: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An invented request called PingRequest unless `more` says otherwise."""
    facts = {"apiKey": 7, "type": "request", "name": "PingRequest", "flexibleVersions": "none"}
    return {**facts, "validVersions": valid, "fields": list(fields), **more}


def parsed(schema: dict[str, Any]) -> Message:
    return parse_schema(json.dumps(schema), "made up", keep_about=False)


def union(*releases: dict[str, Any]) -> dict[str, Message]:
    """The union of releases with one message each, newest first."""
    return union_of_releases([{release["name"]: parsed(release)} for release in releases])


def ranges(message: Message) -> dict[str, str]:
    return {item.name: str(item.versions) for item in message.fields}


def jar(path: Path, *schemas: dict[str, Any] | str, folder: str = "common/message") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        for schema in schemas:
            text = schema if isinstance(schema, str) else json.dumps(schema)
            name = "Broken" if isinstance(schema, str) else schema["name"]
            archive.writestr(f"{folder}/{name}.json", text)
    return path


def run(out: Path, *jars: Path) -> int:
    return main([*map(str, jars), "--out", str(out)])


# Reading one schema


def test_prose_and_comments_are_dropped() -> None:
    """Facts carry over from Kafka; its sentences do not."""
    text = """// A licence.
    { "type": "data", "name": "D", "validVersions": "0", // a comment
      "flexibleVersions": "none", "fields": [
        // Another comment, with "quotes".
        { "name": "Url", "type": "string", "versions": "0+", "default": "http://x",
          "about": "A sentence of theirs." } ] }"""
    rendered = render_schema(parse_schema(text, "made up", keep_about=False))
    assert "comment" not in rendered
    assert "theirs" not in rendered
    assert '"default": "http://x"' in rendered


def test_quirks_of_the_format_come_out_in_one_form() -> None:
    """A reader of schemas/ should not need to know the exceptions that Kafka's files make."""
    tagged = {"name": "T", "type": "int64", "taggedVersions": "1+", "tag": "2", "default": -1}
    null = field("N", "string", nullableVersions="0+", default=None)
    message = parsed(request("0-1", tagged, null, flexibleVersions="1+"))
    first, second = message.fields
    assert (str(first.versions), first.tag, first.default) == ("1+", 2, "-1")
    assert second.default is None


def test_a_message_without_valid_versions_is_left_out() -> None:
    """Kafka keeps the files of removed APIs; there is nothing to read or write in them."""
    assert union(request("none")) == {}


def test_an_unknown_key_is_refused() -> None:
    """A new kind of fact in a new release must not be lost silently."""
    with pytest.raises(UsageError, match=r"made up Size: unknown key unsigned"):
        parsed(request("0", field("Size", unsigned=True)))


@pytest.mark.parametrize("text", ["", "1-", "+3", "1,2", "a"])
def test_versions_that_make_no_sense_are_refused(text: str) -> None:
    """An error is better than a field in the wrong versions."""
    with pytest.raises(UsageError, match="expected N, N-M, N"):
        parse_versions(text)


@pytest.mark.parametrize("text", ["none", "0", "3-7", "4+"])
def test_versions_are_printed_as_they_were_read(text: str) -> None:
    """Ranges go through the import unchanged where nothing is merged."""
    assert str(parse_versions(text)) == text


def test_a_union_with_a_gap_is_refused() -> None:
    """The schema language cannot express versions 0 and 2 without 1."""
    with pytest.raises(UsageError, match="leave a gap"):
        Versions(0, 0) | Versions(2, 2)


# Merging releases


def test_versions_that_only_the_older_release_has_are_added() -> None:
    """An old peer may still send them."""
    message = union(request("2-4", field("A", versions="0+")), request("0-3", field("A")))
    assert str(message["PingRequest"].valid) == "0-4"
    assert ranges(message["PingRequest"]) == {"A": "0+"}


def test_a_field_of_the_past_keeps_its_place_and_its_versions() -> None:
    """The order of fields is the order on the wire."""
    old = request("0-2", field("A"), field("Old", versions="0-1"), field("B", versions="1+"))
    new = request("2-3", field("A"), field("B"), field("C", versions="3+"))
    assert list(ranges(union(new, old)["PingRequest"]).items()) == [
        ("A", "0+"),
        ("Old", "0-1"),
        ("B", "1+"),
        ("C", "3+"),
    ]


def test_the_newer_release_decides_on_names_of_versions_that_both_have() -> None:
    """A renamed field is one field, called what it is called now."""
    old = request("0-1", field("CandidateId"))
    new = request("0-2", field("ReplicaId"))
    assert ranges(union(new, old)["PingRequest"]) == {"ReplicaId": "0+"}


def test_a_field_that_moved_between_releases_stops_the_import() -> None:
    """No single order of fields would be right for all versions."""
    old = request("0-1", field("A"), field("B"))
    new = request("1-2", field("B"), field("A"))
    with pytest.raises(UsageError, match=r"PingRequest v0: the merged schema does not lay out"):
        union(new, old)


def test_a_renamed_message_stays_readable_under_its_old_name() -> None:
    """Captures and notes of the old release use the old name."""
    old = request("0", name="PokeRequest")
    both = union(request("0-1"), old)
    assert both["PokeRequest"].renamed_to == "PingRequest"
    assert both["PingRequest"].renamed_to == ""


def test_records_are_those_of_the_newest_release() -> None:
    """A log is read in its newest form; early access records of old releases are gone."""
    old = {"type": "data", "name": "OldValue", "validVersions": "0", "flexibleVersions": "0+"}
    assert list(union(request("0"), old)) == ["PingRequest"]


def test_structs_of_the_past_are_kept_with_their_field() -> None:
    """A shared struct that only old versions use must come along."""
    shared = {"name": "State", "versions": "0+", "fields": [field("X")]}
    old = request("0-1", field("States", "[]State", "0"), commonStructs=[shared])
    message = union(request("1-2"), old)["PingRequest"]
    assert ranges(message) == {"States": "0"}
    assert [(item.name, str(item.versions)) for item in message.structs] == [("State", "0")]


# The folder


def test_our_own_texts_survive_another_import(tmp_path: Path) -> None:
    """Texts are written by hand once; a new release must not cost them."""
    inner = field("State", "State", fields=[field("Size", about="theirs")])
    jars = jar(tmp_path / "kafka-clients-9.1.0.jar", request("0", inner))
    out = tmp_path / "schemas"
    run(out, jars)
    path = out / "rpc" / "PingRequest.json"
    schema = json.loads(path.read_text())
    schema["about"] = "Asks whether anybody is there"
    schema["fields"][0]["fields"][0]["about"] = "In bytes"
    path.write_text(json.dumps(schema))

    newer = jar(tmp_path / "kafka-clients-9.2.0.jar", request("0-1", inner))
    assert run(out, newer, jars) == 0
    texts = collect_texts(read_tree(out)["PingRequest"])
    assert texts == {"": "Asks whether anybody is there", "State.Size": "In bytes"}


def test_a_text_that_lost_its_field_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The person who imports a release has to find a new place for it."""
    out = tmp_path / "schemas"
    run(out, jar(tmp_path / "kafka-clients-9.1.0.jar", request("0", field("A"))))
    path = out / "rpc" / "PingRequest.json"
    path.write_text(path.read_text().replace('"0+" }', '"0+", "about": "Ours" }'))
    newer = jar(tmp_path / "kafka-clients-9.2.0.jar", request("0", field("B", "string")))
    assert main([str(newer), "--out", str(out), "--shrink"]) == 0
    assert "dropped the text of PingRequest A" in capsys.readouterr().err


def test_a_second_import_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output is a function of the jars, so a diff shows what a release brought."""
    jars = jar(tmp_path / "kafka-clients-9.1.0.jar", request("0"))
    out = tmp_path / "schemas"
    run(out, jars)
    run(out, jars)
    assert capsys.readouterr().out.endswith("0 files changed\n")
    assert main([str(jars), "--out", str(out), "--check"]) == 0


def test_a_check_names_the_files_that_differ_and_writes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Facts that were edited by hand have to be noticed."""
    jars = jar(tmp_path / "kafka-clients-9.1.0.jar", request("0"))
    out = tmp_path / "schemas"
    run(out, jars)
    path = out / "rpc" / "PingRequest.json"
    path.write_text(path.read_text().replace('"apiKey": 7', '"apiKey": 8'))
    assert main([str(jars), "--out", str(out), "--check"]) == 1
    assert "rpc/PingRequest.json\n" in capsys.readouterr().out
    assert '"apiKey": 8' in path.read_text()


def test_files_of_removed_messages_go(tmp_path: Path) -> None:
    """Nothing must be generated from what no release has."""
    out = tmp_path / "schemas"
    run(out, jar(tmp_path / "kafka-clients-9.1.0.jar", request("0")))
    newer = jar(tmp_path / "kafka-clients-9.2.0.jar", request("0", name="PongRequest"))
    assert main([str(newer), "--out", str(out), "--shrink"]) == 0
    assert [path.name for path in (out / "rpc").iterdir()] == ["PongRequest.json"]


def test_records_of_the_metadata_log_have_their_own_folder(tmp_path: Path) -> None:
    """Their type ids collide with those of other records of the same type."""
    record = {"apiKey": 0, "type": "metadata", "validVersions": "0", "flexibleVersions": "0+"}
    metadata = jar(
        tmp_path / "kafka-metadata-9.1.0.jar", {**record, "name": "A"}, folder="common/metadata"
    )
    storage = jar(tmp_path / "kafka-storage-9.1.0.jar", {**record, "name": "B"}, folder="message")
    out = tmp_path / "schemas"
    run(out, metadata, storage)
    assert (out / "metadata" / "A.json").is_file()
    assert (out / "state" / "B.json").is_file()


def test_jars_that_the_folder_was_made_from_must_not_be_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their messages would vanish silently."""
    out = tmp_path / "schemas"
    both = [
        jar(tmp_path / "kafka-clients-9.1.0.jar", request("1")),
        jar(tmp_path / "kafka-clients-8.9.0.jar", request("0-1")),
    ]
    assert run(out, *both) == 0
    before = (out / "rpc" / "PingRequest.json").read_text()
    assert run(out, both[0]) == 2
    assert "not named (--shrink drops" in (error := capsys.readouterr().err)
    assert error.endswith("8.9.0: kafka-clients-8.9.0.jar\n")
    assert (out / "rpc" / "PingRequest.json").read_text() == before


def test_the_source_is_recorded_with_a_digest_per_file(tmp_path: Path) -> None:
    """Anyone can compare our facts with the release that they come from."""
    jars = jar(tmp_path / "kafka-clients-9.1.0.jar", request("0"))
    run(tmp_path / "schemas", jars)
    source = json.loads((tmp_path / "schemas" / "SOURCE.json").read_text())
    digest = read_releases([jars])[0].schemas["PingRequest"].sha256
    assert source == {
        "releases": [
            {
                "release": "9.1.0",
                "jars": {"kafka-clients-9.1.0.jar": {"common/message/PingRequest.json": digest}},
            }
        ]
    }


# Unusable jars


def test_a_jar_without_schemas_is_skipped_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most jars of a release have none; naming all of them means those that do."""
    empty = jar(tmp_path / "kafka-tools-9.1.0.jar")
    full = jar(tmp_path / "kafka-clients-9.1.0.jar", request("0"))
    assert run(tmp_path / "schemas", empty, full) == 0
    assert f"{empty} holds no message schemas, skipped" in capsys.readouterr().err


def test_a_release_without_schemas_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An import of nothing would empty the folder."""
    assert run(tmp_path, jar(tmp_path / "kafka-tools-9.1.0.jar")) == 2
    assert "the jars of 9.1.0 hold no message schemas" in capsys.readouterr().err


def test_broken_json_is_refused_with_jar_entry_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The place is needed to look at it."""
    broken = jar(tmp_path / "kafka-clients-9.1.0.jar", '// licence\n{ "type": }')
    assert run(tmp_path, broken) == 2
    error = capsys.readouterr().err
    assert f"{broken}!common/message/Broken.json: not valid JSON" in error
    assert "line 2" in error


def test_a_file_that_is_not_a_jar_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A download that stopped half-way looks like this."""
    path = tmp_path / "kafka-clients-9.1.0.jar"
    path.write_bytes(b"PK\x03\x04 and no more")
    assert run(tmp_path, path) == 2
    assert "cannot be read as a jar" in capsys.readouterr().err


def test_a_jar_whose_name_tells_no_release_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Releases are told apart by their jars' names."""
    assert run(tmp_path, jar(tmp_path / "schemas.jar", request("0"))) == 2
    assert "expected a name such as kafka-clients-9.9.9.jar" in capsys.readouterr().err


def test_without_maven_the_jars_have_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has to name the way out."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="name the release's jars on the command line"):
        fetch_release("9.1.0", tmp_path)


def test_a_release_that_is_not_a_number_is_refused_before_maven_runs(tmp_path: Path) -> None:
    """The number goes into an XML file and file names."""
    with pytest.raises(UsageError, match="expected a number such as"):
        fetch_release("../9.1.0<", tmp_path)


# The report


# A version that is not released


def test_an_unreleased_version_of_ours_survives_the_next_import(tmp_path: Path) -> None:
    """Clients of others send it before Kafka's release; once released, the release decides."""
    out, cache = tmp_path / "schemas", tmp_path / "jars"
    cache.mkdir()
    released = request("0-1", field("Count"))
    assert run(out, jar(cache / "kafka-clients-9.1.0.jar", released)) == 0
    ours = request("0-2", field("Count"), field("Reason", versions="2+"))
    path = out / "rpc" / "PingRequest.json"
    path.write_text(render_schema(parsed({**ours, "latestVersionUnstable": True})))
    assert run(out, cache / "kafka-clients-9.1.0.jar") == 0
    assert str(read_tree(out)["PingRequest"].valid) == "0-2"
    newer = jar(cache / "kafka-clients-9.2.0.jar", request("0-2", field("Count")))
    assert run(out, cache / "kafka-clients-9.1.0.jar", newer) == 0
    assert ranges(read_tree(out)["PingRequest"]) == {"Count": "0+"}


def test_an_unreleased_version_must_fit_the_releases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what is new may differ from what Kafka writes."""
    out, cache = tmp_path / "schemas", tmp_path / "jars"
    cache.mkdir()
    release = jar(cache / "kafka-clients-9.1.0.jar", request("0-1", field("Count")))
    assert run(out, release) == 0
    ours = request("0-2", field("Count", "int64"), latestVersionUnstable=True)
    (out / "rpc" / "PingRequest.json").write_text(render_schema(parsed(ours)))
    assert run(out, release) == 2
    assert "PingRequest v0" in capsys.readouterr().err
