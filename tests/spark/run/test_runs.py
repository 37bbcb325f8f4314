"""A run gives the same tables however often it is interrupted, and accounts for every byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

import numpy as np
import pyarrow.parquet as pq

from kraftwire.errors import UsageError
from kraftwire.spark.captures import CAPTURE_TABLES, Selection
from kraftwire.spark.captures.connection_bytes import ConnectionBytes
from kraftwire.spark.run import LocalRunner, RunOptions, RunOutcome, pipeline, run
from kraftwire.spark.run import manifest as manifests
from kraftwire.spark.run import parts as parts_of
from kraftwire.spark.tables import TABLES
from tests.spark.run.folders import busy, captures, everything, rows_of, tables_of
from tests.spark.run.kills import Killed, Kills

PLACES = ("kafka", "tls", "other", "duplicate", "header", "bad")


class _Dying(LocalRunner):
    """Dies after this many pieces of work."""

    def __init__(self, after: int, cores: int = 1) -> None:
        super().__init__(cores)
        self.left = after

    def map(self, task: Callable[[Any], Any], work: Sequence[Any]) -> list[Any]:
        return [self._do(task, each) for each in work]

    def _do(self, task: Callable[[Any], Any], work: Any) -> Any:
        if not self.left:
            raise Killed
        self.left -= 1
        return task(work)


class _Counting(LocalRunner):
    """Remembers what was decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[str] = []

    def map(self, task: Callable[[Any], Any], work: Sequence[Any]) -> list[Any]:
        self.tasks += [task.__name__] * len(work)
        return super().map(task, work)


def _silent(_text: str) -> None:
    """Say nothing."""


def _run(source: Path, folder: Path, runner: LocalRunner | None = None, **more: Any) -> Any:
    return run([str(source)], RunOptions(folder), runner or LocalRunner(), warn=_silent, **more)


@dataclass(frozen=True, slots=True)
class _Whole:
    """Inputs, and what a run over them gives that nothing interrupts."""

    source: Path
    out: Path
    outcome: RunOutcome
    tables: dict[str, list[str]]


def _whole(make: Callable[[Path], Path], folder: Path) -> _Whole:
    source, out = make(folder / "in"), folder / "out"
    outcome = _run(source, out)
    return _Whole(source, out, outcome, tables_of(out))


@pytest.fixture(scope="module")
def of_everything(tmp_path_factory: pytest.TempPathFactory) -> _Whole:
    """Captures, logs, and what is broken."""
    return _whole(everything, tmp_path_factory.mktemp("everything"))


@pytest.fixture(scope="module")
def of_captures(tmp_path_factory: pytest.TempPathFactory) -> _Whole:
    """Plain captures."""
    return _whole(captures, tmp_path_factory.mktemp("captures"))


@pytest.fixture(scope="module")
def of_busy(tmp_path_factory: pytest.TempPathFactory) -> _Whole:
    """A long connection that is not cut."""
    return _whole(busy, tmp_path_factory.mktemp("busy"))


def test_a_folder_of_everything_is_read_and_conserved(of_everything: _Whole) -> None:
    """A run over an incident's files must not stop at the first that is broken."""
    source, out, outcome = of_everything.source, of_everything.out, of_everything.outcome
    assert outcome.unbalanced == []
    files = {Path(row["file"]).name: row for row in rows_of(out, "files")}
    assert len(files) == outcome.files == sum(path.is_file() for path in source.rglob("*"))
    for row in files.values():
        assert sum(row[f"{place}_bytes"] or 0 for place in PLACES) == row["size"], row
    told = {Path(row["file"]).name: row["id"] for row in rows_of(out, "bad_input")}
    assert {"cut.pcap", "cut.pcap.xz", "wild.pcap", "00000000000000000000.log"} <= told.keys()
    assert files["wild.pcap"]["bad_bytes"] > 0
    assert files["packed.pcap.xz"]["kafka_bytes"] == files["clients.pcap"]["kafka_bytes"]


def test_tables_without_rows_are_there_too(tmp_path: Path) -> None:
    """A query over a good recording must not fail because there is no bad input."""
    source, out = captures(tmp_path / "in", "quorum"), tmp_path / "out"
    outcome = _run(source, out)
    assert outcome.rows["bad_input"] == 0
    for name in CAPTURE_TABLES:
        assert pq.read_table(out / name).schema.names == [*TABLES[name].arrow.names, "tags"]
    cut = (source / "quorum.pcap").read_bytes()[:-100]
    (source / "cut.pcap").write_bytes(cut[:5000] + bytes(200) + cut[5000:])
    again = _run(source, out, resume=True)
    assert again.rows["bad_input"] > 0


