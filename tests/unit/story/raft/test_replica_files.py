"""What log directories say of epochs and leaders beyond LeaderChange records."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraftwire.cli.main import main
from kraftwire.decode.files import FileOptions, FileReport, decode_file, open_source, walk
from kraftwire.inspect.stories.raft import RaftWriter
from tests.support.logs.directories import CLUSTER, START_MS, LogMaker, write_directory
from tests.support.metadata.files import SOUND, write_snapshot

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "logs" / "controller"
START = START_MS / 1000


def _text(*paths: Path, as_json: bool = False) -> str:
    stream = io.StringIO()
    sink = RaftWriter(stream, as_json=as_json)
    report = FileReport(sink.file_finding)
    for path in walk(list(paths), print):
        with open_source(path) as source:
            sink.begin_file(str(path), source.kind)
        for line in decode_file(path, FileOptions(), report):
            sink.file_line(line)
    sink.finish()
    return stream.getvalue()


def _stories(*paths: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _text(*paths, as_json=True).splitlines()]


def _story(*paths: Path) -> dict[str, Any]:
    (story,) = _stories(*paths)
    return story


def _epochs(story: dict[str, Any]) -> list[tuple[int, int | None, int | None, int | None]]:
    return [(e["epoch"], e["leader"], e["startOffset"], e["endOffset"]) for e in story["leaders"]]


def _whole(*, epochs: int = 2, length: int = 10) -> LogMaker:
    log = LogMaker()
    for epoch in range(1, epochs + 1):
        log.leader(epoch, epoch)
        log.idle(epoch, length)
    return log


# -- silence ---------------------------------------------------------------------------------------


def test_silence_of_the_log_is_silence_of_the_leader(tmp_path: Path) -> None:
    """An active controller writes every half second; one that is dead for minutes does not lead."""
    log = LogMaker()
    log.leader(1, 1)
    log.idle(1, 20)
    log.time_ms += 600_000
    log.leader(2, 1)
    log.idle(2, 20)
    folder = write_directory(tmp_path / "d", log)
    first, second = _story(folder)["leaders"]
    assert (first["from"], first["to"], first["ending"]) == (START, START + 10, "fell silent")
    assert (second["from"], second["to"], second["ending"]) == (START + 610, None, "the log ends")
    (silence,) = (each for each in _story(folder)["events"] if each["event"] == "silence")
    assert (silence["time"], silence["seconds"], silence["epoch"]) == (START + 10, 600, 1)
    assert "no leader for 10 min 00 s" in _text(folder)


def test_a_leader_that_pauses_and_goes_on_is_silent_in_between(tmp_path: Path) -> None:
    """A controller alone keeps its epoch, for instance when its machine is suspended."""
    log = _whole(epochs=1)
    log.time_ms += 30_000
    log.idle(1, 10)
    story = _story(write_directory(tmp_path / "d", log))
    assert [each["ending"] for each in story["leaders"]] == ["the log ends"]
    (silence,) = (each for each in story["events"] if each["event"] == "silence")
    assert silence["seconds"] == 30.5


def test_the_usual_interval_decides_what_silence_is(tmp_path: Path) -> None:
    """metadata.max.idle.interval.ms may be ten seconds."""
    log = LogMaker()
    log.leader(1, 1)
    for _ in range(10):
        log.time_ms += 9_500
        log.idle(1, 1)
    story = _story(write_directory(tmp_path / "d", log))
    assert not [each for each in story["events"] if each["event"] == "silence"]


def test_without_idle_records_nothing_is_known_of_silence(tmp_path: Path) -> None:
    """Before metadata.version 3.3-IV1 a controller without changes wrote nothing."""
    log = LogMaker()
    log.leader(1, 1)
    log.time_ms += 3_600_000
    log.leader(2, 2)
    story = _story(write_directory(tmp_path / "d", log))
    assert not [each for each in story["events"] if each["event"] == "silence"]
    assert story["leaders"][0]["ending"] == "2 took over"


def test_missing_offsets_are_no_silence(tmp_path: Path) -> None:
    """What was written there is not known."""
    log = _whole(epochs=1)
    log.time_ms += 600_000
    log.skip(1200)
    log.idle(1, 10)
    story = _story(write_directory(tmp_path / "d", log))
    assert not [each for each in story["events"] if each["event"] == "silence"]
    assert story["log"]["missing"] == [{"first": 11, "last": 1210}]


# -- epochs ----------------------------------------------------------------------------------------


def test_every_file_of_a_replica_is_evidence() -> None:
    """A segment is missing: batches, the checkpoint, a snapshot and quorum-state know the rest."""
    story = _story(GOLDEN)
    assert _epochs(story) == [
        (1, 2, 0, 810), (2, None, 810, 848), (3, None, 848, 878), (4, None, 878, 1168),
        (5, 1, None, None),
    ]
    assert story["leaders"][3]["sources"] == ["leader-epoch-checkpoint", "snapshot", "batches"]
    assert story["leaders"][3]["begins"] == "in missing offsets"
    assert story["leaders"][4]["sources"] == ["quorum-state"]
    assert story["log"]["missing"] == [{"first": 254, "last": 992}]
    lines = _text(GOLDEN).splitlines()
    said = "What the metadata log said: offsets 0 to 1167; missing: 254 to 992; 323 batches"
    assert said in lines
    text = " ".join(" ".join(lines).split())
    assert "leads to the end" not in text
    assert "must not be kept: it lacks offsets 254 to 992" in text


def test_a_log_whose_prefix_was_deleted_has_its_epochs(tmp_path: Path) -> None:
    """Every log in production begins after a snapshot."""
    folder = tmp_path / "d"
    shutil.copytree(GOLDEN, folder)
    partition = folder / "__cluster_metadata-0"
    for path in [folder / "bootstrap.checkpoint", *partition.glob("00000000000000000000*")]:
        path.unlink()
    (partition / "leader-epoch-checkpoint").unlink()
    story = _story(folder)
    assert _epochs(story) == [(4, None, None, 1168), (5, 1, None, None)]
    assert story["leaders"][0]["begins"] == "before the log"
    assert story["directories"][0]["missing"] == []
    text = _text(folder)
    assert "from before the log begins" in text
    assert "before +0.000" in text


def test_a_replica_that_loaded_a_snapshot_has_its_epoch(tmp_path: Path) -> None:
    """Its log is empty, and begins where the snapshot ends."""
    folder = write_directory(tmp_path / "d", LogMaker(), election=(7, 2, -1))
    name = "00000000000000001156-0000000004.checkpoint"
    source = GOLDEN / "__cluster_metadata-0" / name
    shutil.copy(source, folder / "__cluster_metadata-0")
    story = _story(folder)
    assert _epochs(story) == [(4, None, None, None), (7, 2, None, None)]
    first, last = story["leaders"]
    assert (first["begins"], first["ending"]) == ("before the log", "before epoch 7")
    assert first["from"] is not None  # the snapshot's header has the time of the last record
    assert last["from"] is None
    assert not [each for each in story["events"] if each["event"] == "epoch"]
    (directory,) = story["directories"]
    assert (directory["endOffset"], directory["lastEpoch"]) == (1156, 4)


def test_quorum_state_alone_names_a_leader(tmp_path: Path) -> None:
    """A node that was elected and wrote nothing before the disaster."""
    story = _story(write_directory(tmp_path / "d", LogMaker(), election=(3, 2, 2)))
    assert _epochs(story) == [(3, 2, None, None)]
    assert story["leaders"][0]["seenIn"] == "quorum-state"


# -- contradictions --------------------------------------------------------------------------------


def test_a_checkpoint_that_contradicts_batches_is_reported(tmp_path: Path) -> None:
    """Kafka keeps them equal; a difference is damage, or another log's file."""
    folder = write_directory(tmp_path / "d", _whole(), checkpoint=[(1, 0), (2, 5)])
    (text,) = _story(folder)["contradictions"]
    assert text.endswith(
        "leader-epoch-checkpoint puts offset 5 into epoch 2, and the batch there has epoch 1"
    )
    assert "contradiction: " in " ".join(_text(folder).split()) + " "


