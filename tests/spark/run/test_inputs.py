"""Which files a run reads, under which names, and what it reports if it cannot read them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.cli.main import main
from kraftwire.spark.run import LocalRunner, RunOptions, run
from kraftwire.spark.run.manifest import Manifest
from tests.spark.run.folders import captures, everything, rows_of
from tests.support.logs.directories import CLUSTER, LogMaker, write_directory


def _silent(_text: str) -> None:
    """Say nothing."""


def _odd(path: Path, mark: bytes) -> Path:
    """The path with bytes in its name that are not UTF-8."""
    return Path(os.fsdecode(os.fsencode(path) + mark))


def test_names_that_are_not_utf_8_are_escaped(tmp_path: Path) -> None:
    """One file with an old name, whole, damaged or of a log, must not end the run of a folder."""
    source = everything(tmp_path / "in")
    for path in [path for path in source.rglob("*") if path.is_file()]:
        path.rename(_odd(path, b"\xff"))
    log = source / "odd" / "orders-0"
    log.rename(_odd(log.parent / "caf", b"\xe9-0"))
    outcome = run([str(source)], RunOptions(tmp_path / "out"), LocalRunner(), warn=_silent)
    assert outcome.unbalanced == []
    names = {row["file"] for row in rows_of(tmp_path / "out", "files")}
    assert f"{source}/captures/quorum.pcap\\xff" in names
    assert f"{source}/odd/caf\\xe9-0/00000000000000000000.log\\xff" in names
    assert {row["file"] for row in rows_of(tmp_path / "out", "frames")} <= names
    told = {row["file"] for row in rows_of(tmp_path / "out", "bad_input")}
    assert f"{source}/odd/cut.pcap\\xff" in told


def test_a_file_with_such_a_name_is_known_again(tmp_path: Path) -> None:
    """The manifest is JSON, and a resumed run must not read the file twice."""
    whole = captures(tmp_path / "in", "sasl") / "sasl.pcap"
    whole.rename(_odd(whole.with_suffix(""), b"\xff0.pcap"))
    out = tmp_path / "out"
    run([str(tmp_path / "in")], RunOptions(out), LocalRunner(), warn=_silent)
    again = run([str(tmp_path / "in")], RunOptions(out), LocalRunner(), warn=_silent, resume=True)
    assert (again.files, again.known) == (0, 1)
    assert {row["file"] for row in rows_of(out, "exchanges")} == {
        f"{tmp_path}/in/sasl\\xff0.pcap"
    }


def test_what_was_mended_beside_a_file_is_read_again(tmp_path: Path) -> None:
    """Other files say whether a node starts on a directory, and of which cluster it is."""
    log = LogMaker()
    log.leader(1, 1)
    folder = write_directory(tmp_path / "in" / "d", log, election=(1, 1, 1))
    state = folder / "__cluster_metadata-0" / "quorum-state"
    good = state.read_text()
    state.write_text("no state")
    options = RunOptions(tmp_path / "out")

    def resumed(*, is_first: bool = False) -> tuple[int, bool, set[str]]:
        outcome = run(
            [str(tmp_path / "in")], options, LocalRunner(), warn=_silent, resume=not is_first
        )
        rows = rows_of(tmp_path / "out", "files")
        states = {Path(row["file"]).name: row["state"] or "" for row in rows}
        is_refused = "refusal" in states["meta.properties"]
        return outcome.files, is_refused, {row["cluster"] for row in rows}

    assert resumed(is_first=True) == (3, True, {CLUSTER})
    assert resumed() == (0, True, {CLUSTER})
    state.write_text(good)
    assert resumed() == (2, False, {CLUSTER})
    properties = folder / "meta.properties"
    properties.write_text(properties.read_text().replace(CLUSTER, CLUSTER[::-1]))
    assert resumed() == (3, False, {CLUSTER[::-1]})


def test_a_file_is_the_same_by_every_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run resumed from another folder must not count a file twice or take it for another."""
    captures(tmp_path / "one" / "in", "sasl")
    captures(tmp_path / "two" / "in", "clients")
    (tmp_path / "two" / "in" / "clients.pcap").rename(tmp_path / "two" / "in" / "sasl.pcap")
    options = RunOptions(tmp_path / "out")
    monkeypatch.chdir(tmp_path / "one")
    run(["in"], options, LocalRunner(), warn=_silent)
    for same in (str(tmp_path / "one" / "in"), "./in/../in", "../one/in/sasl.pcap"):
        again = run([same], options, LocalRunner(), warn=_silent, resume=True)
        assert (again.files, again.known) == (0, 1)
    monkeypatch.chdir(tmp_path / "two")
    run(["in"], options, LocalRunner(), warn=_silent, resume=True)
    names = {row["file"] for row in rows_of(tmp_path / "out", "files")}
    assert names == {str(tmp_path / each / "in" / "sasl.pcap") for each in ("one", "two")}


