"""A run from inputs to tables: index, decode, commit, stages.

Owns the order of things. All decoding is done by tasks, which write parts aside; what counts is
moved and written into the manifest here, source by source, so a run can be killed at any moment.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kraftwire.errors import UsageError
from kraftwire.spark.captures.rows import Rows
from kraftwire.spark.run.claim import claimed, refuse_strangers
from kraftwire.spark.run.conservation import capture_rows, log_rows, unbalanced, unreadable_rows
from kraftwire.spark.run.grown import Begun, begun, next_state
from kraftwire.spark.run.inputs import InputFile, find_inputs
from kraftwire.spark.run.manifest import Manifest, Part, Source
from kraftwire.spark.run.options import RunOptions
from kraftwire.spark.run.parts import TASKS, PartWriter, commit, fill_up, remove, sweep
from kraftwire.spark.run.plan import Planned, index_units, plan_captures, plan_logs
from kraftwire.spark.run.runner import Runner
from kraftwire.spark.run.sources import neighbours, source_name
from kraftwire.spark.run.tags import shared_tags
from kraftwire.spark.run.tasks import Done, Job, Unit, Work, decode_unit, index_unit
from kraftwire.spark.tables import TABLES
from kraftwire.spark.tail import is_passing

__all__ = ["Following", "Outcome", "run"]

# Units of one job: few enough to lose little by a kill, enough to keep all cores busy.
_WAVE_UNITS_PER_CORE = 4
# What counts as a unit, and the least that the smallest one counts for.
_WHOLE_BYTES = 2 * 1024 * 1024
_BYTES_MIN = 64 * 1024

Tell = Callable[[str], None]
# Hears of a phase and of how many bytes it will read.
Begin = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Following:
    """What a round of a tail does besides: quorums to read, by addresses of their controllers.

    Nothing need be there yet, and files on their way out or in are left alone.
    """

    quorums: tuple[str, ...] = ()


@dataclass(slots=True)
class Outcome:
    """What a run has done.

    Shape: `rows` are those of all tables in the folder, by name; `unbalanced` says of files that
    bytes are in no place or in two; `size` counts the bytes read by this run, `known` the files
    that only an earlier one has read, and `again` those of `files` that both have read;
    `unreachable` says why quorums could not be read.
    """

    rows: dict[str, int] = field(default_factory=dict)
    unbalanced: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    files: int = 0
    known: int = 0
    again: int = 0
    size: int = 0
    seconds: float = 0.0


def run(
    inputs: Sequence[str],
    options: RunOptions,
    runner: Runner,
    *,
    resume: bool = False,
    following: Following | None = None,
    tell: Tell = print,
    begin: Begin = lambda _name, _size: None,
) -> Outcome:
    """Read inputs into the tables of a folder.

    Shape: with `following` this is one round of a tail. Raises: UsageError if there is nothing to
    read, or if the folder holds tables of another run and `resume` is false or the choice of
    frames differs, or if another run is at work in it; JobError if a task or a stage fails;
    LogMovedError if a quorum has lost what was read.
    """
    with claimed(options.folder):
        return _Run(options, runner, tell, begin).run(inputs, resume=resume, following=following)


class _Run:
    """The steps of one run."""

    def __init__(self, options: RunOptions, runner: Runner, tell: Tell, begin: Begin) -> None:
        self._options = options
        self._folder = options.folder.absolute()
        self._runner = runner
        self._tell = tell
        self._begin = begin
        self._manifest = Manifest()
        self._outcome = Outcome()
        self._begun: dict[str, Begun] = {}
        self._replaced: list[Part] = []
        self._is_tail = False
        self._job = Job(str(self._folder), options.selection, options.base)
        self._tags: dict[str, str] = {}

    def run(
        self, inputs: Sequence[str], *, resume: bool, following: Following | None
    ) -> Outcome:
        """All of them."""
        began = time.monotonic()
        self._open(resume=resume)
        self._is_tail = following is not None
        files = list(find_inputs(inputs, self._tell, self._folder))
        if following is not None:
            files = [file for file in files if not is_passing(file.path)]
        elif not files:
            raise UsageError(f"{', '.join(inputs)}: there is no file to read")
        self._settle()
        sweep(self._folder, self._manifest)
        known = self._manifest.known(files)
        fresh = [file for file in files if file.identity not in known]
        self._outcome.files, self._outcome.known = len(fresh), len(files) - len(fresh)
        self._outcome.size = sum(file.size for file in fresh)
        self._begun = begun(self._manifest.sources.values(), fresh)
        self._outcome.size -= sum(each.mark.end for each in self._begun.values())
        again = neighbours(files, fresh, self._manifest.sources.values())
        self._decode(fresh, again)
        for bootstrap in following.quorums if following is not None else ():
            self._read_live(bootstrap)
        fill_up(self._folder, self._options.base)
        shutil.rmtree(self._folder / TASKS, ignore_errors=True)
        self._derive()
        self._outcome.rows = self._count()
        self._outcome.seconds = time.monotonic() - began
        return self._outcome

    def _read_live(self, bootstrap: str) -> None:
        """Add what a quorum has committed since the last round."""
        # Loads a client and its event loop, which no worker needs.
        from kraftwire.spark.run.live import read_live

        self._begin("quorum", 0)
        read = read_live(self._folder, bootstrap, self._manifest.sources, self._tags)
        if read.problem:
            self._outcome.unreachable.append(read.problem)
        elif read.source is not None:
            self._let_count(read.source, read.parts)
            self._settle()

    def _derive(self) -> None:
        """Make the derived tables, if they are not of the present sources."""
        if not self._manifest.is_derived:
            self._begin("stages", 0)
            tags = shared_tags(source.tags for source in self._manifest.sources.values())
            self._runner.derive(self._folder, self._options.derived, tags)
            self._manifest.is_derived = True
            self._manifest.save(self._folder)

    def _open(self, *, resume: bool) -> None:
        found = Manifest.load(self._folder)
        wanted = self._options.fingerprint()
        if found is not None and not resume:
            raise UsageError(f"{self._folder} holds tables already; --resume adds to them")
        if found is not None and found.options != wanted:
            raise UsageError(f"{self._folder} holds tables made with other options")
        if found is None:
            refuse_strangers(self._folder)
        self._manifest = found or Manifest(wanted)
        self._tags = self._manifest.tags | dict(self._options.tags)
        self._manifest.tags = self._tags
        self._job = replace(self._job, tags=tuple(self._tags.items()))

    def _decode(self, files: Sequence[InputFile], again: Sequence[InputFile]) -> None:
        """Decode new files, and those of the captures before that they go on from."""
        captures = [*(file for file in files if file.is_capture), *again]
        problems = self._index(captures)
        known = self._manifest.sources.copy()
        for file in captures:
            source = Source(source_name([file]), [file.identity])
            if file.path in problems and source.name not in known:
                self._commit(source, [], unreadable_rows(file, problems[file.path]))
        self._settle()
        cores = self._runner.cores
        cut_bytes = self._options.cut_bytes
        planned = plan_captures(
            self._folder, captures, problems, cores, cut_bytes=cut_bytes, known=known
        )
        self._count_again(planned, again)
        others = [file for file in files if not file.is_capture]
        planned += plan_logs(others, self._begun)
        self._begin("decode", sum(each.size for each in planned))
        for wave in _waves(planned, _WAVE_UNITS_PER_CORE * cores):
            done = self._decode_units(unit for each in wave for unit in each.units)
            for each in wave:
                self._finish(each, [one for unit in each.units for one in done[unit.name]])
            self._settle()

    def _count_again(self, planned: Iterable[Planned], again: Iterable[InputFile]) -> None:
        """Take note of the files that are decoded a second time."""
        paths = {path for each in planned for path, _, _ in each.source.files}
        sizes = [file.size for file in again if file.path in paths]
        outcome = self._outcome
        outcome.again = len(sizes)
        outcome.files += len(sizes)
        outcome.known -= len(sizes)
        outcome.size += sum(sizes)

    def _decode_units(self, units: Iterable[Unit]) -> dict[str, list[Done]]:
        """What came of each unit, by its name; of a connection that was cut that of its parts."""
        found = self._map(decode_unit, sorted(units, key=_urgency))
        done = {each.unit: [each] for each in found if not each.more}
        cut = {unit.name: each.unit for each in found for unit in each.more}
        more = [unit for each in found for unit in each.more]
        for each in self._map(decode_unit, more):
            done.setdefault(cut[each.unit], []).append(each)
        return done

    def _index(self, captures: Sequence[InputFile]) -> dict[str, str]:
        """Index captures aside; returns why that was not possible, by path."""
        units = index_units(captures)
        self._begin("index", sum(unit.size for unit in units))
        said = self._map(index_unit, units)
        return {unit.path: problem for unit, problem in zip(units, said, strict=True) if problem}

    def _map(self, task: Callable[[Work], Any], units: Sequence[Unit]) -> list[Any]:
        """Run a task for each unit, wherever the runner does that."""
        return self._runner.map(task, [(self._job, unit) for unit in units]) if units else []

    def _finish(self, planned: Planned, done: list[Done]) -> None:
        source, before = planned.source, planned.before
        if planned.series is not None:
            self._commit(source, done, capture_rows(planned, done))
            return
        if self._is_tail and not Path(source.files[0][0]).exists() and _is_unread(done):
            return
        source.parts = [] if before is None else list(before.parts)
        source.state = next_state(before, [each.read for each in done if each.read is not None])
        self._commit(source, done, log_rows(done, 0 if before is None else before.mark.end))

    def _commit(
        self, source: Source, done: Iterable[Done], rows: Iterable[tuple[str, tuple[Any, ...]]]
    ) -> None:
        """Let a source count, once that is settled: its parts, and what is told of its files."""
        own = {name: Rows(TABLES[name]) for name in ("files", "bad_input")}
        for table, cells in rows:
            own[table].add(cells)
            if table == "files" and (wrong := unbalanced(cells)):
                self._outcome.unbalanced.append(wrong)
        with PartWriter(self._folder, f"{source.name}-files", 0, self._tags) as writer:
            for table, each in own.items():
                each.pack(at_least=1)
                for batch in each.take():
                    writer.write(table, batch)
        parts = [part for each in done for part in each.parts] + writer.parts
        self._let_count(source, parts)

    def _let_count(self, source: Source, parts: Iterable[Part]) -> None:
        source.parts += commit(self._folder, parts)
        source.tags = self._tags
        self._replaced += self._manifest.put(source)

    def _settle(self) -> None:
        """Write down what counts now, and remove what counts no more."""
        self._manifest.save(self._folder)
        remove(self._folder, self._replaced)
        self._replaced = []

    def _count(self) -> dict[str, int]:
        """The rows of all tables in the folder."""
        import pyarrow.parquet as pq

        counts = {}
        for table in self._folder.iterdir():
            if table.is_dir() and not table.name.startswith("_"):
                paths = list(table.glob("*.parquet"))
                if paths:
                    counts[table.name] = sum(pq.read_metadata(path).num_rows for path in paths)
        return dict(sorted(counts.items()))


def _urgency(unit: Unit) -> tuple[bool, int]:
    """What others wait for comes first, then what takes long."""
    return not unit.cut_bytes, -unit.size


def _is_unread(done: Iterable[Done]) -> bool:
    """Whether a file was gone before all of it could be read, as by retention."""
    return any(row["kind"] == "unknown" and not row["size"] for each in done for row in each.files)


def _waves(planned: Sequence[Planned], units_max: int) -> Iterator[list[Planned]]:
    """Sources in groups that are decoded by one job each; a large source is one of its own.

    Shape: a small unit counts as the part of one that it is.
    """
    wave: list[Planned] = []
    count = 0.0
    for each in planned:
        weight = sum(min(1.0, max(unit.size, _BYTES_MIN) / _WHOLE_BYTES) for unit in each.units)
        if wave and count + weight > units_max:
            yield wave
            wave, count = [], 0.0
        wave.append(each)
        count += weight
    if wave:
        yield wave