def test_a_quorum_state_that_is_older_than_the_log_is_reported(tmp_path: Path) -> None:
    """A node with it could vote twice in an epoch."""
    folder = write_directory(tmp_path / "d", _whole(), election=(1, 1, 1))
    (text,) = _story(folder)["contradictions"]
    assert text.endswith("quorum-state is in epoch 1, which is older than epoch 2 of the log")


def test_two_leaders_of_an_epoch_are_reported(tmp_path: Path) -> None:
    """The record of the log says 2, the node's own file 3."""
    folder = write_directory(tmp_path / "d", _whole(), election=(2, 3, -1))
    assert _story(folder)["contradictions"] == [
        "quorum-state says that 3 leads epoch 2, and LeaderChange says 2"
    ]


def test_epochs_that_go_back_are_reported(tmp_path: Path) -> None:
    """No leader appends with an older epoch."""
    log = _whole()
    log.idle(1, 5)
    story = _story(write_directory(tmp_path / "d", log))
    (text,) = story["contradictions"]
    assert text.endswith(
        "the batch at offset 22 has epoch 1, and batches before it have epoch 2"
    )
    (directory,) = story["directories"]
    assert directory["verdict"] == "damaged"
    assert "the batch at offset 22 has an earlier epoch" in directory["advice"]


