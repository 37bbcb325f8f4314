"""From input files to sources and their units of work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.spark.captures.pieces import Series, bins
from kraftwire.spark.run.inputs import InputFile
from kraftwire.spark.run.manifest import Source
from kraftwire.spark.run.sources import chains, families, source_name
from kraftwire.spark.run.tasks import Unit, load_index

__all__ = ["Planned", "index_units", "plan_captures", "plan_logs"]

_UNIT_BYTES_MAX = 128 * 1024 * 1024
_UNIT_BYTES_MIN = 2 * 1024 * 1024


@dataclass(slots=True)
class Planned:
    """A source with its units, and of captures the recording (without the places of packets)."""

    source: Source
    units: list[Unit] = field(default_factory=list)
    series: Series | None = None

    @property
    def size(self) -> int:
        """About how many bytes will be read."""
        return sum(unit.size for unit in self.units)


def index_units(files: Iterable[InputFile]) -> list[Unit]:
    """A unit for the index of each capture, the largest first."""
    units = [Unit(source_name([file]), file.size, path=file.path) for file in files]
    return sorted(units, key=lambda unit: -unit.size)


def plan_captures(
    folder: Path, files: Iterable[InputFile], problems: Mapping[str, str], parallelism: int
) -> list[Planned]:
    """The captures that have an index as recordings, in units of about equal size."""
    planned = []
    for family in families(file for file in files if file.path not in problems):
        by_path = {file.path: file for file in family}
        names = {file.path: source_name([file]) for file in family}
        indexes = [load_index(folder, names[file.path]) for file in family]
        for chain in chains(indexes):
            members = [by_path[index.path] for index in chain]
            source = Source(source_name(members), [file.identity for file in members])
            series = Series(chain)
            made = Planned(source, series=series)
            total = sum(talk.size for talk in series.talks)
            size = min(_UNIT_BYTES_MAX, max(_UNIT_BYTES_MIN, total // (2 * parallelism)))
            # Packets in pieces cannot be told apart by connection before they are whole.
            is_whole = any(index.has_fragments for index in chain)
            chosen = [list(range(1, len(series.talks) + 1))] if is_whole else None
            for at, numbers in enumerate(chosen or bins(series.talks, size)):
                read = sum(series.talks[number - 1].size for number in numbers)
                indexed = tuple(names[file.path] for file in members)
                unit = Unit(f"{source.name}-{at:04}", read, indexed, tuple(numbers))
                made.units.append(unit)
            planned.append(made)
    return planned


def plan_logs(files: Iterable[InputFile]) -> list[Planned]:
    """All other files, cut into ranges where that is possible."""
    from kraftwire.spark.logs import plan

    planned = []
    for file in files:
        source = Source(source_name([file]), [file.identity])
        made = Planned(source)
        for at, (start, end) in enumerate(plan(file.path)):
            name = f"{source.name}-{at:04}"
            made.units.append(Unit(name, end - start, path=file.path, start=start, end=end))
        planned.append(made)
    return planned