def test_a_file_that_links_lead_to_is_read_once(tmp_path: Path) -> None:
    """Links to the newest capture, and to folders, are common where captures are kept."""
    source = captures(tmp_path / "in", "sasl")
    (source / "latest.pcap").symlink_to("sasl.pcap")
    (source / "above").symlink_to("..")
    outcome = run([str(source)], RunOptions(tmp_path / "out"), LocalRunner(), warn=_silent)
    assert outcome.files == 1
    rows = rows_of(tmp_path / "out", "files")
    assert [row["file"] for row in rows] == [str(source / "sasl.pcap")]


def test_a_pipe_is_refused_before_it_blocks(tmp_path: Path) -> None:
    """Indexing and decoding read a file twice, in processes that share no pipe."""
    source = captures(tmp_path / "in", "sasl")
    os.mkfifo(tmp_path / "pipe")
    told: list[str] = []
    inputs = [str(tmp_path / "pipe"), str(source)]
    outcome = run(inputs, RunOptions(tmp_path / "out"), LocalRunner(), warn=told.append)
    assert outcome.files == 1
    assert len(told) == 1
    assert "pipe: is not a regular file" in told[0]


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
        outcome = run([str(source)], options, LocalRunner(), warn=_silent)
    assert (outcome.files, outcome.unbalanced) == (2, [])
    (row,) = rows_of(tmp_path / "out", "bad_input")
    assert (row["file"], row["length"], row["id"]) == (str(closed), size, "unreadable-file")
    assert "Permission denied" in row["detail"]
    again = run([str(source)], options, LocalRunner(), warn=_silent, resume=True)
    assert (again.files, again.known) == (1, 1)
    assert rows_of(tmp_path / "out", "bad_input") == []


