"""Which files are decoded together: a capture, the files of a rotated one, a file of a log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from kraftwire.capture.connections.connection import reverse_key
from kraftwire.capture.packets.series import Span, chains, families
from kraftwire.spark.captures.index import FileIndex
from kraftwire.spark.run.inputs import InputFile
from kraftwire.spark.run.manifest import Source

__all__ = ["capture_chains", "capture_families", "neighbours", "source_name"]


def source_name(files: Iterable[InputFile]) -> str:
    """Return a name for files that are decoded together, the same in every run."""
    text = repr([file.identity for file in files])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def neighbours(
    files: Iterable[InputFile], fresh: Iterable[InputFile], sources: Iterable[Source]
) -> list[InputFile]:
    """Return captures in the tables that may belong to one recording with new ones.

    All files of their sources are among the inputs, so nothing is lost when these are decoded
    again.
    """
    new = set(fresh)
    by_identity = {file.identity: file for file in files}
    whole = [source.files for source in sources if by_identity.keys() >= set(source.files)]
    known = {by_identity[each] for files in whole for each in files}
    captures = (file for file in by_identity.values() if file.is_capture)
    return [
        file
        for family in capture_families(captures)
        if not new.isdisjoint(family)
        for file in family
        if file in known
    ]


def capture_families(files: Iterable[InputFile]) -> list[list[InputFile]]:
    """Group captures that may belong to one recording, by their names."""
    return families(files, lambda file: file.path)


def capture_chains(indexes: Sequence[FileIndex]) -> list[list[FileIndex]]:
    """Return the captures of a family as recordings; those without packets are separate."""
    spans = {
        each.path: _span(each) for each in indexes if each.connections and not each.has_fragments
    }
    by_path = {each.path: each for each in indexes}
    alone = [[each] for each in indexes if each.path not in spans]
    chained = chains(spans.values())
    return alone + [[by_path[span.path] for span in chain] for chain in chained]


def _span(index: FileIndex) -> Span:
    return Span(
        index.path,
        min(indexed.first_ns for indexed in index.connections),
        max(indexed.last_ns for indexed in index.connections),
        index.head,
        frozenset(
            key
            for indexed in index.connections
            for key in (indexed.key, reverse_key(indexed.key))
        ),
    )
