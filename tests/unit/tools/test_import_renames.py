"""Importing a release that renames fields: facts, texts and older versions follow the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.tools.test_import_schemas import field, jar, parsed, request, run, union
from tests.unit.tools.test_import_schemas_report import report
from tools.import_schemas.__main__ import main
from tools.import_schemas.renames import renamed_fields
from tools.import_schemas.schema import Field, Message
from tools.import_schemas.tree import read_tree

OLD, NEW = "kafka-clients-4.0.0.jar", "kafka-clients-4.1.0.jar"


def imported(folder: Path, *releases: tuple[str, dict[str, Any]]) -> Message:
    """What is in the schemas after an import of these jars, which keeps what is there."""
    assert run(folder / "out", *(jar(folder / name, schema) for name, schema in releases)) == 0
    return read_tree(folder / "out")["PingRequest"]


def former(fields: tuple[Field, ...]) -> dict[str, tuple[str, ...]]:
    return {each.name: each.former for each in fields}


def test_a_renamed_field_keeps_its_former_name_and_its_text(tmp_path: Path) -> None:
    """The former name is one that we have printed; programs still write it."""
    old = request("0-1", field("Count"), field("Id"))
    imported(tmp_path, (OLD, old))
    path = tmp_path / "out" / "rpc" / "PingRequest.json"
    path.write_text(path.read_text().replace('"Id", ', '"Id", "about": "Who asks", '))
    new = request("0-2", field("Count"), field("NodeId"))
    message = imported(tmp_path, (OLD, old), (NEW, new))
    assert former(message.fields) == {"Count": (), "NodeId": ("Id",)}
    assert message.fields[1].about == "Who asks"
    assert imported(tmp_path, (OLD, old), (NEW, new)) == message


def test_names_of_several_releases_are_kept(tmp_path: Path) -> None:
    """Also when the jars of the first release are no longer read."""
    for number, name in enumerate("ABC"):
        release = f"kafka-clients-4.{number}.0.jar"
        path = jar(tmp_path / release, request("0", field(name)))
        assert main([str(path), "--shrink", "--out", str(tmp_path / "out")]) == 0
    assert former(read_tree(tmp_path / "out")["PingRequest"].fields) == {"C": ("A", "B")}


def test_fields_that_change_places_are_not_renamed() -> None:
    """Both names would mean both fields."""
    one, two = request("0", field("A"), field("B")), request("0", field("B"), field("A"))
    assert renamed_fields(parsed(one), parsed(two)) == {}


def test_a_renamed_field_of_a_shared_struct_has_its_place_there() -> None:
    """It stands in the file once, however many fields are of that struct."""
    states = field("Before", "[]State"), field("After", "[]State")
    old, new = (
        request("0", *states, commonStructs=[{"name": "State", "versions": "0+", "fields": inner}])
        for inner in ([field("X")], [field("Y")])
    )
    assert renamed_fields(parsed(old), parsed(new)) == {"@State.X": "@State.Y"}
    assert report(old, new) == ["PingRequest", "renamed  @State.X -> @State.Y"]


def test_a_renamed_field_beside_a_new_tagged_one_is_found() -> None:
    """Tagged fields come without a new version."""
    more = field("Tagged", taggedVersions="0+", tag=0)
    old = request("0", field("X"), flexibleVersions="0+")
    new = request("0", field("Y"), more, flexibleVersions="0+")
    assert renamed_fields(parsed(old), parsed(new)) == {"X": "Y"}
    assert renamed_fields(parsed(new), parsed(old)) == {"Y": "X"}


def test_versions_that_only_an_older_release_has_carry_the_current_name() -> None:
    """One field under two names would print another name in an old version."""
    old = request("0-1", field("X"), field("Gone", versions="0"))
    new = request("1", field("Y"))
    merged = union(new, old)["PingRequest"]
    assert [(each.name, str(each.versions)) for each in merged.fields] == [
        ("Y", "0+"),
        ("Gone", "0"),
    ]
