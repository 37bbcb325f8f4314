"""The manifest of a folder of tables: the inputs that it covers, and the parts of its tables.

Owns the claim on the folder (one run at a time, and nothing but tables in it) and the one file that
makes parts count: parts that it does not name were left by a killed run. The file is replaced as a
whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kraftwire import __version__
from kraftwire.errors import StorageError, UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.spark.inputs import InputFile
from kraftwire.spark.paths import own_folder

_LOCK = "_manifest/lock"

# The version of the tables' meaning: raised when the same input gives different rows.
DECODER_VERSION = f"{__version__}/8"
_FOLDER = "_manifest"
_NAME = "manifest.json"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Claim a folder, so that no other run writes to it; create it if necessary.

    A killed run holds no claim. Raises: UsageError if it is a file, or if another run is using it.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; tables need a folder")
    path = folder / _LOCK
    own_folder(path.parent)
    try:
        lock = LocalFiles().lock(str(path))
    except StorageError as error:
        if isinstance(error.__cause__, BlockingIOError) or error.__cause__ is None:
            raise UsageError(f"{folder}: another run is using this folder") from error
        raise
    try:
        yield
    finally:
        lock.close()


def refuse_strangers(folder: Path) -> None:
    """Raises: UsageError if a folder without a manifest has files that would be taken for tables.
    """
    for path in sorted(folder.glob("[!_.]*/*.parquet")):
        stranger = path.relative_to(folder)
        problem = f"holds {stranger}, which no run of the pipeline wrote"
        raise UsageError(f"{folder}: {problem}; use another folder")


@dataclass(frozen=True, slots=True)
class TablePart:
    """A file of a table. `path` is below the folder of the table."""

    unit: str
    table: str
    path: str
    rows: int
    bytes: int


@dataclass(slots=True)
class Source:
    """Files that were decoded together, the resulting parts, and the run's tags.

    `state` is where reading resumes, if the source grows; JSON.
    """

    name: str
    files: list[tuple[str, int, str]]
    parts: list[TablePart] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Manifest:
    """The sources that are in the tables, by name.

    With `is_derived`, the derived tables were made from these sources.
    """

    options: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    is_derived: bool = False

    @classmethod
    def load(cls, folder: Path) -> Manifest | None:
        """Load the manifest of a folder, None if it has none. Raises: StorageError if it is
        damaged.
        """
        path = folder / _FOLDER / _NAME
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["decoder"] != DECODER_VERSION:
                problem = f"the tables are of version {data['decoder']}, not {DECODER_VERSION}"
                raise UsageError(f"{folder}: {problem}; use another folder")
            made = cls(data["options"], data["tags"], is_derived=data["is_derived"])
            for each in data["sources"]:
                parts = [TablePart(**part) for part in each["parts"]]
                files = [(str(name), int(size), str(head)) for name, size, head in each["files"]]
                name, state = each["name"], each.get("state", {})
                made.sources[name] = Source(name, files, parts, state, each["tags"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(f"not a manifest: {error}", file=str(path)) from error
        return made

    def save(self, folder: Path) -> None:
        """Replace the manifest of a folder."""
        target = own_folder(folder / _FOLDER)
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
        """Return the files in the tables, without those of sources with a changed file."""
        now = {file.path: file.identity for file in files}
        return {
            file
            for source in self.sources.values()
            if all(now.get(each[0], each) == each for each in source.files)
            for file in source.files
        }

    def put(self, source: Source) -> list[TablePart]:
        """Add a source in place of all that share a file with it; return the parts no longer
        needed.

        Parts that the new source keeps are not returned.
        """
        paths = {path for path, _, _ in source.files}
        dropped: list[TablePart] = []
        for name, each in list(self.sources.items()):
            if name == source.name or any(path in paths for path, _, _ in each.files):
                dropped += self.sources.pop(name).parts
        self.sources[source.name] = source
        self.is_derived = False
        kept = {(part.table, part.path) for part in source.parts}
        return [part for part in dropped if (part.table, part.path) not in kept]

    def drop(self, name: str) -> list[TablePart]:
        """Remove a source; return its parts, which are no longer needed."""
        self.is_derived = False
        return self.sources.pop(name).parts

    def parts(self) -> set[tuple[str, str]]:
        """Return table and path of every part that counts."""
        return {(part.table, part.path) for each in self.sources.values() for part in each.parts}
