"""A run from inputs to tables: index, decode, commit, stages.

Owns the order of the steps. Tasks do all decoding and write parts aside; this module moves them and
records them in the manifest, source by source, so a run can be killed at any moment.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraftwire.errors import StorageError, UsageError
from kraftwire.spark.captures.rows import Rows
from kraftwire.spark.inputs import InputFile, find_inputs
from kraftwire.spark.paths import folder_values, top_paths
from kraftwire.spark.run.conservation import (
    capture_rows,
    log_rows,
    outdated,
    unbalanced,
    undecoded,
    unread_rows,
    unread_source,
    unreadable_rows,
)
from kraftwire.spark.run.incremental import FileProgress, next_state, progress_of
from kraftwire.spark.run.manifest import Manifest, Source, TablePart, claimed, refuse_strangers
from kraftwire.spark.run.options import RunOptions, shared_tags
from kraftwire.spark.run.parts import (
    TASKS,
    PartWriter,
    commit,
    create_missing,
    remove,
    remove_leftovers,
)
from kraftwire.spark.run.plan import (
    PlannedSource,
    index_units,
    neighbours,
    plan_captures,
    plan_logs,
    source_name,
)
from kraftwire.spark.run.runner import Runner
from kraftwire.spark.run.tasks import JobSettings, UnitResult, Work, decode_unit, index_unit
from kraftwire.spark.tables import TABLES
from kraftwire.spark.tables.files import BadBytes, FileBytes
from kraftwire.spark.tail import is_passing

if TYPE_CHECKING:
    from kraftwire.client.security import Given

# Units of one job: few enough to lose little when killed, enough to keep all cores busy.
_GROUP_UNITS_PER_CORE = 4
# The bytes that count as a unit, and the least that the smallest one counts for.
_WHOLE_BYTES = 2 * 1024 * 1024
_BYTES_MIN = 64 * 1024

Warn = Callable[[str], None]
# Called with the name of a phase and the number of bytes that it will read.
Begin = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class TailInputs:
    """What a round of a tail also reads: quorums, by addresses of their controllers.

    `security` is that of all of them. Inputs need not exist yet, and files that are being removed
    or swapped in are skipped.
    """

    quorums: tuple[str, ...] = ()
    security: Given = None


@dataclass(slots=True)
class RunOutcome:
    """The result of a run.

    `rows` counts the rows of all tables in the folder, by name; `unbalanced` reports files with
    bytes that are not counted exactly once; `size` counts the bytes read by this run, `known` the
    files that only an earlier run has read, and `again` those of `files` that both have read;
    `unread` names folders and files that could not be listed or opened, `undecoded` inputs of which
    nothing could be decoded, and why; `unreachable` says why quorums could not be read.
    """

    rows: dict[str, int] = field(default_factory=dict)
    unbalanced: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    undecoded: list[str] = field(default_factory=list)
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
    following: TailInputs | None = None,
    warn: Warn = print,
    begin: Begin = lambda _name, _size: None,
) -> RunOutcome:
    """Read inputs into the tables of a folder.

    With `following`, this is one round of a tail. Raises: UsageError if there is nothing to read,
    if the folder holds tables of another run and `resume` is false or the selection of frames
    differs, or if another run is using it; JobError if a task or a stage fails; LogMovedError if a
    quorum has lost records that were read.
    """
    with claimed(options.folder):
        return _Run(options, runner, warn, begin).run(inputs, resume=resume, following=following)


class _Run:
    """The steps of one run."""

    def __init__(self, options: RunOptions, runner: Runner, warn: Warn, begin: Begin) -> None:
        self._options = options
        self._folder = options.folder.absolute()
        self._runner = runner
        self._warn = warn
        self._begin = begin
        self._manifest = Manifest()
        self._outcome = RunOutcome()
        self._progress: dict[str, FileProgress] = {}
        self._replaced: list[TablePart] = []
        self._is_tail = False
        self._known_paths: set[str] = set()
        self._job = JobSettings(str(self._folder), options.selection, options.base)
        self._tags: dict[str, str] = {}
        self._tops: list[Path] = []

    def run(
        self, inputs: Sequence[str], *, resume: bool, following: TailInputs | None
    ) -> RunOutcome:
        """Run all steps."""
        began = time.monotonic()
        self._open(resume=resume)
        self._is_tail = following is not None
        self._tops = top_paths(inputs)
        files = []
        unread: list[StorageError] = []
        for file in find_inputs(inputs, self._warn, self._folder, unread.append):
            # Wrong names are reported before this; identifying many files takes a while.
            self._runner.begin()
            files.append(file)
        if following is not None:
            files = [file for file in files if not is_passing(file.path)]
        elif not files:
            raise UsageError(f"{', '.join(inputs)}: there is no file to read")
        self._save()
        remove_leftovers(self._folder, self._manifest)
        self._add_unread_rows(inputs, unread)
        known = self._manifest.known(files)
        fresh = [file for file in files if file.identity not in known]
        self._outcome.files, self._outcome.known = len(fresh), len(files) - len(fresh)
        self._outcome.size = sum(file.size for file in fresh)
        self._progress = progress_of(self._manifest.sources.values(), fresh)
        self._outcome.size -= sum(each.mark.end for each in self._progress.values())
        self._decode(files, fresh)
        if following is not None:
            for bootstrap in following.quorums:
                self._read_live(bootstrap, following.security)
        create_missing(self._folder, self._options.base)
        shutil.rmtree(self._folder / TASKS, ignore_errors=True)
        self._derive()
        if following is None:
            self._outcome.undecoded = undecoded(self._folder, files, self._tops)
        self._outcome.rows = self._count()
        self._outcome.seconds = time.monotonic() - began
        return self._outcome

    def _add_unread_rows(self, inputs: Sequence[str], errors: Sequence[StorageError]) -> None:
        """Keep one row for each folder or file that cannot be read, none for those that now can."""
        self._outcome.unread = [error.file for error in errors]
        found = {unread_source(error).name: error for error in errors}
        sources = self._manifest.sources
        for name in outdated(sources, inputs, found):
            self._replaced += self._manifest.drop(name)
        for name, error in found.items():
            if name not in sources:
                self._commit(unread_source(error), [], unread_rows(error))
        self._save()

    def _read_live(self, bootstrap: str, security: Given) -> None:
        """Add what a quorum has committed since the last round."""
        # This loads a client and its event loop, which workers do not need.
        from kraftwire.spark.run.quorum_source import read_live

        self._begin("quorum", 0)
        read = read_live(self._folder, bootstrap, self._manifest.sources, self._tags, security)
        if read.problem:
            self._outcome.unreachable.append(read.problem)
        elif read.source is not None:
            self._put(read.source, read.parts)
            self._save()

    def _derive(self) -> None:
        """Make the derived tables, if they are not up to date."""
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
            raise UsageError(f"{self._folder} already holds tables; --resume adds to them")
        if found is not None and found.options != wanted:
            raise UsageError(f"{self._folder} holds tables made with other options")
        if found is None:
            refuse_strangers(self._folder)
        self._manifest = found or Manifest(wanted)
        self._tags = self._manifest.tags | dict(self._options.tags)
        self._manifest.tags = self._tags

    def _decode(self, files: Sequence[InputFile], fresh: Sequence[InputFile]) -> None:
        """Decode new files, and the earlier captures that they continue.

        A capture may be deleted before it is decoded, as by a ring buffer. Then its recording is
        decoded without it.
        """
        again = neighbours(files, fresh, self._manifest.sources.values())
        self._known_paths = {file.path for file in again}
        problems = self._index([*_captures(fresh), *again])
        planned = plan_logs([file for file in fresh if not file.is_capture], self._progress)
        while True:
            self._commit_unreadable(fresh, problems)
            files = [file for file in files if file.path not in problems]
            known = self._manifest.known(files)
            fresh = [file for file in _captures(files) if file.identity not in known]
            again = neighbours(files, fresh, self._manifest.sources.values())
            cores, cut_bytes = self._runner.cores, self._options.cut_bytes
            planned += plan_captures(
                self._folder, [*fresh, *again], problems, cores,
                cut_bytes=cut_bytes, known=self._manifest.sources,
            )  # fmt: skip
            problems = self._decode_planned(planned)
            if not problems:
                return
            planned = []

    def _commit_unreadable(self, fresh: Iterable[InputFile], problems: Mapping[str, str]) -> None:
        """Commit rows for new captures that cannot be read; the rows of known ones stay."""
        for file in _captures(fresh):
            if file.path in problems:
                source = Source(source_name([file]), [file.identity])
                self._commit(source, [], unreadable_rows(file, problems[file.path]))
                self._warn_if_gone(file.path)
        self._save()

    def _warn_if_gone(self, path: str) -> None:
        if not Path(path).exists():
            self._warn(f"{path}: was deleted before it was read")

    def _decode_planned(self, planned: Sequence[PlannedSource]) -> dict[str, str]:
        """Decode and commit sources; return the captures that are gone, and why, by path.

        Nothing is committed of their recordings.
        """
        self._begin("decode", sum(each.size for each in planned))
        problems: dict[str, str] = {}
        for group in _job_groups(planned, _GROUP_UNITS_PER_CORE * self._runner.cores):
            done = self._decode_units(
                (self._job_of(each.source), unit) for each in group for unit in each.units
            )
            for each in group:
                mine = [one for unit in each.units for one in done[unit.name]]
                lost = {one.lost: one.problem for one in mine if one.lost}
                problems |= lost
                if not lost:
                    self._finish(each, mine)
            self._save()
        return problems

    def _count_again(self, source: Source) -> None:
        """Count the files of a recording that were in the tables before."""
        sizes = [size for path, size, _ in source.files if path in self._known_paths]
        outcome = self._outcome
        outcome.again += len(sizes)
        outcome.files += len(sizes)
        outcome.known -= len(sizes)
        outcome.size += sum(sizes)

    def _decode_units(self, work: Iterable[Work]) -> dict[str, list[UnitResult]]:
        """Return the result of each unit, by name; for a connection that was cut, of its parts."""
        ordered = sorted(work, key=_order)
        found = self._map(decode_unit, ordered)
        done = {each.unit: [each] for each in found if not each.more}
        cut = {unit.name: each.unit for each in found for unit in each.more}
        jobs = {unit.name: job for job, unit in ordered}
        more = [(jobs[each.unit], unit) for each in found for unit in each.more]
        for each in self._map(decode_unit, more):
            done.setdefault(cut[each.unit], []).append(each)
        return done

    def _index(self, captures: Sequence[InputFile]) -> dict[str, str]:
        """Index captures aside; return why that was not possible, by path."""
        units = index_units(captures)
        self._begin("index", sum(unit.size for unit in units))
        problems = zip(
            units, self._map(index_unit, [(self._job, unit) for unit in units]), strict=True
        )
        return {unit.path: problem for unit, problem in problems if problem}

    def _map(self, task: Callable[[Work], Any], work: Sequence[Work]) -> list[Any]:
        """Run a task for each unit, wherever the runner does that."""
        return self._runner.map(task, work) if work else []

    def _tags_of(self, source: Source) -> dict[str, str]:
        """Return the tags of a source: what its folders say, and those of the run."""
        folders = folder_values(source.files[0][0], self._tops) if source.files else {}
        return folders | self._tags

    def _job_of(self, source: Source) -> JobSettings:
        return replace(self._job, tags=tuple(self._tags_of(source).items()))

    def _finish(self, planned: PlannedSource, done: list[UnitResult]) -> None:
        source, before = planned.source, planned.before
        if planned.recording is not None:
            self._count_again(source)
            self._commit(source, done, capture_rows(planned, done))
            return
        if _is_unread(done):
            self._warn_if_gone(source.files[0][0])
            if self._is_tail and not Path(source.files[0][0]).exists():
                return
        source.parts = [] if before is None else list(before.parts)
        source.state = next_state(before, [each.read for each in done if each.read is not None])
        self._commit(source, done, log_rows(done, 0 if before is None else before.mark.end))

    def _commit(
        self,
        source: Source,
        done: Iterable[UnitResult],
        rows: Iterable[tuple[str, FileBytes | BadBytes]],
    ) -> None:
        """Commit the parts of a source, and rows about its files, at the next `_save`."""
        own = {name: Rows(TABLES[name]) for name in ("files", "bad_input")}
        for table, about in rows:
            own[table].add(about)
            if isinstance(about, FileBytes) and (wrong := unbalanced(about)):
                self._outcome.unbalanced.append(wrong)
        with PartWriter(self._folder, f"{source.name}-files", 0, self._tags_of(source)) as writer:
            for table, each in own.items():
                each.pack(at_least=1)
                for batch in each.take_batches():
                    writer.write(table, batch)
        parts = [part for each in done for part in each.parts] + writer.parts
        self._put(source, parts)

    def _put(self, source: Source, parts: Iterable[TablePart]) -> None:
        source.parts += commit(self._folder, parts)
        source.tags = self._tags_of(source)
        self._replaced += self._manifest.put(source)

    def _save(self) -> None:
        """Save the manifest, and remove parts that no longer count."""
        self._manifest.save(self._folder)
        remove(self._folder, self._replaced)
        self._replaced = []

    def _count(self) -> dict[str, int]:
        """Count the rows of all tables in the folder."""
        import pyarrow.parquet as pq

        counts = {}
        for table in self._folder.iterdir():
            if table.is_dir() and not table.name.startswith("_"):
                paths = list(table.glob("*.parquet"))
                if paths:
                    counts[table.name] = sum(pq.read_metadata(path).num_rows for path in paths)
        return dict(sorted(counts.items()))


def _order(work: Work) -> tuple[bool, int]:
    """Order the units of a job: those that others wait for first, then the long ones."""
    _, unit = work
    return not unit.cut_bytes, -unit.size


def _captures(files: Iterable[InputFile]) -> list[InputFile]:
    return [file for file in files if file.is_capture]


def _is_unread(done: Iterable[UnitResult]) -> bool:
    """Whether some of a file could not be read, as when retention deletes it."""
    rows = (row for each in done for row in each.files)
    return any(row["kind"] == "unknown" and row["bad_bytes"] == row["size"] for row in rows)


def _job_groups(planned: Sequence[PlannedSource], units_max: int) -> Iterator[list[PlannedSource]]:
    """Yield sources in groups that are decoded by one job each; a large source has its own.

    A small unit counts as a fraction of one.
    """
    group: list[PlannedSource] = []
    count = 0.0
    for each in planned:
        weight = sum(min(1.0, max(unit.size, _BYTES_MIN) / _WHOLE_BYTES) for unit in each.units)
        if group and count + weight > units_max:
            yield group
            group, count = [], 0.0
        group.append(each)
        count += weight
    if group:
        yield group
