"""Reads what `kafka-dump-log` prints, to compare it with what kraftwire reads.

Knows the tool's text only: lines of batches, of records after a bar, and of index entries.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_RECORD = re.compile(
    r"\| offset: (\d+) (CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) "
    r"sequence: (-?\d+) headerKeys: \[(.*?)\](?: (.*))?",
    re.DOTALL,
)
_PAIR = re.compile(r"(\w+): (\S+)")
_OPTIONAL = re.compile(r"OptionalLong(?:\.empty|\[(-?\d+)\])")
_BEGINNINGS = (
    "| offset: ",
    "baseOffset: ",
    "Dumping ",
    "Log starting offset: ",
    "Snapshot end offset: ",
    "Found ",
    "KeyError",
)


@dataclass(slots=True)
class DumpedRecord:
    """A record; `text` is what follows the header keys, key and payload as the tool decodes them.

    Of a control record, `text` is its name and JSON.
    """

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    sequence: int
    header_keys: list[str]
    text: str

    @property
    def decoded(self) -> tuple[Any, Any]:
        """Key and payload of a record that the tool printed as JSON; None where there is none."""
        key, rest = self._json_after("key: ", self.text)
        payload, rest = self._json_after("payload: ", rest.lstrip())
        return key, payload

    @staticmethod
    def _json_after(label: str, text: str) -> tuple[Any, str]:
        if not text.startswith(label):
            return None, text
        text = text.removeprefix(label)
        if text == "<DELETE>":
            return None, ""
        value, end = json.JSONDecoder().raw_decode(text)
        return value, text[end:]


@dataclass(slots=True)
class DumpedBatch:
    """A batch: the numbers and flags of its line, and its records."""

    fields: dict[str, Any]
    records: list[DumpedRecord] = field(default_factory=list)


@dataclass(slots=True)
class DumpedFile:
    """What the tool printed for a file: batches, or entries of an index or producer snapshot."""

    name: str
    batches: list[DumpedBatch] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def read(path: Path) -> dict[str, DumpedFile]:
    """The dumped files of an xz-compressed text, by name."""
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as text:
        return parse(text)


def parse(text: Iterable[str]) -> dict[str, DumpedFile]:
    """The dumped files of a text, by name."""
    files: dict[str, DumpedFile] = {}
    current = DumpedFile("")
    for line in _whole_lines(text):
        if line.startswith("Dumping "):
            name = line.removeprefix("Dumping ")
            current = files.setdefault(name, DumpedFile(name))
        elif line.startswith("baseOffset: "):
            current.batches.append(DumpedBatch(_pairs(line)))
        elif match := _RECORD.fullmatch(line):
            current.batches[-1].records.append(_record(match))
        elif line.startswith(("offset: ", "timestamp: ", "version: ", "producerId: ")):
            current.entries.append(_pairs(line))
        elif not line.startswith(("Log starting", "Snapshot end")):
            current.complaints.append(line)
    return files


def _whole_lines(text: Iterable[str]) -> Iterator[str]:
    """Lines, where a record whose payload has line breaks is one line."""
    whole = ""
    for raw in text:
        line = raw.removesuffix("\n")
        if whole.startswith("| ") and not line.startswith(_BEGINNINGS):
            whole += "\n" + line
            continue
        if whole:
            yield whole
        whole = line
    if whole:
        yield whole


def _pairs(line: str) -> dict[str, Any]:
    return {key: _value(value) for key, value in _PAIR.findall(line)}


def _value(text: str) -> Any:
    if match := _OPTIONAL.fullmatch(text):
        return int(match[1]) if match[1] else None
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _record(match: re.Match[str]) -> DumpedRecord:
    offset, _, timestamp, key_size, value_size, sequence, header_keys, text = match.groups()
    return DumpedRecord(
        int(offset),
        int(timestamp),
        int(key_size),
        int(value_size),
        int(sequence),
        header_keys.split(",") if header_keys else [],
        text or "",
    )
