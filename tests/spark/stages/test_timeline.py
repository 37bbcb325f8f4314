"""The Raft timeline of captures equals that of `kraftwire story raft`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kraftwire.spark.captures import decode_tables
from kraftwire.spark.stages import STAGES, Tables
from tests.spark.stages.tables import SECOND, START, derived, given, rows_of
from tests.support.captures.cuts import DAY_S, part, save
from tests.support.captures.decoded import rotated

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "captures" / "a_kraft_quorum.pcapng.xz"
SHIPPED = ROOT / "tests" / "golden" / "captures" / "kraft_quorum.pcapng.xz"
SMALL = ROOT / "tests" / "golden" / "captures" / "quorum.pcap.xz"

KILLED, TERMINATED, HALTED = 1795206424.83, 1795206440.06, 1795206455.14


def _tables(spark: SparkSession, path: Path | list[Path]) -> Tables:
    made = decode_tables(path)
    tables = {**given(spark), **{name: spark.createDataFrame(made[name]) for name in made}}
    return derived(spark, tables, "clusters")


def _timeline(spark: SparkSession, path: Path | list[Path]) -> list[dict[str, Any]]:
    stage = STAGES["raft_timeline"]
    rows = rows_of(stage.make(_tables(spark, path)), "raft_timeline")
    return sorted(rows, key=lambda row: row["time_ns"])


def _told(*paths: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "kraftwire", "story", "raft", *map(str, paths), "--json"]
    # It exits with 3 where a capture has gaps.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    events: list[dict[str, Any]] = json.loads(done.stdout)["events"]
    return events


def _key(time: float, kind: str, epoch: int | None, node: object, text: str) -> tuple[Any, ...]:
    return round(time, 5), kind, epoch, None if node is None else str(node), text


@pytest.fixture(scope="module")
def capture() -> Path:
    """A capture of three controllers with failures on purpose."""
    path = SHARED if SHARED.exists() else SHIPPED
    if not path.exists():
        pytest.skip("the capture of a real quorum is missing")
    return path


@pytest.fixture(scope="module")
def timeline(spark: SparkSession, capture: Path) -> list[dict[str, Any]]:
    """Its timeline."""
    return _timeline(spark, capture)


def test_it_is_the_timeline_of_decode(timeline: list[dict[str, Any]], capture: Path) -> None:
    """Times, kinds, epochs, nodes and words."""
    expected = [
        _key(each["time"], each["event"], each["epoch"], each["node"], each["text"])
        for each in _told(capture)
    ]
    found = [
        _key(each["time_ns"] / 1e9, each["kind"], each["epoch"], each["node"], each["text"])
        for each in timeline
    ]
    assert found == expected


def test_the_five_scripted_events(timeline: list[dict[str, Any]]) -> None:
    """Boot, kill, SIGTERM, pause, and a voter that comes and goes."""
    leaders = [(row["epoch"], row["node"]) for row in timeline if row["kind"] == "leader"]
    assert leaders == [(1, "2"), (2, "3"), (3, "1"), (4, "3")]
    times = [row["time"].timestamp() for row in timeline if row["kind"] == "leader"]
    gaps = [row["text"] for row in timeline if "no leader for" in row["text"]]
    found = [text.rpartition("no leader for ")[2] for text in gaps]
    assert found == ["1.98 s)", "231 ms)", "2.97 s)"]
    for harm, elected in zip((KILLED, TERMINATED, HALTED), times[1:], strict=True):
        assert 0 < elected - harm < 5
    voters = [row["text"][:30] for row in timeline if row["kind"] == "voters"]
    assert voters == [
        "voters are 1, 2, 3 (VotersReco",
        "voters are 1, 2, 3, 4 (4 joine",
        "voters are 1, 2, 3 (4 left, Vo",
    ]
    assert {row["cluster"] for row in timeline} != {None}
    assert all(row["file"] for row in timeline)


def test_captures_of_two_days_are_told_as_by_the_command_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    """No silence and no time without a leader where nothing was recorded."""
    paths = [
        save(tmp_path / "first.pcap", part(0, 12)),
        save(tmp_path / "second.pcap", part(380, 390, shift=2 * DAY_S)),
    ]
    found = _timeline(spark, paths)
    expected = [
        _key(each["time"], each["event"], each["epoch"], each["node"], each["text"])
        for each in _told(*paths)
    ]
    assert [
        _key(each["time_ns"] / 1e9, each["kind"], each["epoch"], each["node"], each["text"])
        for each in found
    ] == expected
    kinds = [row["kind"] for row in found]
    assert kinds.count("not-recorded") == 1
    assert "silence" not in kinds
    first, second = (json.loads(row["details"]) for row in found if row["kind"] == "leader")
    assert first["ending"] == "leads to the end of the recording"
    assert (first["leaderless"], second["end"]) == (None, None)


def _elsewhere(row: dict[str, Any]) -> dict[str, Any]:
    """The same of another cluster, on other hosts."""
    ends = [f"x{end}" for end in row["connection"].split("-")]
    moved = {**row, "cluster": row["cluster"] and "other", "connection": "-".join(ends)}
    if "server" in row:
        moved |= {"client": ends[0], "server": ends[1]}
    return moved


def test_two_clusters_are_two_stories(spark: SparkSession) -> None:
    """The same exchanges under another id and on other hosts, at the same time."""
    made = decode_tables(str(SMALL))
    both = {}
    for name in ("raft_exchanges", "connections"):
        rows = made[name].to_pylist()
        both[name] = rows + [_elsewhere(row) for row in rows]
    tables = derived(spark, given(spark, **both), "clusters")
    found = rows_of(STAGES["raft_timeline"].make(tables), "raft_timeline")
    clusters = {row["cluster"] for row in found}
    assert len(clusters) == 2
    stories = [
        sorted((row["time_ns"], row["kind"]) for row in found if row["cluster"] == each)
        for each in clusters
    ]
    assert stories[0] == stories[1]


def test_the_log_alone_names_its_leaders(spark: SparkSession) -> None:
    """Batches of two log directories, without any capture: each leader is shown once."""
    batches, records = [], []
    for folder in ("a", "b"):
        for offset, epoch in ((0, 1), (5, 2)):
            place = {"file": f"{folder}/0.log", "position": offset}
            time = (START + offset * SECOND) // 1000
            batches.append(
                {
                    **place, "topic": "__cluster_metadata", "partition": 0, "source": "log",
                    "base_offset": offset, "last_offset": offset + 4, "leader_epoch": epoch,
                    "is_valid": True, "is_control": True, "max_timestamp": time,
                }
            )
            data = {"version": 0, "leaderId": 7 + epoch, "voters": [], "grantingVoters": []}
            records.append(
                {
                    **place, "topic": "__cluster_metadata", "partition": 0, "offset": offset,
                    "epoch": epoch, "time": time, "type": "LeaderChangeMessage", "version": 0,
                    "data": json.dumps(data),
                }
            )
    stage = STAGES["raft_timeline"]
    found = rows_of(stage.make(given(spark, batches=batches, metadata_records=records)), stage.name)
    told = sorted(
        (row["epoch"], row["node"], row["time_ns"] - START)
        for row in found
        if row["kind"] == "leader"
    )
    assert told == [(1, "8", 0), (2, "9", 5 * SECOND)]


def test_a_rotated_recording_tells_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """A response is often in a later file than its request, and with it records of voters."""
    files = rotated(tmp_path / "in", 9)
    frames = {
        (row["file"], row["position"])
        for name in ("frames", "connections")
        for row in decode_tables(files)[name].to_pylist()
    }
    told, whole = _timeline(spark, files), _timeline(spark, SMALL)
    places = {(row.pop("file"), row.pop("position")) for row in told}
    assert places <= frames | {(None, None)}
    for row in whole:
        del row["file"], row["position"]
    assert told == whole
