"""The golden messages in tests/golden/vectors; its README says what they are."""

from __future__ import annotations

import functools
import gzip
import json as json_text
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Fields that have another name in the current release; the recorded JSON has the name of its own.
_RENAMED = {
    ("StreamsGroupHeartbeatResponse", 0): {"acceptableRecoveryLag": "acceptableRecoveryLagLegacy"},
    ("TxnOffsetCommitRequest", 3): {"generationId": "generationIdOrMemberEpoch"},
    ("TxnOffsetCommitRequest", 4): {"generationId": "generationIdOrMemberEpoch"},
    ("TxnOffsetCommitRequest", 5): {"generationId": "generationIdOrMemberEpoch"},
}

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
            for row in map(json_text.loads, lines):
                name, version = row["name"], row["version"]
                given, printed = (
                    current_names(name, version, row.get(key, row["json"]))
                    for key in ("json", "printed")
                )
                vector = Vector(name, version, given, printed, bytes.fromhex(row["hex"]))
                by_name.setdefault(vector.name, []).append(vector)
    return by_name


def current_names(name: str, version: int, json: Any) -> Any:
    """A message's JSON with the field names of the current release."""
    names = _RENAMED.get((name, version), {})
    return {names.get(key, key): each for key, each in json.items()} if names else json


def canonical(value: Any) -> str:
    """Text that is equal for equal JSON and, unlike ==, distinguishes true, 1 and 1.0."""
    return json_text.dumps(value, sort_keys=True, ensure_ascii=False)
