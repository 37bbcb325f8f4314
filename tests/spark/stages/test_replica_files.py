"""What the files of replicas say in timeline and anomalies, as in `kraftwire story raft`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kraftwire.controller.check import Contradiction
from kraftwire.decode.files import FileFinding, FileOptions, FileReport, decode_file
from kraftwire.decode.files.folders import walk
from kraftwire.spark.logs import decode_tables
from kraftwire.spark.stages import Tables
from kraftwire.spark.stages.anomalies import RULES
from tests.spark.stages.tables import derived, given, rows_of
from tests.support.logs.directories import IDLE_MS, LogMaker, write_directory
from tests.support.metadata.files import SOUND, WRONG, write_segment, write_snapshot

# The directory of one controller, in which a segment is missing, and the id of its cluster.
GOLDEN = Path(__file__).parents[2] / "golden" / "logs" / "controller"
GOLDEN_CLUSTER = "9CIbsF9FQuGtwD837BRpPA"
NAME = "__cluster_metadata-0"

Rows = list[dict[str, Any]]


def _tables(spark: SparkSession, *folders: Path) -> Tables:
    """The tables of log directories, up to the timeline."""
    rows: dict[str, Rows] = {}
    for path in walk(folders, print):
        for name, table in decode_tables(path).items():
            rows.setdefault(name, []).extend(table.to_pylist())
    return derived(spark, given(spark, **rows), "clusters", "raft_timeline")


def _events(tables: Tables, *kinds: str) -> Rows:
    found = rows_of(tables["raft_timeline"], "raft_timeline")
    return [row for row in found if row["kind"] in kinds]


def _found(tables: Tables, rule: str) -> Rows:
    one = next(each for each in RULES if each.id == rule)
    return rows_of(one.find(tables), "anomalies")


def _cluster(name: str) -> str:
    return f"{name:A<22}"


def _of(cluster: str, rows: Rows) -> Rows:
    return [row for row in rows if row["cluster"] == cluster]


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A directory of each kind that must not be kept, and sound ones."""
    return _strange_directories(tmp_path_factory.mktemp("strange"))


