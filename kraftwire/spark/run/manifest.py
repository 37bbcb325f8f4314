"""What a folder of tables holds: which inputs are in it, and in which parts of which tables.

Owns the one file that makes parts count: what it does not name was left by a run that was killed.
It is replaced as a whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kraftwire import __version__
from kraftwire.errors import StorageError, UsageError
from kraftwire.spark.run.inputs import InputFile

__all__ = ["DECODER_VERSION", "Manifest", "Part", "Source"]

# Of the tables' meaning: raised when the same input gives other rows.
DECODER_VERSION = f"{__version__}/3"

_FOLDER = "_manifest"
_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a table. Shape: `path` is below the folder of the table."""

    unit: str
    table: str
    path: str
    rows: int
    bytes: int


@dataclass(slots=True)
class Source:
    """Files that were decoded together, the parts that came of them, and the run's tags.

    Shape: `state` is where reading goes on, if the source grows; JSON.
    """

    name: str
    files: list[tuple[str, int, str]]
    parts: list[Part] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Manifest:
    """The sources that are in the tables, by name.

    Shape: `is_derived` says that the derived tables were made of these sources.
    """

    options: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    is_derived: bool = False

    @classmethod
    def load(cls, folder: Path) -> Manifest | None:
        """The manifest of a folder, None if it has none. Raises: StorageError if it is damaged."""
        path = folder / _FOLDER / _NAME
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["decoder"] != DECODER_VERSION:
                problem = f"the tables are of version {data['decoder']}, not {DECODER_VERSION}"
                raise UsageError(f"{folder}: {problem}; take another folder")
            made = cls(data["options"], data["tags"], is_derived=data["is_derived"])
            for each in data["sources"]:
                parts = [Part(**part) for part in each["parts"]]
                files = [(str(name), int(size), str(head)) for name, size, head in each["files"]]
                name, state = each["name"], each.get("state", {})
                made.sources[name] = Source(name, files, parts, state, each["tags"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(f"is no manifest: {error}", file=str(path)) from error
        return made

    def save(self, folder: Path) -> None:
        """Replace the manifest of a folder."""
        target = folder / _FOLDER
        target.mkdir(parents=True, exist_ok=True)
        data = {
            "decoder": DECODER_VERSION,
            "options": self.options,
            "tags": self.tags,
            "sources": [asdict(source) for source in self.sources.values()],
            "is_derived": self.is_derived,
        }
        fresh = target / (_NAME + ".new")
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target / _NAME)

    def known(self, files: Iterable[InputFile]) -> set[tuple[str, int, str]]:
        """The files that are in the tables, without those of a source one of which has changed."""
        now = {file.path: file.identity for file in files}
        return {
            file
            for source in self.sources.values()
            if all(now.get(each[0], each) == each for each in source.files)
            for file in source.files
        }

    def put(self, source: Source) -> list[Part]:
        """Take a source in, in place of all that have one of its files; returns what they had more.

        Shape: parts that the new source has taken over are not among those that are returned.
        """
        paths = {path for path, _, _ in source.files}
        dropped: list[Part] = []
        for name, each in list(self.sources.items()):
            if name == source.name or any(path in paths for path, _, _ in each.files):
                dropped += self.sources.pop(name).parts
        self.sources[source.name] = source
        self.is_derived = False
        kept = {(part.table, part.path) for part in source.parts}
        return [part for part in dropped if (part.table, part.path) not in kept]

    def parts(self) -> set[tuple[str, str]]:
        """Table and path of every part that counts."""
        return {(part.table, part.path) for each in self.sources.values() for part in each.parts}
