"""Schema files are read with their lines, as leniently as Kafka's need, and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codegen.errors import SchemaError
from codegen.load import load_folder, load_text, parse_versions
from codegen.located_json import LocatedDict, parse
from codegen.schema import ANY_VERSION, Message, Versions

MINIMAL: dict[str, Any] = {
    "apiKey": 52,
    "type": "request",
    "name": "ThingRequest",
    "validVersions": "0-2",
    "flexibleVersions": "1+",
    "fields": [{"name": "ThingId", "type": "int32", "versions": "0+"}],
}


def load(**changes: Any) -> Message:
    """The message of a schema with changes; None removes a key."""
    merged = {key: value for key, value in (MINIMAL | changes).items() if value is not ...}
    message = load_text(json.dumps(merged, indent=1), "thing.json")
    assert message is not None
    return message


def refusal(text: str) -> SchemaError:
    """The error that loading a text ends with."""
    with pytest.raises(SchemaError) as caught:
        load_text(text, "thing.json")
    return caught.value


def test_json_keeps_the_line_of_every_key() -> None:
    """An error in a schema has to name the line to fix."""
    data = parse('{\n  "a": 1,\n  "b": [\n    {"c": true}\n  ]\n}', "f")
    assert isinstance(data, LocatedDict)
    assert (data.line, data.line_of("a"), data.line_of("b")) == (1, 2, 3)
    assert data["b"][0].line_of("c") == 4
    assert data.line_of("missing") == 1


def test_comments_are_skipped_and_counted() -> None:
    """Kafka's schemas are full of them; lines after them must stay right."""
    text = '// first\n{\n  /* two\n     lines */\n  "a": "// no comment", // last\n  "b": null\n}\n'
    data = parse(text, "f")
    assert data == {"a": "// no comment", "b": None}
    assert (data.line, data.line_of("a"), data.line_of("b")) == (2, 5, 6)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "expected a value"),
        ('{\n"a": 1\n"b": 2\n}', 3, "expected ',' between two keys, found '\"'"),
        ('{\n"a" 1}', 2, "expected ':' after key 'a', found '1'"),
        ("{\n\na: 1}", 3, "expected a key in quotes, found 'a'"),
        ('{"a": 1,\n"a": 2}', 2, "key 'a' appears twice in one object"),
        ('{"a":\n"open\n}', 2, "a string is not closed on its line"),
        ('{"a": [1,\n2', 2, "expected ',' between two elements, found 'the end of the file'"),
        ('{"a": tru}', 1, "expected a value, found 't'"),
        ('{"a": 01}', 1, "expected a value, found '0'"),
        ("{}\n\n{}", 3, "unexpected text after the end of the document"),
        ('{"a": 1,\n', 2, "expected a key in quotes"),
    ],
)
def test_broken_json_is_located(text: str, line: int, problem: str) -> None:
    """A missing comma is the most common mistake of all."""
    error = refusal(text)
    assert (error.file, error.line) == ("thing.json", line)
    assert problem in error.problem
    assert str(error).startswith(f"thing.json:{line}: ")


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("3", Versions(3, 3)),
        ("0-5", Versions(0, 5)),
        ("2+", Versions(2, ANY_VERSION)),
        (" 4+ ", Versions(4, ANY_VERSION)),
        ("none", Versions(0, -1)),
    ],
)
def test_ranges_of_versions_have_four_forms(text: str, versions: Versions) -> None:
    """The forms are Kafka's."""
    assert parse_versions(text) == versions
    assert bool(versions) == (text != "none")


@pytest.mark.parametrize("text", ["", "x", "5-2", "1-", "-1", "1..2", "1-2+", "99999", "1 2", "²"])
def test_anything_else_is_not_a_range(text: str) -> None:
    """A range that runs backwards would silently leave a message out."""
    error = refusal(json.dumps(MINIMAL | {"validVersions": text}, indent=1))
    assert error.line == 5
    assert "'validVersions' must look like 3, 0-5, 2+ or none" in error.problem


def test_a_minimal_schema_is_a_message() -> None:
    """What the rest of the generator sees."""
    message = load()
    assert (message.name, message.kind, message.api_key) == ("ThingRequest", "request", 52)
    assert (message.versions, message.flexible) == (Versions(0, 2), Versions(1, ANY_VERSION))
    (field,) = message.root.fields
    assert (field.name, field.json, field.attribute) == ("ThingId", "thingId", "thing_id")
    assert field.line == 8
    assert message.module == "thing_request"


def test_a_message_without_versions_is_left_out() -> None:
    """Kafka keeps the file of a retired message in this way."""
    assert load_text(json.dumps(MINIMAL | {"validVersions": "none"}), "thing.json") is None


