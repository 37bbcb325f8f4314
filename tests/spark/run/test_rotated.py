"""The files of a rotated recording are one, even if they come one after the other."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.captures import index_capture
from kraftwire.spark.captures.plan import recordings
from kraftwire.spark.run import LocalRunner, RunOptions, RunOutcome, pipeline, run
from kraftwire.spark.run import manifest as manifests
from kraftwire.spark.run import parts as parts_of
from tests.spark.run.folders import captures, rows_of, tables_of
from tests.spark.run.kills import Killed, Kills
from tests.support.captures.decoded import rotated


def _silent(_text: str) -> None:
    """Say nothing."""


def _run(paths: Sequence[Path], out: Path, **more: Any) -> RunOutcome:
    return run(list(map(str, paths)), RunOptions(out), LocalRunner(), warn=_silent, **more)


def test_a_rotated_recording_is_one_source(tmp_path: Path) -> None:
    """The requests at the end of a file have their responses in the next one."""
    files = rotated(tmp_path / "in", 2)
    _run([tmp_path / "in"], tmp_path / "out")
    _run([captures(tmp_path / "whole", "quorum")], tmp_path / "one")
    parts, one = (rows_of(tmp_path / name, "exchanges") for name in ("out", "one"))
    assert len(parts) == len(one)
    assert len(rows_of(tmp_path / "out", "files")) == len(files)


@pytest.mark.parametrize("first", [[0], [0, 1], [3], [0, 3], [1, 2]])
def test_new_files_of_a_recording_join_it(first: list[int], tmp_path: Path) -> None:
    """Whatever existed before: earlier files, later ones, or those around the new ones."""
    files = rotated(tmp_path / "in", 4)
    captures(tmp_path / "in", "sasl")
    others = [tmp_path / "in" / "sasl.pcap"]
    _run([*(files[at] for at in first), *others], tmp_path / "out")
    outcome = _run([tmp_path / "in"], tmp_path / "out", resume=True)
    assert (outcome.files, outcome.again, outcome.known) == (4, len(first), 1)
    _run([tmp_path / "in"], tmp_path / "whole")
    assert tables_of(tmp_path / "out") == tables_of(tmp_path / "whole")


def test_files_can_come_one_by_one(tmp_path: Path) -> None:
    """As with a capture that is rotated every hour, and read every hour."""
    files = rotated(tmp_path / "in", 4)
    for count in range(1, 5):
        _run(files[:count], tmp_path / "out", resume=True)
    assert _run(files, tmp_path / "out", resume=True).files == 0
    _run(files, tmp_path / "whole")
    assert tables_of(tmp_path / "out") == tables_of(tmp_path / "whole")


def test_a_recording_that_does_not_continue_is_left_alone(tmp_path: Path) -> None:
    """A new capture with a similar name may be of the same time, and so of another place."""
    files = rotated(tmp_path / "in", 2)
    _run(files, tmp_path / "out")
    other = tmp_path / "in" / "trace_7.pcap"
    captures(tmp_path / "in", "quorum").joinpath("quorum.pcap").rename(other)
    outcome = _run([tmp_path / "in"], tmp_path / "out", resume=True)
    assert (outcome.files, outcome.again, outcome.known) == (1, 0, 2)
    _run([tmp_path / "in"], tmp_path / "whole")
    assert tables_of(tmp_path / "out") == tables_of(tmp_path / "whole")


def test_recordings_of_several_places_are_distinguished(tmp_path: Path) -> None:
    """Captures of two hosts, rotated at the same times, with the same connections."""
    paths = []
    for host in (1, 2):
        for number, path in enumerate(rotated(tmp_path / str(host), 3)):
            paths.append(tmp_path / f"host{host}-{number}.pcap")
            path.rename(paths[-1])
    found = recordings([index_capture(path) for path in reversed(paths)])
    assert [[each.path for each in recording.files] for recording in found] == [
        [str(path) for path in paths[:3]],
        [str(path) for path in paths[3:]],
    ]


def test_connections_distinguish_files_of_similar_names(tmp_path: Path) -> None:
    """Ring buffers put the time in the name, which differs in every file."""
    first, second = rotated(tmp_path / "one", 2)
    between = captures(tmp_path / "other", "sasl") / "sasl.pcap"
    raw = bytearray(between.read_bytes())
    start = int.from_bytes(first.read_bytes()[24:28], "little")
    at = 24
    while at < len(raw):  # all while the first file is written
        raw[at : at + 8] = (start + 1).to_bytes(4, "little") + bytes(4)
        at += 16 + int.from_bytes(raw[at + 8 : at + 12], "little")
    between.write_bytes(raw)
    found = recordings([index_capture(path) for path in (second, between, first)])
    assert [[each.path for each in recording.files] for recording in found] == [
        [str(first), str(second)],
        [str(between)],
    ]


def test_files_that_are_gone_keep_their_rows(tmp_path: Path) -> None:
    """A ring of files overwrites the oldest, whose rows cannot be made again."""
    files = rotated(tmp_path / "in", 3)
    _run(files[:2], tmp_path / "out")
    before = tables_of(tmp_path / "out")
    files[0].unlink()
    outcome = _run(files[1:], tmp_path / "out", resume=True)
    assert (outcome.files, outcome.again, outcome.known) == (1, 0, 1)
    for table, rows in before.items():
        assert set(rows) <= set(tables_of(tmp_path / "out")[table])
    told = {Path(row["file"]).name for row in rows_of(tmp_path / "out", "files")}
    assert told == {path.name for path in files}


def test_a_file_that_grew_and_its_successor_are_read_as_one(tmp_path: Path) -> None:
    """The last file of a growing recording is usually half written when it is first read."""
    files = rotated(tmp_path / "in", 3)
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[: len(whole) // 2])
    _run(files[:2], tmp_path / "out")
    files[1].write_bytes(whole)
    _run(files, tmp_path / "out", resume=True)
    _run(files, tmp_path / "whole")
    assert tables_of(tmp_path / "out") == tables_of(tmp_path / "whole")


@dataclass(frozen=True, slots=True)
class _Rotated:
    """A recording in two files, the folder of a run over the first, and the tables of both."""

    files: Sequence[Path]
    begun: Path
    tables: dict[str, list[str]]


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> _Rotated:
    """What the runs that are killed have in common."""
    folder = tmp_path_factory.mktemp("rotated")
    files = rotated(folder / "in", 2)
    _run(files, folder / "whole")
    _run(files[:1], folder / "begun")
    return _Rotated(files, folder / "begun", tables_of(folder / "whole"))


@pytest.mark.parametrize("count", range(1, 7))
@pytest.mark.parametrize("where", ["save", "replace", "remove"])
def test_a_run_killed_while_it_replaces_a_recording_continues(
    where: str, count: int, of_two: _Rotated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old parts count until the new ones do, and never both."""
    files = of_two.files
    shutil.copytree(of_two.begun, tmp_path / "out")
    kills = Kills(count)
    with monkeypatch.context() as patch:
        if where == "save":
            patch.setattr(manifests.Manifest, "save", kills.at(manifests.Manifest.save))
        elif where == "replace":
            patch.setattr(parts_of.os, "replace", kills.at(parts_of.os.replace))
        else:
            patch.setattr(pipeline, "remove", kills.at(pipeline.remove))
        try:
            _run(files, tmp_path / "out", resume=True)
        except Killed:
            pass
        else:
            assert kills.left > 0
    _run(files, tmp_path / "out", resume=True)
    assert tables_of(tmp_path / "out") == of_two.tables
    known = manifests.Manifest.load(tmp_path / "out")
    assert known is not None
    assert len(known.sources) == 1
