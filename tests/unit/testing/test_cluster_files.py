"""The files, processes and jars of clusters on this machine, without Java."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.errors import UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.meta_properties import read_meta_properties
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.node.bootstrap import read_bootstrap
from kraftwire.node.config import load
from kraftwire.testing.cluster import cluster, kafka, processes
from kraftwire.testing.cluster.cluster import StoredCluster
from kraftwire.testing.cluster.nodes import ClusterFiles, from_json, to_json
from kraftwire.testing.cluster.processes import Process, start


def start_nothing(
    _: ClusterFiles, starting: Callable[[], AbstractContextManager[None]]
) -> None:
    """In place of `start_all`."""
    with starting():
        pass


def test_a_cluster_is_formatted_for_controllers_and_brokers(tmp_path: Path) -> None:
    """The files are Kafka's, and the state survives the program."""
    files = ClusterFiles.create(tmp_path, None, (3, 2), {"broker.session.timeout.ms": 3000})
    assert [*files.nodes] == [1, 2, 3, 101, 102]
    controller = load(str(files.config(1)))
    assert controller.is_controller
    assert controller.session_timeout_ms == 3000
    for id in files.nodes:
        found = read_meta_properties(LocalFiles(), str(files.place(id) / "data/meta.properties"))
        assert found is not None
        assert found.cluster_id == files.cluster_id
    assert "process.roles=broker\n" in files.config(101).read_text()
    assert "offsets.topic.replication.factor=2\n" in files.config(102).read_text()
    files.jars = tmp_path / "libs"
    again = from_json(tmp_path, json.loads(json.dumps(to_json(files))))
    assert (again.nodes, again.jars) == (files.nodes, files.jars)


def test_only_the_process_that_was_started_is_ended(tmp_path: Path) -> None:
    """An id may meanwhile be that of another process."""
    sleeper = start([sys.executable, "-c", "input(); print('never')"], tmp_path / "log")
    waiter = start(["sleep", "1000"], tmp_path / "log")
    try:
        assert waiter.is_running
        for other in (
            replace(waiter, started=waiter.started + "0"),
            replace(waiter, started=""),
            replace(waiter, argument="100"),
        ):
            other.kill()
            other.send(signal.SIGKILL)
        assert waiter.is_running
        assert os.getsid(waiter.pid) == waiter.pid
    finally:
        waiter.stop(10)
    assert not waiter.is_running
    assert sleeper.wait(10)
    assert "EOF" in (tmp_path / "log").read_text()


def test_a_process_is_known_as_soon_as_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its start and its first step its arguments are not there, and it would count as
    another program; one that has ended by then has none any more."""
    command, early = processes._command, [b"", b"", b""]
    monkeypatch.setattr(
        processes, "_command", lambda pid: early.pop() if early else command(pid)
    )
    waiter = start(["sleep", "1000"], tmp_path / "log")
    try:
        assert waiter.is_running
        assert early == []
    finally:
        waiter.stop(10)
    monkeypatch.setattr(processes, "_command", lambda _: b"")
    assert start(["true"], tmp_path / "log").wait(10)


def test_a_release_in_the_cache_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Maven; what is missing or half there needs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(kafka.JavaMissingError, match="there is no program mvn on the PATH"):
        kafka.fetch(kafka.KAFKA, tmp_path)
    folder = tmp_path / kafka.KAFKA.name
    folder.mkdir()
    with pytest.raises(kafka.JavaMissingError):
        kafka.fetch(kafka.KAFKA, tmp_path)
    (folder / kafka.KAFKA.marker).touch()
    assert kafka.fetch(kafka.KAFKA, tmp_path) == folder


def test_an_artifact_may_have_a_classifier() -> None:
    """As the jars with tests have; the others' text says nothing of one."""
    pom = kafka.Release("1.0", ("org.a:b:1.0:test", "org.a:c:1.0")).pom
    assert "<artifactId>b</artifactId><version>1.0</version><classifier>test</classifier>" in pom
    assert "<artifactId>c</artifactId><version>1.0</version></dependency>" in pom


def test_an_installation_is_recognised_by_its_jar(tmp_path: Path) -> None:
    """The release decides which features a cluster gets."""
    with pytest.raises(UsageError, match="no installation of Kafka"):
        kafka.installed(tmp_path)
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-3.9.2.jar").touch()
    jars = kafka.installed(tmp_path)
    assert kafka.release_in(jars) == "3.9"
    files = ClusterFiles.create(tmp_path / "cluster", jars, (1, 1))
    assert "metadata.version=21" in bootstrap_of(files)
    files = ClusterFiles.create(tmp_path / "newest", None, (1, 1))
    assert "metadata.version=33" in bootstrap_of(files)


