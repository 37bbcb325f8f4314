"""The golden messages in tests/golden/vectors; its README says what they are."""

from __future__ import annotations

import functools
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Versions that no release of Kafka has yet, and so no vectors; clients of others send them.
UNRELEASED = {("ApiVersionsRequest", 5), ("ApiVersionsResponse", 5)}

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "vectors"


@dataclass(frozen=True, slots=True)
class Vector:
    """One message as Kafka's serializer writes it.

    `given` is the JSON it was made from, `printed` what Kafka's converter prints for the bytes;
    they differ only where `given` spells out the default of a tagged field.
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
            for row in map(json.loads, lines):
                printed = row.get("printed", row["json"])
                data = bytes.fromhex(row["hex"])
                vector = Vector(row["name"], row["version"], row["json"], printed, data)
                by_name.setdefault(vector.name, []).append(vector)
    return by_name


def canonical(value: Any) -> str:
    """Text that is equal for equal JSON and, unlike ==, distinguishes true, 1 and 1.0."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
