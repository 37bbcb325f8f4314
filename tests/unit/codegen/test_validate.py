"""Every rule of the validator refuses what it should, and says where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codegen.errors import SchemaError
from codegen.load import load_text
from codegen.validate import RULES, validate

MESSAGE: dict[str, Any] = {
    "apiKey": 52,
    "type": "request",
    "name": "ThingRequest",
    "validVersions": "0-3",
    "flexibleVersions": "2+",
    "fields": [],
}
FIELD: dict[str, Any] = {"name": "Thing", "type": "int32", "versions": "0+"}
TAGGED = {"taggedVersions": "2+", "versions": "2+"}


def message(**changes: Any) -> dict[str, Any]:
    """A schema with changes; ... removes a key."""
    return {key: value for key, value in (MESSAGE | changes).items() if value is not ...}


def field(**changes: Any) -> dict[str, Any]:
    """A schema whose one field has changes."""
    return message(fields=[FIELD | changes])


def struct(name: str) -> dict[str, Any]:
    """A schema with one struct of that name."""
    return field(type=name, fields=[FIELD])


def renamed(former: str, **changes: Any) -> dict[str, Any]:
    """A schema with a field that had another name, before one with changes."""
    return message(fields=[FIELD | {"name": "Renamed", "formerNames": [former]}, FIELD | changes])


def check(schema: dict[str, Any]) -> None:
    """Load and validate; raises what they raise."""
    loaded = load_text(json.dumps(schema, indent=1), "rpc/ThingRequest.json")
    assert loaded is not None
    validate(loaded)


BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("M1", message(name="thing_request"), "name 'thing_request' is not CamelCase"),
    ("M1", message(name="Thing-Request"), "is not CamelCase"),
    ("M2", message(type="reply"), "type 'reply' is none of"),
    ("M3", message(apiKey=...), "a request or response needs an apiKey of 0 or more"),
    ("M3", message(type="response", apiKey=-1), "needs an apiKey"),
    ("M4", message(validVersions="0+"), "validVersions must have an end"),
    ("M5", message(flexibleVersions="1-2"), "once flexible, always flexible"),
    ("F1", field(name="Thing Id"), "the name is not a word"),
    ("F1", field(name="2nd"), "the name is not a word"),
    ("F1", field(formerNames=["Things", 7]), "the name is not a word"),
    ("F2", field(versions="3+", taggedVersions="2+", tag=0), "taggedVersions 2+ exceed 3+"),
    ("F3", field(taggedVersions="1+", tag=0), "taggedVersions 1+ need flexible versions"),
    ("F3", message(flexibleVersions="none", fields=[FIELD | TAGGED | {"tag": 0}]), "are none"),
    ("F4", field(tag=0), "a tag needs taggedVersions"),
    ("F5", field(**TAGGED), "taggedVersions need a tag"),
    ("F6", field(nullableVersions="0+"), "type int32 cannot be null"),
    ("F6", field(type="uuid", nullableVersions="0+"), "type uuid cannot be null"),
    ("F7", field(type="string", default="null"), "default null needs nullableVersions"),
    ("F7", field(type="string", default="null", nullableVersions="1+"), "that cover all versions"),
    ("F8", field(default="x"), "default 'x' is not a value of type int32"),
    ("F8", field(default=1.5), "default 1.5 is not a value of type int32"),
    ("F8", field(type="int8", default="128"), "default 128 does not fit int8"),
    ("F8", field(type="uint16", default="-1"), "default -1 does not fit uint16"),
    ("F8", field(type="uint32", default=2**32), "default 4294967296 does not fit uint32"),
    ("F8", field(type="bool", default="yes"), "default 'yes' is neither true nor false"),
    ("F8", field(type="bytes", default="abc"), "type bytes has no default but empty or null"),
    ("F8", field(type="uuid", default="AAAA"), "default 'AAAA' is not a uuid"),
    ("F8", field(type="float64", default="much"), "is not a value of type float64"),
    ("F8", field(type="float64", default="NaN"), "default 'NaN' is not finite"),
    ("F8", field(type="float64", default="-inf"), "default '-inf' is not finite"),
    ("F8", field(type="string", default="\ud800"), "is not text that UTF-8 can encode"),
    ("F9", field(type="[]bool"), "arrays of bool are not supported"),
    ("F9", field(type="[]records"), "arrays of records are not supported"),
    ("F10", field(type="[]int32", default="0"), "an array or struct has no default but null"),
    ("F10", field(type="Inner", fields=[FIELD], default="x"), "has no default but null, is 'x'"),
    ("F11", field(name="Encode"), "attribute 'encode' is taken by the generated class"),
    ("F11", field(name="UnknownTaggedFields"), "attribute 'unknown_tagged_fields' is taken"),
    ("F11", field(formerNames=["Encode"]), "is taken by the generated class"),
    ("F12", field(versions="4+"), "versions 4+ are none of the message's, which are 0-3"),
    ("F12", message(validVersions="2-3", fields=[FIELD | {"versions": "0-1"}]), "0-1 are none"),
    ("S1", message(fields=[FIELD, FIELD]), "field Thing appears twice"),
    ("S1", message(fields=[FIELD | {"name": "AB"}, FIELD | {"name": "Ab"}]), "field Ab appears"),
    (
        "S2",
        message(fields=[FIELD | TAGGED | {"name": name, "tag": 0} for name in "AB"]),
        "tag 0 of B is also A's",
    ),
    ("S3", field(**TAGGED, tag=1), "tags must be 0, 1, 2 ... without a hole; 0 is missing"),
    ("S4", struct("inner"), "struct name 'inner' is not CamelCase, or taken"),
    ("S4", struct("None"), "struct name 'None' is not CamelCase, or taken"),
    ("S4", struct("True"), "struct name 'True' is not CamelCase, or taken"),
    ("M1", message(name="Message"), "name 'Message' is not CamelCase, or taken"),
    ("S4", struct("Struct"), "struct name 'Struct' is not CamelCase, or taken"),
    ("S5", renamed("Thing"), "former name Thing of Renamed is also Thing's"),
    ("S5", renamed("Old", formerNames=["Old"]), "former name Old of Renamed is also Thing's"),
]


@pytest.mark.parametrize(
    ("rule", "schema", "problem"), BROKEN, ids=[f"{rule}-{text[:30]}" for rule, _, text in BROKEN]
)
def test_a_broken_rule_is_named_with_its_place(
    rule: str, schema: dict[str, Any], problem: str
) -> None:
    """The number leads to codegen/README.md, the rest to the line to fix."""
    with pytest.raises(SchemaError) as caught:
        check(schema)
    error = caught.value
    assert error.rule == rule
    assert problem in error.problem
    assert error.file == "rpc/ThingRequest.json"
    assert error.line > 0
    assert str(error).startswith(f"rpc/ThingRequest.json:{error.line}: {error.path}: ")
    assert str(error).endswith(f"[{rule}]")


def test_every_rule_has_a_broken_schema() -> None:
    """A rule that nothing breaks might as well not exist."""
    assert {rule for rule, _, _ in BROKEN} == set(RULES)


def test_a_broken_field_is_named_with_its_struct_and_line() -> None:
    """Deep in a nested struct, people search for the path."""
    inner = FIELD | {"name": "Deep", "nullableVersions": "0+"}
    schema = field(type="[]Inner", fields=[FIELD, inner])
    with pytest.raises(SchemaError) as caught:
        check(schema)
    lines = json.dumps(schema, indent=1).splitlines()
    assert caught.value.path == "Inner.Deep"
    assert '"Deep"' in lines[caught.value.line]


def test_a_bad_tag_is_named_with_the_line_of_the_tag() -> None:
    """A field may take many lines, and the struct begins far above them."""
    for schema in (field(tag=7), field(**TAGGED, tag=7)):
        with pytest.raises(SchemaError) as caught:
            check(schema)
        lines = json.dumps(schema, indent=1).splitlines()
        assert '"tag": 7' in lines[caught.value.line - 1]


@pytest.mark.slow
def test_a_deeply_nested_schema_is_refused() -> None:
    """Reading and planning recurse for each level, and Python's own limit gives a bad error."""
    with pytest.raises(SchemaError, match="nested deeper than 64 levels"):
        load_text("[" * 5000, "rpc/ThingRequest.json")
    common = [
        {"name": f"S{n}", "versions": "0+", "fields": [FIELD | {"type": f"S{n + 1}"}]}
        for n in range(1500)
    ]
    with pytest.raises(SchemaError, match="nested deeper than 64 levels"):
        check(message(fields=[FIELD | {"type": "S0"}], commonStructs=common))


@pytest.mark.parametrize(
    "schema",
    [
        message(),
        message(type="data", apiKey=...),
        message(flexibleVersions="none"),
        message(validVersions="3"),
        field(default="-1"),
        field(default=7),
        field(type="int64", default="0x7fffffff"),
        field(type="int32", default=""),
        field(type="bool", default="true"),
        field(type="bool", default=False),
        field(type="string", default="null", nullableVersions="0+"),
        field(type="string", versions="2+", default="null", nullableVersions="2+"),
        field(type="string", default="a 'quoted' \"text\""),
        field(type="uuid", default="AAAAAAAAAAAAAAAAAAAAAQ"),
        field(type="[]Inner", fields=[FIELD], nullableVersions="0+", default="null"),
        field(type="bytes", nullableVersions="0+", zeroCopy=True),
        field(**TAGGED, tag="0"),
        field(type="uint32", default=2**32 - 1),
        field(name="class"),
    ],
)
def test_legal_schemas_pass(schema: dict[str, Any]) -> None:
    """A rule that refuses what Kafka's generator accepts would stop the next release."""
    check(schema)