def test_leaders_of_epochs_that_go_back_are_named(tmp_path: Path) -> None:
    """The record that names a leader is evidence wherever it is; its offsets are not."""
    log = _whole(epochs=1)
    log.leader(5, 1)
    log.leader(4, 3)
    log.idle(4, 3)
    folder = write_directory(tmp_path / "d", log)
    assert _epochs(_story(folder)) == [(1, 1, 0, 11), (4, 3, 12, None), (5, 1, 11, 12)]


def test_an_epoch_that_only_one_replica_has_is_told_in_any_order(tmp_path: Path) -> None:
    """Its leader wrote, and died before it was followed; a later epoch replaced the records."""
    lone, other = _whole(), _whole(epochs=1)
    other.time_ms += 30_000
    other.leader(3, 3)
    other.idle(3, 10)
    paths = [
        write_directory(tmp_path / "a" / "n2", lone, node=2),
        write_directory(tmp_path / "a" / "n3", other, node=3),
    ]
    told = [_story(*order) for order in (paths, paths[::-1])]
    for story in told:
        assert _epochs(story) == [(1, 1, 0, 11), (2, 2, 11, 11), (3, 3, 11, 22)]
        # It lived until its last record, which no log will keep.
        silence = next(e for e in story["events"] if e["event"] == "silence")
        assert (silence["epoch"], silence["node"], silence["seconds"]) == (2, 2, 25.0)
    assert "none left" in _text(*paths)


def test_two_leaders_of_an_epoch_in_two_logs_are_reported(tmp_path: Path) -> None:
    """Nobody can say which of two equal logs is right, but they are not the same."""
    logs = [_whole(epochs=1), _whole(epochs=1)]
    for node, log in enumerate(logs, 1):
        log.leader(2, node)
        log.idle(2, 4)
    folders = [
        write_directory(tmp_path / str(node), log, node=node) for node, log in enumerate(logs, 1)
    ]
    story = _story(*folders)
    assert "LeaderChange of epoch 2 names 1 in the log of node 1, and 2 in that of node 2" in (
        story["contradictions"]
    )
    assert [each["event"] for each in story["events"]].count("conflict") == 1
    assert _verdicts(story) == [(1, "furthest"), (2, "diverges")]
    assert story["leaders"][1]["grantingVoters"] == [1], "of the leader that is shown"