@pytest.mark.parametrize("after", [0, 1, 4, 9, 12])
def test_a_killed_run_continues(after: int, of_everything: _Whole, tmp_path: Path) -> None:
    """Whatever had been done counts once, and nothing counts twice."""
    source = of_everything.source
    with pytest.raises(Killed):
        _run(source, tmp_path / "out", _Dying(after))
    _run(source, tmp_path / "out", LocalRunner(cores=3), resume=True)
    assert tables_of(tmp_path / "out") == of_everything.tables
    assert not (tmp_path / "out" / "_tasks").exists()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("where", ["save", "replace"])
def test_a_run_killed_between_parts_and_manifest_continues(
    where: str,
    count: int,
    of_captures: _Whole,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts that were moved but are in no manifest must not be counted when it is resumed."""
    source = of_captures.source
    kills = Kills(count)
    with monkeypatch.context() as patch:
        if where == "save":
            patch.setattr(manifests.Manifest, "save", kills.at(manifests.Manifest.save))
        else:
            patch.setattr(parts_of.os, "replace", kills.at(parts_of.os.replace))
        try:
            _run(source, tmp_path / "out")
        except Killed:
            pass
        else:
            assert where == "save"
            assert kills.left > 0
            return
    _run(source, tmp_path / "out", resume=True)
    assert tables_of(tmp_path / "out") == of_captures.tables


def test_new_files_are_added_without_the_old_ones(tmp_path: Path) -> None:
    """A folder of captures that grows every hour is not decoded again every hour."""
    source = captures(tmp_path / "in", "clients")
    _run(source, tmp_path / "out")
    captures(source, "sasl")
    counting = _Counting()
    outcome = _run(source, tmp_path / "out", counting, resume=True)
    assert (outcome.files, outcome.known) == (1, 1)
    assert counting.tasks == ["index_unit", "decode_unit"]
    _run(captures(tmp_path / "both", "clients", "sasl"), tmp_path / "whole")
    wanted = tables_of(tmp_path / "whole")
    assert {
        table: [row.replace(str(tmp_path / "in"), str(tmp_path / "both")) for row in rows]
        for table, rows in tables_of(tmp_path / "out").items()
    } == wanted


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    """A capture that was still being written is in the tables once, as it is now."""
    source = captures(tmp_path / "in", "clients")
    path = source / "clients.pcap"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    _run(source, tmp_path / "out")
    path.write_bytes(whole)
    _run(source, tmp_path / "out", resume=True)
    _run(source, tmp_path / "whole")
    assert tables_of(tmp_path / "out") == tables_of(tmp_path / "whole")


def test_tables_do_not_depend_on_the_number_of_cores(
    of_captures: _Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More cores mean more bins."""
    from kraftwire.spark.run import plan

    monkeypatch.setattr(plan, "_UNIT_BYTES_MIN", 1000)
    counting = _Counting()
    counting.cores = 7
    _run(of_captures.source, tmp_path / "many", counting)
    assert counting.tasks.count("decode_unit") > 10
    assert tables_of(tmp_path / "many") == of_captures.tables


@pytest.fixture
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a connection be cut after any packet, not only every 256 KiB."""
    from kraftwire.spark.captures.packet_index import PacketIndexer

    monkeypatch.setattr(PacketIndexer, "run_bytes_max", 1)


@pytest.mark.usefixtures("_short_runs")
def test_a_long_connection_is_decoded_in_parts(of_busy: _Whole, tmp_path: Path) -> None:
    """One connection with more traffic than all others must not keep only one core busy."""
    counting = _Counting()
    counting.cores = 4
    options = RunOptions(tmp_path / "many", cut_bytes=10_000)
    cut = run([str(of_busy.source)], options, counting, warn=_silent)
    assert counting.tasks.count("decode_unit") > 10
    assert cut.unbalanced == of_busy.outcome.unbalanced == []
    assert tables_of(tmp_path / "many") == of_busy.tables


@pytest.mark.usefixtures("_short_runs")
def test_a_connection_that_is_no_longer_than_its_share_stays_whole(
    of_busy: _Whole, tmp_path: Path
) -> None:
    """Cutting takes a pass over the frames, which is wasted if no core is idle."""
    options, counting = RunOptions(tmp_path / "out", cut_bytes=10_000), _Counting()
    run([str(of_busy.source)], options, counting, warn=_silent)
    assert counting.tasks.count("decode_unit") == 2


@pytest.mark.usefixtures("_short_runs")
@pytest.mark.parametrize("after", [2, 3, 5, 9])
def test_a_run_killed_among_parts_continues(after: int, of_busy: _Whole, tmp_path: Path) -> None:
    """The parts of a connection count together or not at all."""
    source = of_busy.source
    options = RunOptions(tmp_path / "out", cut_bytes=10_000)
    with pytest.raises(Killed):
        run([str(source)], options, _Dying(after, cores=4), warn=_silent)
    run([str(source)], options, LocalRunner(cores=4), warn=_silent, resume=True)
    assert tables_of(tmp_path / "out") == of_busy.tables


def test_only_chosen_frames_are_in_tables(tmp_path: Path) -> None:
    """An exchange is chosen by the time of its request, so none is torn apart."""
    source = captures(tmp_path / "in", "quorum")
    _run(source, tmp_path / "all")
    exchanges = sorted(rows_of(tmp_path / "all", "exchanges"), key=lambda row: row["time_ns"])
    since, until = exchanges[20]["time_ns"], exchanges[60]["time_ns"]
    options = RunOptions(tmp_path / "some", Selection(since, until, frozenset({1})))
    outcome = run([str(source)], options, LocalRunner(), warn=_silent)
    assert outcome.unbalanced == []
    wanted = [e for e in exchanges if e["api_key"] == 1 and since <= e["time_ns"] < until]
    found = rows_of(tmp_path / "some", "exchanges")
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert len(rows_of(tmp_path / "some", "frames")) == 2 * len(wanted)


def test_bytes_that_are_nowhere_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decoder that loses a packet must not look like one that found nothing."""

    add = ConnectionBytes.add

    def losing(self: ConnectionBytes, data: bytes, starts: Any, sizes: Any) -> None:
        at = len(sizes) // 2 if starts[0] else len(sizes)  # the header is not lost
        begin, end = int(sizes[:at].sum()), int(sizes[: at + 1].sum())
        others = np.arange(len(sizes)) != at
        add(self, data[:begin] + data[end:], starts[others], sizes[others])

    monkeypatch.setattr(ConnectionBytes, "add", losing)
    outcome = _run(captures(tmp_path / "in", "clients"), tmp_path / "out")
    assert len(outcome.unbalanced) == 1
    assert "kafka" in outcome.unbalanced[0]


def test_tables_of_another_run_are_not_overwritten(tmp_path: Path) -> None:
    """Two runs in one folder would give the tables of neither."""
    source = captures(tmp_path / "in", "sasl")
    _run(source, tmp_path / "out")
    with pytest.raises(UsageError, match="--resume adds"):
        _run(source, tmp_path / "out")
    other = RunOptions(tmp_path / "out", Selection(apis=frozenset({3})))
    with pytest.raises(UsageError, match="other options"):
        run([str(source)], other, LocalRunner(), resume=True)


def test_waves_keep_sources_whole() -> None:
    """A source is committed as a whole, so its units belong to one job."""
    from kraftwire.spark.run.manifest import Source
    from kraftwire.spark.run.plan import PlannedSource
    from kraftwire.spark.run.tasks import Unit

    def waves(size: int) -> list[list[int]]:
        planned = [
            PlannedSource(Source(str(n), []), [Unit(f"{n}-{k}", size) for k in range(n)])
            for n in (1, 5, 2, 1)
        ]
        return [[len(each.units) for each in wave] for wave in pipeline._job_groups(planned, 3)]

    assert waves(100_000_000) == [[1], [5], [2, 1]]
    # Small units share a job.
    assert waves(1) == [[1, 5, 2, 1]]


def test_small_units_share_a_task() -> None:
    """A separate task for each of a thousand small files costs more than decoding them."""
    from kraftwire.spark.run.tasks import ForEach, Unit, bundled

    sizes = [100_000_000, 3_000_000, *[10_000] * 200]
    job: Any = "job"
    works = [(job, Unit(str(at), size)) for at, size in enumerate(sizes)]
    bundles = list(bundled(works, cores=2))
    assert [work for bundle in bundles for work in bundle] == works
    assert [len(bundle) for bundle in bundles] == [1, 1, 64, 64, 64, 8]
    assert ForEach(lambda work: work[1].size)(works[:2]) == [100_000_000, 3_000_000]
    # Every core gets work, however little there is.
    few = list(bundled(works[2:34], cores=2))
    assert [len(bundle) for bundle in few] == [4] * 8


class _Stages(LocalRunner):
    """Counts how often stages run; the first time they are interrupted."""

    times = 0

    def derive(self, *_: object) -> None:
        """Be interrupted, or not."""
        self.times += 1
        if self.times == 1:
            raise Killed


def test_a_run_killed_in_its_stages_continues_with_them(tmp_path: Path) -> None:
    """They run although all files are in the tables; once derived tables are made, they stay."""
    source = captures(tmp_path / "in", "quorum")
    runner = _Stages()
    with pytest.raises(Killed):
        _run(source, tmp_path / "out", runner)
    for _ in range(2):
        _run(source, tmp_path / "out", runner, resume=True)
        assert runner.times == 2
    captures(tmp_path / "in", "sasl")
    _run(source, tmp_path / "out", runner, resume=True)
    assert runner.times == 3
