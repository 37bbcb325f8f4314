"""`kraftwire perf` as a program: what it runs, prints, refuses, and leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.log.files import LocalFiles
from kraftwire.log.meta_properties import MetaProperties, write_meta_properties
from kraftwire.log.uuids import random_uuid
from kraftwire.wire.json_form import uuid_to_text

_ID = "hwDlIK5BSPidpHwFaUr4mA"


def _config(folder: Path) -> Path:
    path = folder / "node.properties"
    path.write_text(
        "node.id=1\nlisteners=CONTROLLER://127.0.0.1:0\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.voters=1@127.0.0.1:9\nlog.dirs={folder / 'log'}\n"
    )
    return path


@pytest.mark.slow
def test_one_node_measures_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole run: process, election, load, figures, end."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-m", "kraftwire", "perf", "--nodes", "1", "--json"]
    options = ["--throughput", "2000", "--record-size", "100", "--duration", "2.5"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert figures, done.stderr
    assert all(line["recordSize"] == 100 for line in figures)
    assert sum(line["records"] for line in figures) == sum(
        sum(line["histogramMs"].values()) for line in figures
    )
    assert list(tmp_path.iterdir()) == []


def test_a_node_keeps_the_directory_id_that_it_is_given(tmp_path: Path) -> None:
    """Kafka's test server takes one, so ours does too."""
    command = [sys.executable, "-m", "kraftwire", "perf", "--config", str(_config(tmp_path))]
    options = ["--replica-directory-id", _ID, "--duration", "0.1"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    properties = (tmp_path / "log" / "meta.properties").read_text()
    assert f"directory.id={_ID}" in properties
    assert f"cluster.id={'A' * 22}" in properties
    assert (tmp_path / "log" / "__raft_performance_test-0").is_dir()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "either --config FILE or --nodes N"),
        (("--nodes", "1", "--config", "x"), "either --config FILE or --nodes N"),
        (("--nodes", "1", "--replica-directory-id", _ID), "applies to one node"),
        (("--config", "x", "--replica-directory-id", "y"), "is not a uuid"),
        (("--config", "x", "--replica-directory-id", "A" * 22), "is not a uuid"),
        (("--nodes", "0"), "--nodes"),
        (("--nodes", "1", "--throughput", "0"), "--throughput"),
        (("--nodes", "1", "--record-size", "0"), "--record-size"),
        (("--nodes", "1", "--duration", "0"), "--duration"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is started before the command line is valid."""
    assert cli.main(["perf", *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_a_directory_of_another_cluster_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Zeros must not fill the log directory of a node that is in use."""
    folder = tmp_path / "log"
    folder.mkdir()
    meta = MetaProperties(_ID, 1, random_uuid())
    write_meta_properties(LocalFiles(), str(folder / "meta.properties"), meta)
    assert cli.main(["perf", "--config", str(_config(tmp_path))]) == 2
    assert f"is that of cluster {_ID}" in capsys.readouterr().err


def test_another_directory_id_than_the_stored_one_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replica that changes its id in place is another replica to its peers."""
    folder = tmp_path / "log"
    folder.mkdir()
    stored = random_uuid()
    meta = MetaProperties("A" * 22, 1, stored)
    write_meta_properties(LocalFiles(), str(folder / "meta.properties"), meta)
    arguments = ["perf", "--config", str(_config(tmp_path)), "--replica-directory-id", _ID]
    assert cli.main(arguments) == 2
    assert uuid_to_text(stored) in capsys.readouterr().err