def test_checkpoints_that_contradict_each_other_are_reported(tmp_path: Path) -> None:
    """The first entry may differ: a log whose start was deleted begins its first epoch later."""
    folders = [
        write_directory(tmp_path / "1", _whole(), node=1, checkpoint=[(1, 0), (2, 11)]),
        write_directory(tmp_path / "2", _whole(), node=2, checkpoint=[(1, 5), (2, 9), (3, 22)]),
    ]
    assert [text for text in _story(*folders)["contradictions"] if text.startswith("leader-")] == [
        "leader-epoch-checkpoint of node 1 begins epoch 2 at offset 11, that of node 2 at 9"
    ]


def test_times_that_go_back_are_told_and_end_no_epoch(tmp_path: Path) -> None:
    """A clock was set, or is wrong on one of the nodes."""
    log = _whole(epochs=1)
    log.time_ms -= 500_000
    log.leader(2, 2)
    log.idle(2, 10)
    story = _story(write_directory(tmp_path / "d", log))
    (event,) = [each for each in story["events"] if each["event"] == "clock"]
    assert (event["offset"], event["seconds"]) == (11, 500.0)
    assert [each["to"] for each in story["leaders"]] == [None, None]


def test_an_epoch_without_records_has_no_offsets(tmp_path: Path) -> None:
    """A range that ends before it begins is not shown."""
    log = LogMaker()
    log.leader(2, 2)
    log.idle(2, 5)
    folder = write_directory(tmp_path / "d", log, checkpoint=[(1, 0), (2, 0)])
    assert "to -1" not in _text(folder)


def test_files_without_a_time_have_no_beginning(tmp_path: Path) -> None:
    """1970 would be an invention."""
    folder = write_directory(
        tmp_path / "d", LogMaker(), election=(8, 2, -1), checkpoint=[(7, 400)]
    )
    text = _text(folder)
    assert "no file here has a time" in text
    assert "1970" not in text
    assert "no record; quorum-state: epoch 8, leader 2" in text


def test_the_newest_snapshot_stands_for_the_log(tmp_path: Path) -> None:
    """Not the one that is read last."""
    shutil.copytree(GOLDEN, tmp_path / "a")
    for path in (tmp_path / "a" / "__cluster_metadata-0").iterdir():
        if path.suffix != ".checkpoint":
            path.unlink()
    older = tmp_path / "b" / "__cluster_metadata-0"
    older.mkdir(parents=True)
    name = "00000000000000000000-0000000000.checkpoint"
    shutil.copy(GOLDEN / "__cluster_metadata-0" / name, older / name)
    assert _story(tmp_path / "a", tmp_path / "b")["log"]["snapshot"] == "snapshot 1156-4"


def test_a_table_of_a_long_story_has_times_of_day_in_one_line_a_row(tmp_path: Path) -> None:
    """A moment can be found in other logs, and a row is a row."""
    log = LogMaker()
    for day in range(3):
        log.time_ms = START_MS + day * 86_400_000
        log.leader(day + 1, day + 1)
    lines = _text(write_directory(tmp_path / "d", log)).splitlines()
    at = lines.index("Who led when (UTC, 2025)")
    assert lines[at + 2 : at + 5] == [
        "    1       1  10-09 08:53:20  10-10 08:53:20  1         0 to 0   2 took over",
        "    2       2  10-10 08:53:20  10-11 08:53:20  2         1 to 1   3 took over",
        "    3       3  10-11 08:53:20                  3         2 to 2   the log ends",
    ]


def test_files_that_agree_are_not_reported(tmp_path: Path) -> None:
    """The usual case."""
    folder = write_directory(
        tmp_path / "d", _whole(), election=(2, 2, 2), checkpoint=[(1, 0), (2, 11)]
    )
    story = _story(folder)
    assert story["contradictions"] == []
    assert _epochs(story) == [(1, 1, 0, 11), (2, 2, 11, 22)]


# -- damage ----------------------------------------------------------------------------------------


