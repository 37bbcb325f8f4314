"""Which files a run reads, under which names, and what it says of those that it cannot read."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.run import InProcess, RunOptions, run
from tests.spark.run.folders import captures, everything, rows_of


def _silent(_text: str) -> None:
    """Say nothing."""


def _odd(path: Path, mark: bytes) -> Path:
    """The path with bytes in its name that are no UTF-8."""
    return Path(os.fsdecode(os.fsencode(path) + mark))


def test_names_that_are_not_utf_8_are_escaped(tmp_path: Path) -> None:
    """One file with an old name, whole, damaged or of a log, must not end the run of a folder."""
    source = everything(tmp_path / "in")
    for path in [path for path in source.rglob("*") if path.is_file()]:
        path.rename(_odd(path, b"\xff"))
    log = source / "odd" / "orders-0"
    log.rename(_odd(log.parent / "caf", b"\xe9-0"))
    outcome = run([str(source)], RunOptions(tmp_path / "out"), InProcess(), tell=_silent)
    assert outcome.unbalanced == []
    names = {row["file"] for row in rows_of(tmp_path / "out", "files")}
    assert f"{source}/captures/quorum.pcap\\xff" in names
    assert f"{source}/odd/caf\\xe9-0/00000000000000000000.log\\xff" in names
    assert {row["file"] for row in rows_of(tmp_path / "out", "frames")} <= names
    told = {row["file"] for row in rows_of(tmp_path / "out", "bad_input")}
    assert f"{source}/odd/cut.pcap\\xff" in told


def test_a_file_with_such_a_name_is_known_again(tmp_path: Path) -> None:
    """The manifest is JSON, and a run that goes on must not read the file twice."""
    whole = captures(tmp_path / "in", "sasl") / "sasl.pcap"
    whole.rename(_odd(whole.with_suffix(""), b"\xff0.pcap"))
    out = tmp_path / "out"
    run([str(tmp_path / "in")], RunOptions(out), InProcess(), tell=_silent)
    again = run([str(tmp_path / "in")], RunOptions(out), InProcess(), tell=_silent, resume=True)
    assert (again.files, again.known) == (0, 1)
    assert {row["file"] for row in rows_of(out, "exchanges")} == {
        f"{tmp_path}/in/sasl\\xff0.pcap"
    }


def test_a_file_is_the_same_by_every_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who goes on from another folder must not count a file twice, nor take it for another."""
    captures(tmp_path / "one" / "in", "sasl")
    captures(tmp_path / "two" / "in", "clients")
    (tmp_path / "two" / "in" / "clients.pcap").rename(tmp_path / "two" / "in" / "sasl.pcap")
    options = RunOptions(tmp_path / "out")
    monkeypatch.chdir(tmp_path / "one")
    run(["in"], options, InProcess(), tell=_silent)
    for same in (str(tmp_path / "one" / "in"), "./in/../in", "../one/in/sasl.pcap"):
        again = run([same], options, InProcess(), tell=_silent, resume=True)
        assert (again.files, again.known) == (0, 1)
    monkeypatch.chdir(tmp_path / "two")
    run(["in"], options, InProcess(), tell=_silent, resume=True)
    names = {row["file"] for row in rows_of(tmp_path / "out", "files")}
    assert names == {str(tmp_path / each / "in" / "sasl.pcap") for each in ("one", "two")}


def test_a_file_that_links_lead_to_is_read_once(tmp_path: Path) -> None:
    """Links to the newest capture, and to folders, are common where captures are kept."""
    source = captures(tmp_path / "in", "sasl")
    (source / "latest.pcap").symlink_to("sasl.pcap")
    (source / "above").symlink_to("..")
    outcome = run([str(source)], RunOptions(tmp_path / "out"), InProcess(), tell=_silent)
    assert outcome.files == 1
    rows = rows_of(tmp_path / "out", "files")
    assert [row["file"] for row in rows] == [str(source / "sasl.pcap")]


def test_a_pipe_is_refused_before_it_blocks(tmp_path: Path) -> None:
    """Indexing and decoding read a file twice, in processes that share no pipe."""
    source = captures(tmp_path / "in", "sasl")
    os.mkfifo(tmp_path / "pipe")
    told: list[str] = []
    inputs = [str(tmp_path / "pipe"), str(source)]
    outcome = run(inputs, RunOptions(tmp_path / "out"), InProcess(), tell=told.append)
    assert outcome.files == 1
    assert len(told) == 1
    assert "pipe: is no regular file" in told[0]


def test_a_file_that_may_not_be_read_has_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log directories belong to Kafka's user; tables must tell which file was left unread."""
    source = captures(tmp_path / "in", "sasl", "clients")
    closed = source / "clients.pcap"
    size = closed.stat().st_size
    given = io.open

    def opening(file: Any, *arguments: Any, **options: Any) -> Any:
        if str(file) == str(closed):
            raise PermissionError(13, "Permission denied", str(file))
        return given(file, *arguments, **options)

    options = RunOptions(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", opening)
        patch.setattr(io, "open", opening)
        outcome = run([str(source)], options, InProcess(), tell=_silent)
    assert (outcome.files, outcome.unbalanced) == (2, [])
    (row,) = rows_of(tmp_path / "out", "bad_input")
    assert (row["file"], row["length"], row["id"]) == (str(closed), size, "unreadable-file")
    assert "Permission denied" in row["detail"]
    again = run([str(source)], options, InProcess(), tell=_silent, resume=True)
    assert (again.files, again.known) == (1, 1)
    assert rows_of(tmp_path / "out", "bad_input") == []
