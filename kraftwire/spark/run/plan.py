"""Which files are decoded together, and the units of work of about equal size that they make.

A capture, the files of a rotated one, or a file of a log are decoded together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.spark.captures.plan import CUT_BYTES, divide, recordings
from kraftwire.spark.captures.recording import Recording
from kraftwire.spark.inputs import InputFile, capture_families
from kraftwire.spark.run.incremental import FileProgress
from kraftwire.spark.run.manifest import Source
from kraftwire.spark.run.tasks import Unit, load_index

_UNIT_BYTES_MAX = 128 * 1024 * 1024
_UNIT_BYTES_MIN = 2 * 1024 * 1024


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


@dataclass(slots=True)
class PlannedSource:
    """A source with its units, and for captures the recording (without the places of packets).

    `before` is what an earlier run has read of a log file.
    """

    source: Source
    units: list[Unit] = field(default_factory=list)
    recording: Recording | None = None
    before: FileProgress | None = None

    @property
    def size(self) -> int:
        """Return about how many bytes will be read."""
        return sum(unit.size for unit in self.units)


def index_units(files: Iterable[InputFile]) -> list[Unit]:
    """Return a unit for the index of each capture, largest first."""
    units = [Unit(source_name([file]), file.size, path=file.path) for file in files]
    return sorted(units, key=lambda unit: -unit.size)


def plan_captures(
    folder: Path,
    files: Sequence[InputFile],
    problems: Mapping[str, str],
    parallelism: int,
    *,
    cut_bytes: int = CUT_BYTES,
    known: Container[str] = (),
) -> list[PlannedSource]:
    """Return the captures that have an index as recordings, in units of about equal size.

    Sources that are `known`, by name, are omitted.
    """
    planned = []
    names = {file.path: source_name([file]) for file in files}
    for family in capture_families(file for file in files if file.path not in problems):
        by_path = {file.path: file for file in family}
        for recording in recordings([load_index(folder, names[path]) for path in by_path]):
            members = [by_path[index.path] for index in recording.files]
            source = Source(source_name(members), [file.identity for file in members])
            if source.name not in known:
                planned.append(PlannedSource(source, recording=recording))
    share = sum(_traffic(each) for each in planned) / parallelism
    for each in planned:
        indexed = tuple(names[path] for path, _, _ in each.source.files)
        each.units += _units(each, indexed, parallelism, max(cut_bytes, share), cut_bytes)
    return planned


def _traffic(planned: PlannedSource) -> int:
    """Return the bytes of a recording that belong to connections."""
    assert planned.recording is not None
    return sum(indexed.size for indexed in planned.recording.connections)


def _units(
    planned: PlannedSource, indexed: tuple[str, ...], parallelism: int, long: float, cut_bytes: int
) -> Iterator[Unit]:
    """Yield units of about equal size for a recording; `long` connections in units that cut them.
    """
    assert planned.recording is not None
    numbers = range(1, len(planned.recording.connections) + 1)
    size = min(_UNIT_BYTES_MAX, max(_UNIT_BYTES_MIN, _traffic(planned) // (2 * parallelism)))
    for at, share in enumerate(divide(planned.recording, numbers, size, long)):
        name = f"{planned.source.name}-{at:04}"
        cut = cut_bytes if share.is_long else 0
        yield Unit(name, share.size, indexed, share.connections, cut_bytes=cut)


def plan_logs(
    files: Iterable[InputFile], progress: Mapping[str, FileProgress]
) -> list[PlannedSource]:
    """Plan all other files, cut into ranges where possible; parts read before are omitted."""
    from kraftwire.spark.logs import plan

    planned = []
    for file in files:
        source = Source(source_name([file]), [file.identity])
        before = progress.get(file.path)
        made = PlannedSource(source, before=before)
        position = 0 if before is None else before.mark.end
        ranges = plan(file.path, start=position)
        if ranges == [(0, 0)]:
            # It cannot be read, and may be gone by now: all of it is lost.
            ranges = [(position, max(position, file.size))]
        for at, (start, end) in enumerate(ranges):
            # Kept parts may be of an earlier file with the same name, size and head.
            name = f"{source.name}-{position}-{at:04}"
            made.units.append(Unit(name, end - start, path=file.path, start=start, end=end))
        planned.append(made)
    return planned