def _damage(folder: Path, at: int) -> None:
    """Change a byte of the values in the first segment."""
    path = folder / "__cluster_metadata-0" / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def test_a_damaged_batch_that_others_follow_is_a_reason_not_to_keep(tmp_path: Path) -> None:
    """The epochs are there, and yet the replica lacks what it acknowledged."""
    folder = write_directory(tmp_path / "a", _whole(), node=1, election=(2, 2, 2))
    sound = write_directory(tmp_path / "b", _whole(), node=2, election=(2, 2, 2))
    _damage(folder, 900)
    story = _story(folder, sound)
    assert _verdicts(story) == [(2, "furthest"), (1, "damaged")]
    assert story["directories"][1]["damagedAt"] == 11
    assert "the checksum of the batch at offset 11 is wrong" in story["directories"][1]["advice"]


def test_a_torn_last_batch_is_no_damage(tmp_path: Path) -> None:
    """A crash leaves it, and the next start truncates it."""
    folder = write_directory(tmp_path / "a", _whole(), election=(2, 2, 2))
    path = folder / "__cluster_metadata-0" / f"{0:020}.log"
    _damage(folder, path.stat().st_size - 1)
    (directory,) = _story(folder)["directories"]
    assert (directory["verdict"], directory["damagedAt"]) == ("furthest", 21)
    assert directory["endOffset"] == 21
    path.write_bytes(path.read_bytes()[:-10])
    (directory,) = _story(folder)["directories"]
    assert (directory["verdict"], directory["endOffset"]) == ("furthest", 21)


def _cut(content: bytes) -> bytes:
    return content[:-10]


def _crash(content: bytes) -> bytes:
    return content[:-1] + b"?"


def _preallocate(content: bytes) -> bytes:
    return content + bytes(512)


@pytest.mark.parametrize(
    ("change", "finding", "text"),
    [
        (_cut, "batch-cut", "after offset 20, are the beginning of a batch"),
        (_crash, "batch-crc", "after offset 20, hold a batch with a wrong checksum"),
        (_preallocate, "zero-tail", "512 bytes from position {at:,} on, after offset 21, are"),
        (lambda _: bytes(512), "zero-tail", "512 bytes from position 0 on are zeros, with which"),
    ],
)
def test_the_end_of_a_log_that_is_no_whole_batch_is_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[bytes], bytes],
    finding: str,
    text: str,
) -> None:
    """A crash leaves it: the story says where it begins, and how long it is."""
    folder = write_directory(tmp_path / "a", _whole(), election=(2, 2, 2))
    path = folder / "__cluster_metadata-0" / f"{0:020}.log"
    content = path.read_bytes()
    path.write_bytes(change(content))
    assert main(["story", "raft", str(folder), "--json"]) in (0, 3)
    (directory,) = json.loads(capsys.readouterr().out)["directories"]
    (unread,) = directory["unread"]
    assert (unread["finding"], unread["file"]) == (finding, path.name)
    assert unread["position"] + unread["size"] == path.stat().st_size
    main(["story", "raft", str(folder)])
    shown = " ".join(capsys.readouterr().out.split())
    assert text.format(at=len(content)) in shown
    if unread["position"]:
        truncated = f"a start truncates its end after offset {directory['endOffset'] - 1}, "
        assert f"may be kept; {truncated}{unread['size']} bytes that are no whole batch" in shown
    assert "lacks no record" not in shown


def test_a_torn_log_is_not_the_furthest_for_its_torn_batch(tmp_path: Path) -> None:
    """A start truncates it: the replica with the same records and one more is further."""
    torn = write_directory(tmp_path / "a", _whole(), node=1, election=(2, 2, 2))
    _damage(torn, (torn / "__cluster_metadata-0" / f"{0:020}.log").stat().st_size - 1)
    sound = write_directory(tmp_path / "b", _whole(), node=2, election=(2, 2, 2))
    story = _story(torn, sound)
    assert _verdicts(story) == [(2, "furthest"), (1, "behind")]
    advice = story["directories"][1]["advice"]
    assert advice.startswith("may be kept: it fetches the last 1 records; a start truncates its")