@pytest.fixture(scope="module")
def told(
    spark: SparkSession, strange: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Tables:
    """The directories of many clusters, read at once: each test looks at a cluster of its own."""
    folder = tmp_path_factory.mktemp("directories")
    made = [_silent(folder / "silent"), _unnamed(folder / "unnamed"), *_replicas(folder)]
    return _tables(spark, GOLDEN, *strange, *made)


def test_a_segment_in_the_middle_is_missing(told: Tables) -> None:
    """Epochs come from batches, leader-epoch-checkpoint and quorum-state, each with its source."""
    epochs = _of(GOLDEN_CLUSTER, _events(told, "leader", "epoch", "epoch-known"))
    assert sorted((row["epoch"], row["node"], row["kind"]) for row in epochs) == [
        (1, "2", "leader"), (2, None, "epoch-known"), (3, None, "epoch-known"),
        (4, None, "epoch"), (5, "1", "epoch-known"),
    ]
    assert "quorum-state" in next(row["text"] for row in epochs if row["epoch"] == 5)
    [missing] = _of(GOLDEN_CLUSTER, _found(told, "missing-offsets"))
    assert missing["detail"] == "the metadata log lacks offsets 254 to 992"
    [damaged] = _of(GOLDEN_CLUSTER, _found(told, "damaged-replica"))
    assert damaged["node"] == "3"


def _silent(folder: Path) -> Path:
    """The log of a leader that wrote nothing for ten minutes."""
    log = LogMaker()
    log.leader(1, 1)
    log.idle(1, 20)
    log.time_ms += 600_000 - IDLE_MS
    log.leader(2, 1)
    log.idle(2, 20)
    return write_directory(folder, log, cluster=_cluster("silent"))


def test_a_log_that_is_silent_has_no_leader(told: Tables) -> None:
    """An active controller writes at least every metadata.max.idle.interval.ms."""
    [silence] = _of(_cluster("silent"), _found(told, "silent-leader"))
    assert silence["severity"] == "warning"
    assert 599 <= (silence["end_time"] - silence["time"]).total_seconds() <= 600


def _unnamed(folder: Path) -> Path:
    """A log that begins after its first record; later the clock is set back."""
    log = LogMaker(offset=50)
    log.idle(1, 20)
    log.time_ms += 60_000
    log.idle(1, 20)
    log.time_ms -= 30_000
    log.idle(1, 1)
    return write_directory(folder, log, cluster=_cluster("unnamed"))


def test_a_leader_that_nothing_names_may_fall_silent(told: Tables) -> None:
    """And its clock may be set back."""
    [silence] = _of(_cluster("unnamed"), _found(told, "silent-leader"))
    assert silence["detail"].startswith("the leader, which nothing names, falls silent for 60.5 s")
    [back] = _of(_cluster("unnamed"), _found(told, "clock-back"))
    assert back["detail"].startswith("the record at offset 90 is 29.5 s older than the one before")


def _replicas(folder: Path) -> list[Path]:
    """Three of one cluster, each with another end; the files of the third contradict each other."""
    folders = []
    for node, count in ((1, 10), (2, 14), (3, 4)):
        log = LogMaker()
        log.leader(1, 2)
        log.idle(1, count)
        checkpoint = [(1, 0), (2, 3)] if node == 3 else [(1, 0)]
        folders.append(
            write_directory(
                folder / str(node), log, node=node, cluster=_cluster("replicas"),
                election=(1, 2, 2), checkpoint=checkpoint,
            )
        )  # fmt: skip
    return folders


def test_which_replica_is_the_furthest(told: Tables) -> None:
    """And what the files of a replica contradict."""
    events = _of(_cluster("replicas"), _events(told, "replica-files"))
    replicas = {row["node"]: row["text"] for row in events}
    assert replicas["2"].startswith("furthest: keep it")
    assert replicas["1"] == "behind: may be kept: it fetches the last 4 records"
    [first, *_] = _of(_cluster("replicas"), _found(told, "contradicting-files"))
    assert "leader-epoch-checkpoint" in first["detail"]


def _flipped(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


_NAMES = (
    "sound", "torn", "cut", "zeros", "noise", "inside", "damaged", "unvoted", "unreadable", "gap",
    "lost", "emptied", "leftover", "prefix", "behind a snapshot", "behind its begin",
)  # fmt: skip


def _strange_directories(folder: Path) -> list[Path]:
    """One of each kind that must not be kept, each of a cluster of its own, and a sound one."""
    made = []
    for name in _NAMES:
        log = LogMaker()
        log.leader(1, 2)
        log.idle(1, 4)
        if name == "gap":
            log.skip(7)
        if name in ("prefix", "behind a snapshot", "behind its begin"):
            log = LogMaker(offset=50)
        log.idle(1, 4)
        if name in ("lost", "emptied"):
            log.roll()
        state = None if name == "unvoted" else (1, 2, 2)
        made.append(
            write_directory(
                folder / name, log, cluster=_cluster(name), election=state, checkpoint=[(1, 0)]
            )
        )
    first, last = f"{0:020}.log", f"{9:020}.log"
    _flipped(folder / "torn" / NAME / first, -1)
    path = folder / "cut" / NAME / first
    path.write_bytes(path.read_bytes()[:-20])
    path = folder / "zeros" / NAME / first
    path.write_bytes(path.read_bytes() + bytes(100))
    # A segment that is being deleted is no part of the log, and an empty snapshot covers nothing.
    (folder / "leftover" / NAME / f"{first}.deleted").write_bytes(b"noise" * 40)
    write_snapshot(folder / "behind a snapshot" / NAME, SOUND, 52)
    path = write_snapshot(folder / "behind its begin" / NAME, SOUND, 52)
    path.write_bytes(path.read_bytes()[:-75])  # without the last batch
    (folder / "prefix" / NAME / f"{50:020}-{1:010}.checkpoint").touch()
    path = folder / "noise" / NAME / first
    path.write_bytes(path.read_bytes() + b"noise" * 40)
    path = folder / "inside" / NAME / first
    content = path.read_bytes()
    path.write_bytes(content[:300] + bytes(40) + content[300:])
    _flipped(folder / "damaged" / NAME / first, 300)
    (folder / "unreadable" / NAME / "quorum-state").write_text("{")
    (folder / "lost" / NAME / first).unlink()
    assert (folder / "lost" / NAME / last).stat().st_size == 0
    (folder / "emptied" / NAME / first).write_bytes(b"")
    return made


def test_directories_are_judged_as_in_the_story(told: Tables, strange: list[Path]) -> None:
    """Whatever is wrong with them: the same verdict and the same advice."""
    command = [sys.executable, "-m", "kraftwire", "story", "raft", "--json", *map(str, strange)]
    printed = subprocess.run(command, capture_output=True, check=False, text=True).stdout
    told_of = [e for story in printed.splitlines() for e in json.loads(story)["directories"]]
    expected = {each["folder"]: f"{each['verdict']}: {each['advice']}" for each in told_of}
    assert len(expected) == len(strange)
    clusters = {*map(_cluster, _NAMES)}
    events = [e for e in _events(told, "replica-files") if e["cluster"] in clusters]
    assert {json.loads(row["details"])["folder"]: row["text"] for row in events} == expected
    refused = {
        row["detail"].partition(": ")[0]
        for row in _found(told, "damaged-replica") if row["cluster"] in clusters
    }  # fmt: skip
    sound = {folder for folder, text in expected.items() if "lacks no record" in text}
    kept = {folder for folder, text in expected.items() if "may be kept; a start trunc" in text}
    assert refused == expected.keys() - sound - kept
    assert {Path(each).parent.name for each in sound} == {
        "sound", "leftover", "behind a snapshot",
    }  # fmt: skip
    assert {Path(each).parent.name for each in kept} == {"torn", "cut", "zeros", "noise"}
    unread_bytes = [e for e in _events(told, "unread-bytes") if e["cluster"] in clusters]
    ends = [json.loads(row["details"]) for row in unread_bytes]
    told_ends = [
        {"folder": one["folder"], **{key: unread[key] for key in unread if key != "file"}}
        for one in told_of for unread in one["unread"]
    ]  # fmt: skip
    assert sorted(map(str, ends)) == sorted(map(str, told_ends))
    assert {Path(each["folder"]).parent.name for each in ends} == {
        "torn", "cut", "zeros", "noise", "inside", "damaged",
    }  # fmt: skip


def test_snapshots_are_told_as_in_the_story(spark: SparkSession, tmp_path: Path) -> None:
    """Where the log in front of them was deleted, they are all that is left of it."""
    log = LogMaker(offset=500)
    log.leader(3, 2)
    log.idle(3, 10)
    folders = [
        write_directory(tmp_path / str(node), log, node=node, election=(3, 2, 2)) for node in (1, 2)
    ]
    for folder in (*folders, tmp_path / "3"):
        write_snapshot(folder / NAME, SOUND, 505, 3)
    path = write_snapshot(folders[0] / NAME, SOUND, 507, 3)
    path.write_bytes(path.read_bytes()[:-75])
    command = [sys.executable, "-m", "kraftwire", "story", "raft", "--json", str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, check=False, text=True).stdout
    kinds = ("snapshot-file", "snapshot-written")
    story = [e for e in json.loads(printed)["events"] if e["event"] in kinds]
    told = _events(_tables(spark, tmp_path), *kinds)
    assert sorted((e["event"], e["epoch"], e["text"], str(e["time"])) for e in story) == sorted(
        (row["kind"], row["epoch"], row["text"], str(row["time"].timestamp())) for row in told
    )
    assert len(told) == 4
    assert sum("without its end" in row["text"] for row in told) == 2


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_records_that_contradict_the_log(
    spark: SparkSession, tmp_path: Path, with_snapshot: bool
) -> None:
    """The same findings as decode, at the same places."""
    if with_snapshot:
        write_snapshot(tmp_path / NAME, SOUND, 500)
        write_segment(tmp_path / NAME, WRONG, 500)
    else:
        write_segment(tmp_path / NAME, [*SOUND, *WRONG])
    printed: list[FileFinding] = []
    report = FileReport(printed.append)
    for path in walk([tmp_path], print):
        for _ in decode_file(path, FileOptions(), report):
            pass
    expected = {(e.file, e.position, e.detail) for e in printed if e.id == "contradiction"}
    tables = _tables(spark, tmp_path)
    told = [json.loads(e["details"]) for e in _events(tables, "contradiction")]
    texts = [str(Contradiction(e["offset"], e["record"], e["state"])) for e in told]
    found = _found(tables, "contradicting-metadata")
    places = [(row["file"], row["position"]) for row in found]
    assert {(*place, text) for place, text in zip(places, texts, strict=True)} == expected
    assert not _found(tables, "contradicting-files")
    [row] = _events(tables, "replica-files")
    first = 500 if with_snapshot else len(SOUND)
    assert f"its records contradict each other at offset {first}: no controller" in row["text"]
    assert len(expected) == len(found) == 3


def test_a_log_without_its_beginning_is_not_checked(spark: SparkSession, tmp_path: Path) -> None:
    """The part that was deleted may have had what the records need."""
    write_segment(tmp_path / NAME, WRONG, 500)
    assert not _found(_tables(spark, tmp_path), "contradicting-metadata")