def bootstrap_of(files: ClusterFiles) -> set[str]:
    """The features that the first leader will write."""
    found = read_bootstrap(str(files.place(1) / "data"), "__cluster_metadata")
    return {
        f"{record.name}={record.feature_level}"
        for record, _ in found
        if isinstance(record, FeatureLevelRecord)
    }


def test_the_cache_is_where_the_user_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative folder would be another one for each folder in which a command runs."""
    monkeypatch.setenv("HOME", "/my/own")
    for given, folder in (("/var/me", "/var/me"), ("me", "/my/own/.cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert kafka.cache_folder() == Path(folder) / "kraftwire"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert kafka.cache_folder() == Path("/my/own/.cache/kraftwire")


def test_options_for_java_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Kafka's scripts take them; quotes that do not end are told before anything is made."""
    (tmp_path / "kafka_2.13-4.1.2.jar").touch()
    (tmp_path / "java").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KAFKA_HEAP_OPTS", "-Xmx1g")
    monkeypatch.setenv("KAFKA_OPTS", "-Da='b c' -Dd=e")
    assert kafka.java_options() == ["-Xmx1g", "-Da=b c", "-Dd=e"]
    assert kafka.kafka_jars(tmp_path) == tmp_path
    monkeypatch.setenv("KAFKA_OPTS", '-Da="b')
    with pytest.raises(UsageError, match="KAFKA_OPTS of the environment is no list of options"):
        kafka.kafka_jars(tmp_path)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """Nothing is written into it, and nothing is removed from it."""
    (tmp_path / "thesis.tex").touch()
    stored = StoredCluster(tmp_path)
    with pytest.raises(UsageError, match="is not empty"):
        stored.up(None, 1, 0)
    with pytest.raises(UsageError, match="there is no cluster in"):
        stored.down()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_one_start_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    """Two would mix their files, and leave processes that nobody ends."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    stored = StoredCluster(tmp_path)
    with pytest.raises(UsageError, match="another kraftwire cluster up or down is at work in"):
        stored.up(None, 1, 0)
    assert [*tmp_path.iterdir()] == []
    os.close(descriptor)


def test_a_start_that_was_killed_does_not_block_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes are ended, its files removed; a cluster that serves is left alone."""
    folder = tmp_path / "my cluster"
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    old = start([*command, str(folder / "node-1/server.properties")], tmp_path / "log")
    left = ClusterFiles.create(folder, None, (2, 0))
    left.nodes[1] = replace(left.nodes[1], process=old)
    (folder / "cluster.json").write_text(json.dumps(to_json(left) | {"starting": True}))
    (folder / "cluster.new").touch()
    monkeypatch.setattr(cluster, "start_all", start_nothing)
    stored = StoredCluster(folder)
    assert old.is_running
    files = stored.up(None, 1, 0)
    assert not old.is_running
    assert [*files.nodes] == [1]
    assert sorted(path.name for path in folder.iterdir()) == ["cluster.json", "node-1"]
    with pytest.raises(UsageError, match=f"kraftwire cluster down --dir '{folder}'$"):
        stored.up(None, 1, 0)
    stored.down()
    assert not folder.exists()


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids to which signals would be sent; none is."""
    ids: list[int] = []
    monkeypatch.setattr(processes.os, "kill", lambda pid, _: ids.append(pid))
    return ids


# The ids of tests are the same in every process that runs some of them.
@pytest.mark.parametrize(
    "pid",
    [-1, -os.getpid(), 0, 1, os.getppid(), os.getpid()],
    ids=("all", "own group", "none", "init", "parent", "own"),
)
@pytest.mark.parametrize("started", ["", "OWN"])
def test_no_other_process_is_ever_sent_a_signal(pid: int, started: str, killed: list[int]) -> None:
    """An id of -1 means every process of the user, another one below 0 a group of them. Start times
    are known to all, and the command tells another program."""
    if started:
        started = processes._started(abs(pid))
    process = Process(pid, started, "/c/node-1/server.properties")
    assert not process.is_running
    process.stop(1)
    process.kill()
    assert killed == []


def state_of(folder: Path, **changes: object) -> dict[str, object]:
    """A state file's content, with some keys of its node changed."""
    files = ClusterFiles.create(folder, None, (1, 0))
    state = to_json(files)
    state["nodes"][0].update({"pid": os.getppid(), "started": "1"} | changes)
    (folder / "cluster.json").write_text(json.dumps(state))
    return state


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pid": -1}, "pid is not from 1 to"),
        ({"pid": -os.getpid()}, "pid is not from 1 to"),
        ({"pid": 0}, "pid is not from 1 to"),
        ({"pid": True}, "pid is True"),
        ({"pid": 10**4000}, "pid is not from 1 to"),
        ({"pid": "1; rm"}, "pid is '1; rm'"),
        ({"id": "x/../../victim"}, "id is 'x/../../victim'"),
        ({"id": -1}, "id is not from 1 to"),
        ({"id": None}, "id is None"),
        ({"role": "voter"}, "no controller or broker"),
        ({"role": "\x00"}, "role is"),
        ({"role": "broker"}, "node 1 is a broker, and kafka is null"),
        ({"port": 65536}, "port is not from 1 to 65535"),
        ({"started": None}, "started is None"),
        ({"started": "\ud800"}, "started is"),
    ],
)
def test_a_state_file_is_only_data(
    change: dict[str, object],
    words: str,
    tmp_path: Path,
    killed: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What it names is neither ended nor removed unless this cluster can have it, and one line says
    what is wrong (SEC-FILES)."""
    victim, folder = tmp_path / "victim", tmp_path / "c"
    victim.mkdir()
    state_of(folder, **change)
    for command in (["status"], ["kill", "1"], ["restart", "1"], ["down"]):
        assert cli.main(["cluster", *command, "--dir", str(folder)]) == 1
        err = capsys.readouterr().err
        assert f"{folder}/cluster.json: it does not describe a cluster: " in err
        assert words in err
        assert err.count("\n") == 1
    assert victim.is_dir()
    assert (folder / "node-1").is_dir()
    assert killed == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[]", b"{}", b'{"nodes": [1]}', b"[" * 100_000, b" " * (1 << 20) + b" "]
    + [
        b'{"kafka": null, "clusterId": "a", "nodes": %s}' % each
        for each in (b"{}", b"[[]]", b"0", b"[]")
    ],
)  # fmt: skip
def test_odd_state_is_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And never a traceback."""
    (tmp_path / "cluster.json").write_bytes(content)
    assert cli.main(["cluster", "down", "--dir", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert str(tmp_path / "cluster.json") in err


def test_state_that_others_can_have_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The programs that it names would be run."""
    state_of(tmp_path)
    path = tmp_path / "cluster.json"
    path.chmod(0o664)
    assert cli.main(["cluster", "down", "--dir", str(tmp_path)]) == 1
    assert f"{path}: other users can write to it" in capsys.readouterr().err
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cli.main(["cluster", "down", "--dir", str(tmp_path)]) == 1
    assert f"{path}: it is a link" in capsys.readouterr().err


def test_links_in_the_folder_lead_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: list[int]
) -> None:
    """Nothing is written, removed or started through them."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "diary").write_text("dear")
    monkeypatch.setattr(cluster, "start_all", start_nothing)
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "cluster.new").symlink_to(victim / "diary")
    stored = StoredCluster(folder)
    files = stored.up(None, 1, 0)
    assert (folder / "cluster.json").stat().st_mode & 0o777 == 0o600
    (folder / "node-1").rename(tmp_path / "moved")
    (folder / "node-1").symlink_to(victim)
    with pytest.raises(OSError, match="it is a link"):
        files.start(1)
    stored.down()
    assert not folder.exists()
    (tmp_path / "log").symlink_to(victim / "diary")
    with pytest.raises(OSError, match="symbolic links"):
        start(["true"], tmp_path / "log")
    assert (victim / "diary").read_text() == "dear"
    assert killed == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["up", "--dir", "DIR"], "need Java 17 or later: there is no program java on the PATH"),
        (["status", "--dir", "DIR"], "there is no cluster in"),
        (["kill", "1", "--dir", "DIR"], "there is no cluster in"),
        (["up", "--brokers", "-1"], "--brokers"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And exit code 2."""
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = [str(tmp_path / "c") if each == "DIR" else each for each in arguments]
    assert cli.main(["cluster", *chosen]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