@pytest.mark.parametrize("state", ["deleted", "cleaned", "swap"])
def test_a_segment_on_its_way_is_no_part_of_the_log(tmp_path: Path, state: str) -> None:
    """A start removes such files: neither their records nor their ends count."""
    folder = write_directory(tmp_path / "a", _whole(), election=(2, 2, 2))
    log = LogMaker(offset=22)
    log.idle(2, 5)
    path = folder / "__cluster_metadata-0" / f"{22:020}.log.{state}"
    path.write_bytes(log.segments[22][:-10])
    (directory,) = _story(folder)["directories"]
    assert (directory["endOffset"], directory["unread"]) == (22, [])
    assert directory["advice"] == "lacks no record"


@pytest.mark.parametrize("base", [22, 500])
def test_the_name_of_a_segment_says_what_is_missing(tmp_path: Path, base: int) -> None:
    """A segment without a batch still says where it begins."""
    folder = write_directory(tmp_path / "a", _whole(), election=(2, 2, 2))
    (folder / "__cluster_metadata-0" / f"{base:020}.log").touch()
    (directory,) = _story(folder)["directories"]
    missing = [{"first": 22, "last": 499}] if base == 500 else []
    assert (directory["missing"], directory["verdict"]) == (
        missing, "damaged" if missing else "furthest"
    )


def test_a_quorum_state_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    """The file is there; what it said of votes is lost."""
    folder = write_directory(tmp_path / "a", _whole())
    (folder / "__cluster_metadata-0" / "quorum-state").write_text('{"leaderId":')
    text = " ".join(_text(folder).split())
    assert "quorum-state cannot be read" in text
    assert "no quorum-state" not in text
    wanted = "lacks no record; its quorum-state cannot be read, without which it may vote twice"
    assert wanted in text


def test_a_directory_on_which_no_node_starts_is_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One code judges directories, also those below the folder that is named."""
    write_directory(tmp_path / "a", _whole(), node=1)
    write_directory(tmp_path / "b", _whole(length=8), node=2, election=(2, 2, 2))
    assert main(["story", "raft", str(tmp_path), "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert _verdicts(story)[1:] == [(1, "refused")]
    assert "quorum-state" in story["directories"][1]["refusal"]
    assert "no node starts on it" in story["directories"][1]["advice"]


# -- several directories ---------------------------------------------------------------------------


def _verdicts(story: dict[str, Any]) -> list[tuple[int | None, str]]:
    return [(each["node"], each["verdict"]) for each in story["directories"]]


def test_the_furthest_replica_and_those_behind_it(tmp_path: Path) -> None:
    """After a disaster: the later epoch wins, then the higher offset, as in an election."""
    short = _whole(epochs=1, length=30)
    furthest = write_directory(tmp_path / "a", _whole(), node=1, election=(2, 2, 2))
    behind = LogMaker()
    behind.leader(1, 1)
    behind.idle(1, 5)
    folders = [
        write_directory(tmp_path / "b", behind, node=2, election=(2, -1, 2)),
        write_directory(tmp_path / "c", short, node=3, election=(1, 1, 1)),
        furthest,
    ]
    story = _story(*folders)
    assert _verdicts(story) == [(1, "furthest"), (3, "diverges"), (2, "behind")]
    assert story["directories"][1]["divergesAt"] == 11
    text = " ".join(_text(*folders).split())
    assert "may be kept: 20 records from offset 11 on are not in the log of node 1" in text
    assert "may be kept: it fetches the last 16 records" in text
    assert "quorum-state: epoch 2, no leader, voted for 2" in text
    assert max(map(len, _text(*folders).splitlines()[-30:])) <= 110


def test_a_diverging_log_does_not_change_the_story_of_the_quorum(tmp_path: Path) -> None:
    """Whatever the order of the directories, its records are not told as the log's."""
    stale = _whole(epochs=1, length=30)
    folders = [
        write_directory(tmp_path / "a", stale, node=1),
        write_directory(tmp_path / "b", _whole(), node=2),
    ]
    forth, back = _story(*folders), _story(*reversed(folders))
    assert _epochs(forth) == _epochs(back) == [(1, 1, 0, 11), (2, 2, 11, 22)]


