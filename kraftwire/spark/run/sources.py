"""Which files are decoded together: a capture, the files of a rotated one, a file of a log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraftwire.spark.captures.index import FileIndex
from kraftwire.spark.run.inputs import InputFile

__all__ = ["chains", "families", "source_name"]

_DIGITS = re.compile(r"\d+")


def source_name(files: Iterable[InputFile]) -> str:
    """A name for files that are decoded together, the same in every run."""
    text = repr([file.identity for file in files])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def families(files: Iterable[InputFile]) -> list[list[InputFile]]:
    """Captures whose names differ in nothing but numbers, in one folder: perhaps one recording."""
    found: dict[tuple[Path, str], list[InputFile]] = {}
    for file in files:
        path = Path(file.path)
        found.setdefault((path.parent, _DIGITS.sub("#", path.name)), []).append(file)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Span:
    index: FileIndex
    first: int
    last: int


def chains(indexes: Sequence[FileIndex]) -> list[list[FileIndex]]:
    """The files of a family as recordings: each file begins after the one before has ended.

    Shape: files that overlap in time are recordings of their own, as are those with another
    header, and files without packets.
    """
    spans = []
    made: list[list[FileIndex]] = []
    for index in indexes:
        if index.talks and not index.has_fragments:
            first = min(talk.first_ns for talk in index.talks)
            spans.append(_Span(index, first, max(talk.last_ns for talk in index.talks)))
        else:
            made.append([index])
    spans.sort(key=lambda span: (span.first, span.index.path))
    last: _Span | None = None
    for span in spans:
        if last is not None and span.first >= last.last and span.index.head == last.index.head:
            made[-1].append(span.index)
        else:
            made.append([span.index])
        last = span
    return made