def test_versions_of_a_tagged_field_may_be_left_out() -> None:
    """Some of Kafka's schemas give only taggedVersions, and some write the tag as a string."""
    field = {"name": "Extra", "type": "string", "taggedVersions": "1+", "tag": "0"}
    (loaded,) = load(fields=[field]).root.fields
    assert loaded.versions == loaded.tagged == Versions(1, ANY_VERSION)
    assert loaded.tag == 0


def test_common_structs_may_stand_in_any_order() -> None:
    """One may use another that is defined below it."""
    message = load(
        fields=[{"name": "Outer", "type": "[]Outer", "versions": "0+"}],
        commonStructs=[
            {"name": "Outer", "versions": "0+",
             "fields": [{"name": "Inner", "type": "Inner", "versions": "0+"}]},
            {"name": "Inner", "versions": "0+", "fields": []},
        ],
    )  # fmt: skip
    assert [struct.name for struct in message.structs] == ["Inner", "Outer", "ThingRequest"]


def test_a_struct_may_be_used_again_by_name() -> None:
    """Kafka lets a later field name the struct that an earlier one defined."""
    inner = {"name": "ThingId", "type": "int32", "versions": "0+"}
    first = {"name": "First", "type": "Inner", "versions": "0+", "fields": [inner]}
    second = {"name": "Second", "type": "[]Inner", "versions": "0+"}
    message = load(fields=[first, second])
    assert message.root.fields[1].struct is message.root.fields[0].struct


def field_with(**changes: Any) -> dict[str, Any]:
    """A schema whose one field has changes."""
    field = {"name": "ThingId", "type": "int32", "versions": "0+"} | changes
    return MINIMAL | {"fields": [{key: value for key, value in field.items() if value is not ...}]}


INNER = {"name": "Inner", "type": "[]Inner", "versions": "0+"}


@pytest.mark.parametrize(
    ("schema", "line", "path", "problem"),
    [
        (MINIMAL | {"nmae": "x"}, 14, "", "unknown key 'nmae'"),
        (MINIMAL | {"apiKey": "52"}, 2, "", "'apiKey' must be an integer, is a string"),
        (MINIMAL | {"apiKey": True}, 2, "", "'apiKey' must be an integer, is true or false"),
        (MINIMAL | {"about": 5}, 14, "", "'about' must be a string, is an integer"),
        (MINIMAL | {"fields": {}}, 7, "", "'fields' must be an array, is an object"),
        (MINIMAL | {"fields": [5]}, 7, "ThingRequest", "a field is a JSON object"),
        (MINIMAL | {"commonStructs": [5]}, 14, "ThingRequest", "a struct is a JSON object"),
        (field_with(name=...), 8, "ThingRequest", "key 'name' is missing"),
        (field_with(type=...), 8, "ThingRequest.ThingId", "key 'type' is missing"),
        (field_with(versions=...), 8, "ThingRequest.ThingId", "key 'versions' is missing"),
        (field_with(versions="1-"), 11, "ThingRequest.ThingId", "'versions' must look like"),
        (field_with(mapKeys=True), 12, "ThingRequest.ThingId", "unknown key 'mapKeys'"),
        (field_with(ignorable="yes"), 12, "ThingRequest.ThingId", "'ignorable' must be true or f"),
        (field_with(tag="x"), 12, "ThingRequest.ThingId", "tag 'x' is not a number"),
        (field_with(type="int33"), 10, "ThingRequest.ThingId", "neither primitive nor a struct"),
        (field_with(type="[][]int8"), 10, "ThingRequest.ThingId", "neither primitive nor a str"),
        (
            MINIMAL | {"fields": [INNER], "commonStructs": [{"name": "Inner", "fields": [INNER]}]},
            20, "ThingRequest.Inner.Inner", "struct 'Inner' contains itself",
        ),
        (
            MINIMAL | {"fields": [INNER | {"fields": []}, INNER | {"name": "B", "fields": []}]},
            18, "ThingRequest.B", "struct 'Inner' is defined twice",
        ),
    ],
)  # fmt: skip
def test_a_wrong_key_or_type_is_located(
    schema: dict[str, Any], line: int, path: str, problem: str
) -> None:
    """File, line and field path: enough to go there without searching."""
    error = refusal(json.dumps(schema, indent=1))
    assert (error.file, error.line, error.path) == ("thing.json", line, path)
    assert problem in error.problem


def test_a_schema_is_an_object() -> None:
    """An array of schemas in one file is not the format."""
    assert refusal("[]").problem == "a schema is one JSON object"


def test_two_files_must_not_define_one_message(tmp_path: Path) -> None:
    """One of the two would win by the order of file names."""
    (tmp_path / "a.json").write_text(json.dumps(MINIMAL))
    (tmp_path / "b.json").write_text(json.dumps(MINIMAL))
    (tmp_path / "SOURCE.json").write_text("{}")
    with pytest.raises(SchemaError, match=r"b\.json: message ThingRequest is also in a\.json"):
        load_folder(tmp_path)