def test_another_replica_has_what_is_missing(tmp_path: Path) -> None:
    """The story of the log is whole, and the damaged directory still is not kept."""
    damaged = LogMaker()
    damaged.leader(1, 1)
    damaged.idle(1, 3)
    damaged.skip(2)
    damaged.time_ms = START_MS + 2500
    damaged.idle(1, 5)
    folders = [
        write_directory(tmp_path / "a", damaged, node=1),
        write_directory(tmp_path / "b", _whole(epochs=1, length=10), node=2),
    ]
    story = _story(*folders)
    assert story["log"]["missing"] == []
    assert story["log"]["batches"] == 11
    assert _verdicts(story) == [(2, "furthest"), (1, "damaged")]


def test_an_older_copy_of_a_replica_must_not_be_kept(tmp_path: Path) -> None:
    """A disk that is restored from a backup forgets what it acknowledged, and its votes."""
    now = write_directory(tmp_path / "now", _whole(), election=(2, 2, 2))
    old = write_directory(tmp_path / "old", _whole(epochs=1), election=(1, 1, 1))
    same = tmp_path / "same"
    shutil.copytree(now, same)
    story = _story(now, old, same)
    assert [each["verdict"] for each in story["directories"]] == ["furthest", "copy", "older copy"]
    assert "must not be kept" in story["directories"][2]["advice"]


def test_clusters_are_told_apart(tmp_path: Path) -> None:
    """Their logs have nothing to do with each other."""
    one = write_directory(tmp_path / "a", _whole(), cluster="A" * 22)
    other = write_directory(tmp_path / "b", _whole(epochs=3), cluster="B" * 22)
    stories = _stories(one, other)
    assert [(story["cluster"], len(story["leaders"])) for story in stories] == [
        ("A" * 22, 2), ("B" * 22, 3)
    ]


@pytest.mark.parametrize("node", [1, None])
def test_a_directory_without_state_files_is_told_from_its_log(
    tmp_path: Path, node: int | None
) -> None:
    """Files that somebody sent."""
    story = _story(write_directory(tmp_path / "d", _whole(), node=node))
    assert _epochs(story) == [(1, 1, 0, 11), (2, 2, 11, 22)]
    assert story["directories"][0]["quorumState"] is None


def test_votes_of_an_epoch_without_a_leader_are_put_together(tmp_path: Path) -> None:
    """Node 3 may have been elected, and its log may have more than those that are left."""
    folders = [
        write_directory(tmp_path / str(node), _whole(), node=node, election=(3, -1, 3))
        for node in (1, 2)
    ]
    story = _story(*folders)
    assert story["leaders"][-1]["votes"] == {"1": 3, "2": 3}
    assert story["majority"] == {"voters": [1, 2, 3], "kept": [1, 2], "needed": 2}
    text = " ".join(_text(*folders).split())
    assert "nothing here names its leader; votes in quorum-state: 1 for 3, 2 for 3" in text
    assert "of voters 1, 2, 3 the directories of 1, 2 may be kept: a majority" in text


def test_a_lost_majority_is_said(tmp_path: Path) -> None:
    """One of three voters is left, beside an observer."""
    folders = [
        write_directory(tmp_path / str(node), _whole(), node=node, election=(2, 2, -1))
        for node in (1, 9)
    ]
    text = " ".join(_text(*folders).split())
    assert "only that of 1 may be kept: no majority; see kraftwire storage recover" in text
    assert "not among the newest voters" in text


