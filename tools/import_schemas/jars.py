"""Schemas inside the jars of a Kafka release.

Owns their places in the jars, and how a jar's name gives its release.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kraftwire.errors import UsageError
from tools.import_schemas.schema import Message, parse_schema

_ENTRY = re.compile(r"(?:common/message|common/metadata|message)/[^/]+\.json")
_JAR = re.compile(r"kafka-[a-z-]+?-(\d+(?:\.\d+)+[^/]*)\.jar")
# Far above any schema (the largest has 30 kB): an entry that unpacks to more is not a schema.
_MAX_SCHEMA_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Upstream:
    """One schema of one release: its facts and where they come from."""

    message: Message
    jar: str
    entry: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Release:
    """All schemas of one release, by message name."""

    version: str
    schemas: dict[str, Upstream]

    @property
    def messages(self) -> dict[str, Message]:
        """The facts alone."""
        return {name: upstream.message for name, upstream in self.schemas.items()}


def read_releases(jars: Iterable[Path]) -> list[Release]:
    """Read jars of any number of releases.

    Order: newest release first.
    Raises: UsageError for a file that is not a jar of Kafka, a release without schemas, a broken
    schema. A single jar without schemas is skipped with a line on standard error.
    """
    by_release: dict[str, list[Path]] = {}
    for jar in sorted(jars, key=lambda path: path.name):
        by_release.setdefault(_release_of(jar), []).append(jar)
    newest_first = sorted(by_release, key=release_order, reverse=True)
    return [_read_release(version, by_release[version]) for version in newest_first]


def release_order(version: str) -> tuple[int, ...]:
    """A key that sorts release numbers by age."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _release_of(jar: Path) -> str:
    match = _JAR.fullmatch(jar.name)
    if match is None:
        raise UsageError(f"{jar}: expected a name such as kafka-clients-9.9.9.jar")
    return match[1]


def _read_release(version: str, jars: list[Path]) -> Release:
    schemas: dict[str, Upstream] = {}
    for jar in jars:
        found = _read_jar(jar)
        if not found:
            print(f"import_schemas: {jar} holds no message schemas, skipped", file=sys.stderr)
        for upstream in found:
            name = upstream.message.name
            if name in schemas:
                raise UsageError(
                    f"{jar}!{upstream.entry}: {name} is in {schemas[name].jar} as well"
                )
            schemas[name] = upstream
    if not schemas:
        raise UsageError(f"the jars of {version} hold no message schemas (common/message/*.json)")
    return Release(version, schemas)


def _read_jar(jar: Path) -> list[Upstream]:
    try:
        with zipfile.ZipFile(jar) as archive:
            entries = sorted(name for name in archive.namelist() if _ENTRY.fullmatch(name))
            found = [_read_entry(archive, jar, entry) for entry in entries]
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"{jar}: cannot be read as a jar: {error}") from error
    return found


def _read_entry(archive: zipfile.ZipFile, jar: Path, entry: str) -> Upstream:
    where = f"{jar}!{entry}"
    if archive.getinfo(entry).file_size > _MAX_SCHEMA_BYTES:
        raise UsageError(f"{where}: larger than {_MAX_SCHEMA_BYTES} bytes, not a schema")
    raw = archive.read(entry)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: not UTF-8: {error}") from error
    message = parse_schema(text, where, keep_about=False)
    return Upstream(message, jar.name, entry, hashlib.sha256(raw).hexdigest())
