"""The bytes that every codec is measured on, written by Kafka's own Java client."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Item", "load"]

ARCHIVE = Path(__file__).parent / "data" / "codec-corpus.tar.xz"


@dataclass(frozen=True, slots=True)
class Item:
    """One message or record batch of the corpus.

    `message`, `api_key` and `version` are empty or negative for record batches.
    """

    name: str
    kind: str
    message: str
    api_key: int
    version: int
    record_count: int
    data: bytes


@cache
def load() -> tuple[Item, ...]:
    """Every item, in the order of the archive's index."""
    with tarfile.open(ARCHIVE) as archive:
        index = json.loads(_read(archive, "index.json"))
        return tuple(_item(archive, entry) for entry in index)


def _item(archive: tarfile.TarFile, entry: dict[str, object]) -> Item:
    return Item(
        name=str(entry["item"]),
        kind=str(entry["kind"]),
        message=str(entry.get("message", "")),
        api_key=int(str(entry.get("apiKey", -1))),
        version=int(str(entry.get("version", -1))),
        record_count=int(str(entry.get("records", 0))),
        data=_read(archive, f"{entry['item']}.bin"),
    )


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"corpus/{name}")
    if member is None:
        raise FileNotFoundError(f"{ARCHIVE} has no corpus/{name}")
    return member.read()