def _closed(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Refuse to list a folder, as the system does for other users than root."""
    given = os.scandir

    def scandir(path: Any) -> Any:
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied", str(path))
        return given(path)

    patch.setattr(os, "scandir", scandir)


def test_a_folder_that_may_not_be_listed_has_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables must tell that something is missing, until a run has read it."""
    source = captures(tmp_path / "in", "sasl")
    captures(source / "closed", "clients")
    out = tmp_path / "out"
    told: list[str] = []
    with monkeypatch.context() as patch:
        _closed(patch, source / "closed")
        for resume in (False, True):
            outcome = run(
                [str(source)], RunOptions(out), LocalRunner(), warn=told.append, resume=resume
            )
            assert (outcome.unread, outcome.unbalanced) == ([str(source / "closed")], [])
            (row,) = rows_of(out, "bad_input")
            assert (row["file"], row["id"]) == (str(source / "closed"), "unreadable-folder")
            assert (row["stage"], row["length"]) == ("file", 0)
            assert row["detail"] == "cannot read: Permission denied"
    assert told == [f"{source}/closed: cannot read: Permission denied"] * 2
    saved = Manifest.load(out)
    assert saved is not None
    assert saved.is_derived, "a finding that is there already must not make stages run again"
    run([str(source / "sasl.pcap")], RunOptions(out), LocalRunner(), warn=_silent, resume=True)
    assert len(rows_of(out, "bad_input")) == 1
    again = run([str(source)], RunOptions(out), LocalRunner(), warn=_silent, resume=True)
    assert (again.files, again.unread) == (1, [])
    assert rows_of(out, "bad_input") == []


def test_what_is_not_read_is_an_incomplete_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scripts go by the exit code; a tail may stay incomplete to its end as well."""
    monkeypatch.setattr("kraftwire.spark.session.local_session", lambda *_, **__: _Spark())
    source = captures(tmp_path / "in", "sasl")
    _closed(monkeypatch, source / "closed")
    monkeypatch.setattr("kraftwire.spark.run.starting.SparkRunner", lambda _: _Runner())
    (source / "closed").mkdir()
    for command in (["run"], ["tail", "--once"]):
        out = ["--out", str(tmp_path / command[0]), "--quiet"]
        assert main(["pipeline", *command, str(source), *out]) == 1
        (source / "closed").rmdir()
        assert main(["pipeline", *command, str(source), *out, *_resumed(command)]) == 0
        (source / "closed").mkdir()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("bad.pcap", b"", "empty"), ("bad.bin", b"no capture", "10 bytes of no kind that is known"),
     ("bad.pcap.gz", b"\x1f\x8b\x08\x00", "bad.pcap.gz")],
)  # fmt: skip
def test_an_input_of_which_nothing_is_decoded_is_named(
    name: str, content: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Rows of the others are there; in a folder, other files may lie beside them."""
    monkeypatch.setattr("kraftwire.spark.session.local_session", lambda *_, **__: _Spark())
    monkeypatch.setattr("kraftwire.spark.run.starting.SparkRunner", lambda _: _Runner())
    source = captures(tmp_path / "in", "sasl")
    bad = source / name
    bad.write_bytes(content)
    out = tmp_path / "out"
    command = ["pipeline", "run", "--quiet", "--out"]
    assert main([*command, str(out), str(bad), str(source / "sasl.pcap")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(bad) in line
    assert words in line
    assert rows_of(out, "exchanges")
    assert main([*command, str(out), str(source / "bad*"), "--resume"]) == 1
    assert main([*command, str(out), str(source), "--resume"]) == 0
    (source / "sasl.pcap").unlink()
    assert main([*command, str(tmp_path / "nothing"), str(source)]) == 1


class _Runner(LocalRunner):
    """A runner without workers, in the place of Spark's."""

    def start_workers(self) -> None:
        """Do nothing: there are none."""


def _resumed(command: list[str]) -> list[str]:
    return ["--resume"] if command == ["run"] else []


class _Spark:
    """A session that does nothing."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.defaultParallelism = 1

    def parallelize(self, *_: Any) -> _Spark:
        """Return something to count."""
        return self

    def count(self) -> int:
        """Return a number."""
        return 0

    def stop(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("command", "master"), [("run", "local"), ("run", "spark://host:1"), ("tail", "local")]
)
def test_wrong_usage_is_told_before_spark_starts(
    command: str, master: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """On a cluster it may take minutes until executors have joined."""

    def start(*_: Any, **__: Any) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("kraftwire.spark.session.local_session", start)
    source = captures(tmp_path / "in", "sasl")
    other = tmp_path / "other"
    run([str(source)], RunOptions(other, with_records=True), LocalRunner(), warn=_silent)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "frames").mkdir()
    (tmp_path / "full" / "frames" / "some.parquet").touch()
    missing, resume = str(tmp_path / "missing"), ["--resume"] if command == "run" else []
    for inputs, out, words in (
        ([str(source), missing], tmp_path / "out", "missing: no such file or folder"),
        ([str(source)], other, "made with other options"),
        ([str(source)], tmp_path / "full", "full"),
        ([str(source)], source / "sasl.pcap", "is a file"),
    ):
        more = resume if out == other else []
        arguments = ["pipeline", command, *inputs, "--out", str(out), "--master", master, *more]
        assert main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
