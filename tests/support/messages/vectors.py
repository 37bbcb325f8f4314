"""The golden messages in tests/golden/vectors; its README says what they are."""

from __future__ import annotations

import functools
import gzip
import json as json_text
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraftwire import messages
from kraftwire.wire.facts import StructFacts

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "vectors"


@dataclass(frozen=True, slots=True)
class Vector:
    """One message as Kafka's serializer writes it.

    `given` is the JSON it was made from, `printed` what Kafka's converter prints for the bytes, in
    the field names of the current release. Otherwise they differ only where `given` spells out the
    default of a tagged field.
    """

    name: str
    version: int
    given: Any
    printed: Any
    data: bytes

    def __str__(self) -> str:
        return f"{self.name} v{self.version} {self.data.hex()[:400]}"


@functools.cache
def vectors() -> dict[str, list[Vector]]:
    """All vectors by the name of their message."""
    by_name: dict[str, list[Vector]] = {}
    for path in sorted(FOLDER.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json_text.loads, lines):
                name, version = row["name"], row["version"]
                given, data = row["json"], bytes.fromhex(row["hex"])
                printed = current_names(name, version, row.get("printed", given))
                vector = Vector(name, version, given, printed, data)
                by_name.setdefault(vector.name, []).append(vector)
    return by_name


def current_names(name: str, version: int, json: Any) -> Any:
    """A message's JSON with the field names of the current release, as every converter of it has.
    """
    return _renamed(messages.find(name).facts().root, version, json)


def _renamed(struct: StructFacts, version: int, json: Any) -> Any:
    if isinstance(json, list):
        return [_renamed(struct, version, each) for each in json]
    if json is None:
        return None
    current = dict(json)
    for field in struct.fields:
        for name in struct.names_of(field, version) if version in field.versions else ():
            if name in json:
                current.pop(name, None)
                inner = field.struct
                current[field.name] = _renamed(inner, version, json[name]) if inner else json[name]
    return current


def canonical(value: Any) -> str:
    """Text that is equal for equal JSON and, unlike ==, distinguishes true, 1 and 1.0."""
    return json_text.dumps(value, sort_keys=True, ensure_ascii=False)
