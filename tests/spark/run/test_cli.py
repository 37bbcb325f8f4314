"""`kraftwire pipeline` as a command."""

from __future__ import annotations

import bz2
import importlib.util
import json
from pathlib import Path
from typing import Any

import click
import cramjam
import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.cli.main import main
from kraftwire.cli.pipeline import installed
from kraftwire.spark.run import LocalRunner, RunOptions, run
from kraftwire.spark.run.derive import highlights
from kraftwire.spark.run.parts import export
from kraftwire.spark.tables import TABLES
from tests.spark.run.folders import captures, rows_of

USAGE, FAILED = 2, 1
Captured = pytest.CaptureFixture[str]


def test_tables_are_described_in_words(capsys: Captured) -> None:
    """Users who query a table want to know what a column holds without reading code."""
    assert main(["pipeline", "tables"]) == 0
    text = capsys.readouterr().out
    for table in TABLES.values():
        assert table.about in text
        assert all(column.name in text for column in table.columns)
    assert main(["pipeline", "tables", "files"]) == 0
    assert TABLES["exchanges"].about not in capsys.readouterr().out
    assert main(["pipeline", "tables", "nonsense"]) == USAGE


@pytest.mark.parametrize(
    ("missing", "words"),
    [("pyspark", "pip install"), ("java", "Java 17")],
)
def test_what_is_not_installed_is_reported_in_a_line(
    missing: str, words: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra is large, so many will run the command without it once."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        installed, "find_spec", lambda name: None if name == missing else find(name)
    )
    if missing == "java":
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setattr(installed.shutil, "which", lambda _: None)
    assert main(["pipeline", "run", str(tmp_path), "--out", str(tmp_path / "out")]) == FAILED
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert words in lines[0]


@pytest.mark.parametrize(
    ("home", "stated", "words"),
    [
        ("jdk", 'JAVA_VERSION="11.0.20"', "Java 11, .*, is too old"),
        ("jdk/jre", 'IMPLEMENTOR="Any"\nJAVA_VERSION="1.8.0_392"', "Java 8, .*, is too old"),
        ("jdk", 'JAVA_VERSION="17.0.15"', ""),
        ("jdk", 'JAVA_VERSION="21"', ""),
        ("jdk", "nothing of use", ""),
        ("jdk", None, ""),
        ("elsewhere", None, "no Java in JAVA_HOME"),
    ],
)
def test_an_unusable_java_is_said_in_a_line(
    home: str, stated: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words are a stack trace. A Java that does not state its version may be a good one."""
    for name in ("jdk", "jdk/jre"):
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.touch()
    if stated is not None:
        (tmp_path / "jdk" / "release").write_text(stated)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
    if not words:
        return installed.check_installed()
    with pytest.raises(click.ClickException, match=words):
        installed.check_installed()
    return None


@pytest.mark.parametrize(
    "wrong",
    [
        ["--api", "Nothing"],
        ["--since", "noon"],
        ["--tag", "words"],
        ["--tag", "=x"],
        ["--tag", "a=1", "--tag", "a=2"],
        ["--api", "Vote,"],
        ["--api", "Vote,Nothing"],
        ["--since", "2026-11-20T20:21", "--until", "2026-11-20T20:20"],
        ["/nothing/here"],
        ["/nothing/*.pcap"],
        ["--master", "nonsense"],
        ["--master", "local[]"],
        ["--master", "local[x]"],
        ["--master", "local[0]"],
        ["--master", "local[2,0]"],
        ["--master", "spark://"],
        ["--conf", "spark.executor.memory"],
        ["--conf", "executor.memory=1g"],
    ],
)
def test_wrong_options_are_reported_before_anything_starts(
    wrong: list[str], tmp_path: Path, capsys: Captured
) -> None:
    """Spark takes seconds to start; a typing error should not."""
    assert main(["pipeline", "run", str(tmp_path), "--out", str(tmp_path / "o"), *wrong]) == USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_folder_that_cannot_be_used_is_said_before_spark_starts(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for Java to be told that `--resume` is missing."""
    monkeypatch.setattr("kraftwire.spark.session.local_session", _never)
    source = captures(tmp_path / "in", "sasl")
    run([str(source)], RunOptions(tmp_path / "out"), LocalRunner(), warn=print)
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    capsys.readouterr()
    for at, out, words in (
        (source, "out", "already holds tables"),
        (source, "file", "is a file"),
        (tmp_path / "empty", "new", "there is no file to read"),
    ):
        assert main(["pipeline", "run", str(at), "--out", str(tmp_path / out)]) == USAGE
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1
        assert words in said[0]


def _never(*_: Any, **__: Any) -> Any:
    raise AssertionError("Spark was started")


def test_several_apis_with_commas() -> None:
    """As in `kraftwire decode`."""
    from kraftwire.cli.pipeline import command as pipeline

    assert pipeline._apis(["Vote,fetch", "3"]) == {52, 1, 3}
    assert pipeline._apis([]) is None


def test_exports_hold_every_row(tmp_path: Path) -> None:
    """People with a spreadsheet or jq get the same rows."""
    import csv

    folder = tmp_path / "out"
    source = captures(tmp_path / "in", "quorum")
    run([str(source)], RunOptions(folder), LocalRunner(), warn=print)
    export(folder, "csv")
    export(folder, "jsonl")
    for table in ("exchanges", "raft_exchanges", "files"):
        rows = rows_of(folder, table)
        with open(folder / "csv" / f"{table}.csv", newline="", encoding="utf-8") as file:
            cells = list(csv.DictReader(file))
        lines = (folder / "jsonl" / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()
        objects: list[dict[str, Any]] = list(map(json.loads, lines))
        assert len(cells) == len(objects) == len(rows)
        name = rows[0].keys() & {"position", "size"}
        assert [each[next(iter(name))] for each in objects] == [r[next(iter(name))] for r in rows]


def test_what_to_look_at_first_names_errors_and_bad_input(tmp_path: Path) -> None:
    """Nobody reads twenty tables to find out whether something is wrong."""
    source = captures(tmp_path / "in", "sasl")
    path = source / "sasl.pcap"
    path.write_bytes(path.read_bytes()[:-3])
    run([str(source)], RunOptions(tmp_path / "out"), LocalRunner(), warn=print)
    lines = highlights(tmp_path / "out")
    assert "bad input: file-cut, 1 row" in lines
    assert any("responses with" in line for line in lines)


def test_what_to_look_at_first_names_compressions_that_are_not_read(tmp_path: Path) -> None:
    """A folder of captures that somebody has packed would look like one without Kafka's traffic."""
    source = captures(tmp_path / "in", "sasl")
    data = (source / "sasl.pcap").read_bytes()
    (source / "read.pcap.bz2").write_bytes(bz2.compress(data))
    for name in ("one", "two"):
        (source / f"{name}.pcap.lz4").write_bytes(bytes(cramjam.lz4.compress(data)))
    run([str(source)], RunOptions(tmp_path / "out"), LocalRunner(), warn=print)
    assert [line for line in highlights(tmp_path / "out") if line.startswith("compressed")] == [
        "compressed with lz4, which is not read: 2 files",
    ]
    kinds = {row["kind"]: row for row in rows_of(tmp_path / "out", "files")}
    assert kinds.keys() == {"capture", "lz4"}
    assert kinds["lz4"]["other_bytes"] == kinds["lz4"]["size"]
