"""Schemas that nobody has written yet: every type, in every way that the rules allow."""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.generate import generate
from codegen.types import FIXED
from kraftwire import engine
from kraftwire.errors import WireError
from kraftwire.wire.message import _BAD_BYTES, Message
from kraftwire.wire.plans import python_decoder, python_encoder
from kraftwire.wire.reader import read_message
from kraftwire.wire.writer import write_message
from tests.engine.twins import alike, compare_decoding, compare_encoding
from tests.support.messages.mutations import mutated
from tests.support.messages.random_messages import random_message

VERSIONS = range(6)
ROUNDS = 12
TYPES = (*FIXED, "string", "bytes", "records", "Inner")
ARRAYS = tuple(f"[]{name}" for name in TYPES if name not in ("bool", "records"))
INNER = {
    "name": "Inner",
    "versions": "0+",
    "fields": [
        {"name": "Number", "type": "int32", "versions": "0+"},
        {"name": "Text", "type": "string", "versions": "1-3", "ignorable": True},
    ],
}
# What a field is beside its type; a range of versions may begin and end anywhere.
FORMS: tuple[dict[str, Any], ...] = (
    {"versions": "0+"},
    {"versions": "2-4", "ignorable": True},
    {"versions": "0-1"},
    {"versions": "1+", "nullableVersions": "1+"},
    {"versions": "0+", "nullableVersions": "3+"},
    {"versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"versions": "0+", "flexibleVersions": "none"},
    {"versions": "0+", "taggedVersions": "5+"},
    {"taggedVersions": "4-5"},
    {"taggedVersions": "4+", "nullableVersions": "4+", "default": "null"},
)


def _is_allowed(type_name: str, form: dict[str, Any]) -> bool:
    is_fixed = type_name in FIXED
    is_struct = type_name == "Inner"
    return not (
        (is_fixed and ("nullableVersions" in form or "flexibleVersions" in form))
        or (is_struct and "flexibleVersions" in form)
        or (type_name == "records" and "taggedVersions" in form)
    )


def schema(name: str, flexible: str) -> dict[str, Any]:
    """A message with a field for each type and form, of which tags need flexible versions."""
    fields = []
    tag = 0
    for form in FORMS:
        for type_name in TYPES + ARRAYS:
            if not _is_allowed(type_name, form) or (flexible == "none" and "tagged" in str(form)):
                continue
            field = {"name": f"Field{len(fields)}", "type": type_name, **form}
            if "taggedVersions" in form:
                field["tag"] = tag
                tag += 1
            fields.append(field)
    return {
        "type": "data", "name": name, "validVersions": "0-5", "flexibleVersions": flexible,
        "commonStructs": [INNER], "fields": fields,
    }  # fmt: skip


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[type[Message]]]:
    """The classes of three messages: flexible from some version on, always and never."""
    folder = tmp_path_factory.mktemp("constructs")
    target = folder / "every_construct_messages"
    names = {"Mixed": "3+", "Flexible": "0+", "Classical": "none"}
    (folder / "schemas").mkdir()
    for name, flexible in names.items():
        path = folder / "schemas" / f"{name}.json"
        path.write_text(json.dumps(schema(name, flexible)))
    generate(folder / "schemas", target)
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        package = importlib.import_module(target.name)
        yield [package.find(name) for name in names]
    finally:
        sys.path.remove(str(folder))
        for name in [each for each in sys.modules if each.partition(".")[0] == target.name]:
            del sys.modules[name]


def cases(classes: list[type[Message]]) -> Iterator[tuple[type[Message], int, random.Random]]:
    """Each class in each version, with sources of random values."""
    for cls in classes:
        for version in VERSIONS:
            for number in range(ROUNDS):
                yield cls, version, random.Random(number)


@pytest.mark.slow
def test_readers_and_writers_do_what_the_facts_say(classes: list[type[Message]]) -> None:
    """The slow reader and writer follow the facts alone."""
    for cls, version, source in cases(classes):
        message = random_message(cls, version, source, unknown_tags=True)
        data = python_encoder(cls, version)(message)
        assert data == write_message(cls.facts(), message, version)
        read, end = python_decoder(cls, version)(data, 0, 10_000)
        assert end == len(data)
        assert alike(read_message(cls.facts(), data, version)[0], read)


@pytest.mark.slow
def test_damaged_bytes_are_read_alike_or_left_to_the_slow_reader(
    classes: list[type[Message]],
) -> None:
    """What the reader accepts, the slow reader accepts with the same values."""
    accepted = 0
    for cls, version, source in cases(classes):
        data = random_message(cls, version, source, unknown_tags=True).encode(version)
        for _ in range(8):
            damaged = mutated(data, source)
            try:
                read, end = python_decoder(cls, version)(damaged, 0, 10_000)
            except _BAD_BYTES:
                continue
            if end <= len(damaged):
                accepted += 1
                assert alike(read_message(cls.facts(), damaged, version)[0], read)
    assert accepted > 100


def test_the_engine_does_the_same(classes: list[type[Message]]) -> None:
    """Its plans are made from the facts as well."""
    if engine.C not in engine.available():
        pytest.skip("the engine in C was not built")
    for cls, version, source in cases(classes):
        message = random_message(cls, version, source)
        data = compare_encoding(message, version)
        assert data is not None
        assert compare_decoding(cls, version, data) is not None


def test_a_value_that_a_version_has_no_field_for_is_refused(classes: list[type[Message]]) -> None:
    """Unless it is ignorable: then it is left out."""
    for cls in classes:
        for field in cls.facts().root.fields:
            for version in VERSIONS:
                if version in field.versions or field.struct:
                    continue
                value = _other(field.type)
                message = cls(**{field.attribute: [value] if field.is_array else value})
                if field.is_ignorable:
                    assert message.encode(version) == cls().encode(version)
                    continue
                with pytest.raises(WireError, match="cannot carry the field"):
                    message.encode(version)


def _other(type_name: str) -> Any:
    """A value that is not the default of a type."""
    values = {"bool": True, "float64": 1.5, "uuid": bytes(range(16)), "string": "x"}
    return values.get(type_name, b"x" if type_name in ("bytes", "records") else 7)


@pytest.mark.slow
def test_the_package_can_be_checked(classes: list[type[Message]], tmp_path: Path) -> None:
    """What is generated from such schemas is typed like all else."""
    api = pytest.importorskip("mypy.api")
    module = sys.modules[classes[0].__module__]
    assert module.__file__
    options = ["--strict", "--cache-dir", str(tmp_path), "--follow-imports", "silent"]
    found, problems, code = api.run([*options, module.__file__])
    assert code == 0, found + problems
