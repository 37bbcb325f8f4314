"""Which files are decoded together: a capture, the files of a rotated one, a file of a log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from kraftwire.decode.pairing.connection import reverse_key
from kraftwire.spark.captures.index import FileIndex
from kraftwire.spark.run.inputs import InputFile
from kraftwire.spark.run.manifest import Source

__all__ = ["chains", "families", "neighbours", "source_name"]

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


def neighbours(
    files: Iterable[InputFile], fresh: Iterable[InputFile], sources: Iterable[Source]
) -> list[InputFile]:
    """Captures that are in the tables and may be of one recording with new ones.

    Shape: all files of their sources are among the inputs, so that nothing is lost when these
    are decoded again.
    """
    new = set(fresh)
    by_identity = {file.identity: file for file in files}
    whole = [source.files for source in sources if by_identity.keys() >= set(source.files)]
    known = {by_identity[each] for files in whole for each in files}
    captures = (file for file in by_identity.values() if file.is_capture)
    return [
        file
        for family in families(captures)
        if not new.isdisjoint(family)
        for file in family
        if file in known
    ]


@dataclass(frozen=True, slots=True)
class _Span:
    """A file with the time of its first and last packet, and what tells whose successor it is."""

    index: FileIndex
    first: int
    last: int
    numbers: list[str]
    keys: frozenset[bytes]


def _span(index: FileIndex) -> _Span:
    return _Span(
        index,
        min(talk.first_ns for talk in index.talks),
        max(talk.last_ns for talk in index.talks),
        _DIGITS.findall(Path(index.path).name),
        frozenset(key for talk in index.talks for key in (talk.key, reverse_key(talk.key))),
    )


def chains(indexes: Sequence[FileIndex]) -> list[list[FileIndex]]:
    """The files of a family as recordings: each file begins after the one before has ended.

    Shape: files that overlap in time are of different recordings, as are those with another
    header, and files without packets. Where a file can go on from several, the names tell: the
    first numbers in them that differ, as in `host1-07` and `host2-07`; then the connections.
    """
    made = [[each] for each in indexes if not each.talks or each.has_fragments]
    spans = [_span(each) for each in indexes if each.talks and not each.has_fragments]
    open_chains: list[list[_Span]] = []
    for span in sorted(spans, key=lambda each: (each.first, each.index.path)):
        found = [chain for chain in open_chains if _may_follow(chain[-1], span)]
        if found:
            max(found, key=lambda chain: _likeness(chain[-1], span)).append(span)
        else:
            open_chains.append([span])
    return made + [[each.index for each in chain] for chain in open_chains]


def _may_follow(before: _Span, after: _Span) -> bool:
    return after.first >= before.last and after.index.head == before.index.head


def _likeness(before: _Span, after: _Span) -> tuple[int, int, int]:
    """How well a file goes with one after it."""
    pairs = zip(before.numbers, after.numbers, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return same, len(before.keys & after.keys), before.last