def test_voters_come_from_the_snapshot_where_the_log_begins_later(tmp_path: Path) -> None:
    """As everywhere in production. A voter has the directory id that the record names."""
    folder = tmp_path / "d"
    shutil.copytree(GOLDEN, folder)
    for path in (folder / "__cluster_metadata-0").glob("00000000000000000000*"):
        path.unlink()
    story = _story(folder)
    assert story["majority"]["voters"] == [1, 2, 3]
    assert story["directories"][0]["isVoter"] is True


def test_a_directory_that_names_no_cluster_is_named_among_several(tmp_path: Path) -> None:
    """Nobody can know where it belongs."""
    folders = [
        write_directory(tmp_path / "a", _whole(), cluster="A" * 22),
        write_directory(tmp_path / "x", _whole(), node=None),
        write_directory(tmp_path / "b", _whole(), cluster="B" * 22),
    ]
    assert [each["unownedDirectories"] for each in _stories(*folders)] == [
        [str(tmp_path / "x")], []
    ]
    assert "does not say of which cluster it is" in " ".join(_text(*folders).split())
    first = _stories(*folders)[0]
    assert _verdicts(first) == [(1, "furthest"), (None, "unowned")]


def test_a_folder_is_told_from_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`kraftwire story raft .` knows the cluster as well."""
    monkeypatch.chdir(write_directory(tmp_path / "a", _whole(), election=(2, 2, 2)))
    assert main(["story", "raft", ".", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cluster"] == CLUSTER


@pytest.mark.parametrize("size", [0, 312])
def test_a_snapshot_without_its_end_stands_for_nothing(tmp_path: Path, size: int) -> None:
    """A start does not read it, so what was deleted of the log is missing."""
    log = LogMaker(offset=500)
    log.leader(3, 2)
    log.idle(3, 10)
    folder = write_directory(tmp_path / "a", log, election=(3, 2, 2))
    snapshot = write_snapshot(folder / "__cluster_metadata-0", SOUND, 505, 3)
    assert _story(folder)["directories"][0]["advice"] == "lacks no record"
    snapshot.write_bytes(snapshot.read_bytes()[:size])
    story = _story(folder)
    (directory,) = story["directories"]
    assert directory["missing"] == [{"first": 0, "last": 499}]
    (text,) = story["contradictions"]
    assert text.endswith("snapshot 505-3 has no end, so it stands for no record")
    assert ("without its end" in _text(folder)) == bool(size)


def test_two_directories_of_a_node_are_told_apart(tmp_path: Path) -> None:
    """A disk that was replaced: only one of them may start."""
    folders = [
        write_directory(tmp_path / name, _whole(length=length), election=(2, 2, 2))
        for name, length in (("old", 10), ("new", 12))
    ]
    meta = folders[0] / "meta.properties"
    meta.write_text(meta.read_text().replace("directory-of-node", "another-dir-of-id"))
    new, old = (each["advice"] for each in _story(*folders)["directories"])
    places = [f"{folder}/__cluster_metadata-0" for folder in folders]
    assert new.endswith(f"; {places[0]} is another directory of node 1: start only one of them")
    assert f"are not in the log of {places[1]}, and are removed" in old


def test_the_directory_of_a_node_without_a_log_is_listed(tmp_path: Path) -> None:
    """It was formatted again, or its log is on another disk: somebody has to know."""
    folders = [
        write_directory(tmp_path / str(node), _whole(), node=node, election=(2, 2, 2))
        for node in (1, 2, 3)
    ]
    shutil.rmtree(folders[2] / "__cluster_metadata-0")
    assert _verdicts(_story(*folders)) == [(1, "furthest"), (2, "furthest"), (3, "empty")]


def test_two_quorum_states_that_name_different_leaders_are_reported_once(tmp_path: Path) -> None:
    """Not as a contradiction of a file with itself too."""
    folders = [
        write_directory(tmp_path / str(node), _whole(), node=node, election=(5, node, node))
        for node in (1, 2)
    ]
    (text,) = _story(*folders)["contradictions"]
    assert text == "quorum-state of node 1 says that 1 leads epoch 5, that of node 2 says 2"
