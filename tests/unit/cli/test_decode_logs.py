"""`kraftwire decode` on log files: filters of records, and the message when nothing is shown."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import struct
import subprocess
import sys
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import cramjam
import pytest

from kraftwire.cli.main import main
from kraftwire.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraftwire.records import Record, build_batch
from kraftwire.records.messages import members_in
from tests.support.captures.decoded import decode, golden

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
BROKER = ROOT / "tests" / "golden" / "logs" / "broker"
OFFSETS = BROKER / "__consumer_offsets-1"
TOMBS = BROKER / "tombs-0" / "00000000000000000000.log"
CLEAN, NOTHING, USAGE = 0, 1, 2
Captured = pytest.CaptureFixture[str]


def _lines(captured: Captured, *arguments: str | Path) -> list[dict[str, Any]]:
    assert main(["decode", "--format", "jsonl", *map(str, arguments)]) == CLEAN
    return [json.loads(line) for line in captured.readouterr().out.splitlines()]


def _records(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for line in lines for record in line["records"]]


def test_topic_and_partition_are_those_of_the_folder(capsys: Captured) -> None:
    """A log directory has hundreds of partitions, of which one is of interest."""
    lines = _lines(capsys, BROKER, "--topic", "__consumer_*,tombs", "--partition", "1")
    assert {Path(line["file"]).parent.name for line in lines} == {"__consumer_offsets-1"}
    lines = _lines(capsys, BROKER, "--topic", "!__*,!comp-*")
    folders = {Path(line["file"]).parent.name for line in lines}
    assert {"headers-0", "tombs-0"} <= folders
    assert not any(name.startswith(("__", "comp-", "broker")) for name in folders)


def test_offsets_choose_records_in_batches(capsys: Captured) -> None:
    """Of a batch of 200 records three are shown; its header stays unchanged."""
    lines = _lines(capsys, TOMBS, "--offset", "3-5")
    assert [record["offset"] for record in _records(lines)] == [3, 4, 5]
    assert lines[0]["count"] > 3
    every = [record["offset"] for record in _records(_lines(capsys, TOMBS))]
    more = _lines(capsys, TOMBS, "--offset", f"0,{every[-1]}+")
    assert [record["offset"] for record in _records(more)] == [0, every[-1]]


def test_offsets_choose_entries_of_indexes(capsys: Captured) -> None:
    """What has no offset, such as a state file, does not pass."""
    lines = _lines(capsys, OFFSETS, "--offset", "80")
    assert [line.get("entry") for line in lines if "entry" in line] == [1, 1]
    assert all("entry" in line or "records" in line for line in lines)


def test_keys_choose_records(capsys: Captured) -> None:
    """As text, with wildcards; a record without a key has none that could match."""
    records = _records(_lines(capsys, TOMBS, "--key", "k1?"))
    keys = {b64decode(record["key"]).decode() for record in records}
    assert keys == {f"k1{digit}" for digit in range(10)} & keys
    assert keys
    assert _lines(capsys, BROKER / "headers-0", "--key", "absent") == []


def test_times_choose_records(capsys: Captured) -> None:
    """A batch is shown with those of its records that were written in time."""
    stamps = sorted(record["timestamp"] for record in _records(_lines(capsys, OFFSETS / _LOG)))
    middle = stamps[len(stamps) // 2]
    late = _records(_lines(capsys, OFFSETS / _LOG, "--since", f"{middle / 1000:.3f}"))
    early = _records(_lines(capsys, OFFSETS / _LOG, "--until", f"{middle / 1000:.3f}"))
    assert all(record["timestamp"] >= middle for record in late)
    assert all(record["timestamp"] <= middle for record in early)
    both = stamps.count(middle)
    assert len(late) + len(early) == len(stamps) + both


_LOG = "00000000000000000000.log"


def test_relative_times_count_from_the_first_batch(capsys: Captured) -> None:
    """As in captures, where they count from the first frame."""
    stamps = sorted(record["timestamp"] for record in _records(_lines(capsys, OFFSETS / _LOG)))
    first, middle = stamps[0], stamps[len(stamps) // 2]
    late = _records(_lines(capsys, OFFSETS / _LOG, "--since", f"+{(middle - first) / 1000:.3f}"))
    assert [record["timestamp"] for record in late] == [at for at in stamps if at >= middle]


def test_groups_choose_records_of_consumer_offsets(capsys: Captured) -> None:
    """Commits, members and metadata of one group, whatever the type of the record."""
    records = _records(_lines(capsys, OFFSETS / _LOG, "--group", "grp-classic-?"))
    types = {record["decoded"]["type"] for record in records}
    assert {"OffsetCommit", "GroupMetadata"} <= types
    keys = [record["decoded"]["data"]["key"] for record in records]
    assert {key["group"] for key in keys} == {"grp-classic-0"}
    others = _records(_lines(capsys, OFFSETS / _LOG, "--group", "!grp-classic-0"))
    assert len(others) + len(records) == len(_records(_lines(capsys, OFFSETS / _LOG)))


def test_what_group_members_sent_is_decoded(capsys: Captured) -> None:
    """Subscriptions and assignments are bytes inside the group's record, and stay so there."""
    (line,) = _lines(capsys, OFFSETS / _LOG, "--offset", "1")
    decoded = line["records"][0]["decoded"]
    members = decoded["data"]["value"]["members"]
    assert all(isinstance(each["subscription"], str) for each in members)
    inside = decoded["nested"]
    assert sorted(inside) == [
        f"members[{n}].{field}"
        for n in range(len(members))
        for field in ("assignment", "subscription")
    ]
    assert inside["members[0].subscription"]["type"] == "ConsumerProtocolSubscription"
    assert "headers" in inside["members[0].subscription"]["data"]["topics"]
    assigned = inside["members[0].assignment"]["data"]["assignedPartitions"]
    assert {"topic": "comp-gzip", "partitions": [1]} in assigned
    (commit,) = _lines(capsys, OFFSETS / _LOG, "--offset", "2")
    assert "nested" not in commit["records"][0]["decoded"]


def test_records_one_by_one_show_what_group_members_sent(capsys: Captured) -> None:
    """In its place in the line, and next to the bytes in JSON."""
    options = ("--offset", "1", "-q")
    assert main(["records", str(OFFSETS / _LOG), *options]) == CLEAN
    out = capsys.readouterr().out
    group = json.loads(out[out.index("{") :])["value"]
    member = group["members"][0]
    assert "headers" in member["subscription"]["topics"]
    assert {"topic": "comp-gzip", "partitions": [1]} in member["assignment"]["assignedPartitions"]
    assert main(["records", str(OFFSETS / _LOG), *options, "--json"]) == CLEAN
    decoded = json.loads(capsys.readouterr().out)["decoded"]
    assert isinstance(decoded["data"]["value"]["members"][0]["subscription"], str)
    assert decoded["nested"]["members[0].subscription"]["data"] == member["subscription"]


def test_members_that_cannot_be_read_are_left_as_bytes() -> None:
    """Protocols other than the consumers', no bytes at all, and damaged bytes."""
    member = MemberMetadata(subscription=b"\0\x03\xff", assignment=b"")
    group = GroupMetadataValue(protocol_type="consumer", members=[member])
    assert members_in(group) == {}
    assert members_in(None) == {}
    member.subscription = b"\0\0" + b"\0\0\0\0" + b"\xff\xff\xff\xff"
    assert list(members_in(group)) == ["members[0].subscription"]
    group.protocol_type = "connect"
    assert members_in(group) == {}


def test_lines_name_groups_topics_and_partitions(capsys: Captured) -> None:
    """A line has to say whose commits they are, and of what."""
    assert main(["decode", "-q", str(OFFSETS / _LOG), "--offset", "2-15"]) == CLEAN
    assert re.search(
        r"14 OffsetCommit \(group grp-classic-0 comp-\S+-\d @\d+, group \S+ \S+ @\d+ \+12\)",
        capsys.readouterr().out,
    )
    tiered = ROOT / "tests" / "golden" / "logs" / "tiered"
    assert main(["decode", "-q", str(tiered)]) == CLEAN
    out = capsys.readouterr().out
    assert "RemoteLogSegmentMetadataRecord (tiered-0 0-9 copy started)" in out
    assert "3 RemoteLogSegmentMetadataUpdateRecord (tiered-0 deleted)" in out


def test_records_are_found_however_little_of_them_is_shown(capsys: Captured) -> None:
    """A filter reads the records, not their JSON."""
    (line,) = _lines(capsys, TOMBS, "--offset", "3", "--records", "none")
    assert line["records"] is None
    (line,) = _lines(capsys, TOMBS, "--offset", "3", "--records", "summary")
    assert [record["offset"] for record in line["records"]] == [3]


@pytest.mark.parametrize(
    "option",
    [("--api", "Fetch"), ("--error", "any"), ("--min-latency", "5"), ("--client-id", "x")],
)
def test_what_only_requests_have_is_refused(option: tuple[str, str], capsys: Captured) -> None:
    """A filter that is ignored looks like one that everything passes."""
    assert main(["decode", str(TOMBS), *option]) == USAGE
    err = capsys.readouterr().err
    assert f"{option[0]}: {TOMBS} is not a capture and holds no requests" in err


@pytest.mark.parametrize("what", ["transactions", "topics"])
def test_stories_of_requests_are_refused(what: str, capsys: Captured) -> None:
    """An empty story would say that nothing happened."""
    assert main(["story", what, str(TOMBS)]) == USAGE
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"kraftwire: {TOMBS} is not a capture and holds no requests\n")


def test_what_only_records_have_is_refused_for_captures(capsys: Captured) -> None:
    """Batches in frames are of many partitions, whose offsets have nothing in common."""
    for option in ("--offset", "--key"):
        assert main(["decode", str(golden("quorum")), option, "3"]) == USAGE
        assert f"{option}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        (golden("clients"), "--api", "Vote"),
        (golden("clients"), "--group", "nobody"),
        (golden("clients"), "--topic", "nothing"),
        (golden("clients"), "--partition", "77"),
        (golden("clients"), "--api-version", "99"),
        (golden("clients"), "--min-latency", "100000"),
        (BROKER, "--topic", "nothing"),
        (BROKER, "--topic", "tombs", "--partition", "77"),
        (TOMBS, "--key", "nosuch"),
        (TOMBS, "--offset", "5000+"),
        (TOMBS, "--since", "2030-01-01"),
    ],
)
def test_filters_that_match_nothing_are_reported(
    arguments: tuple[str | Path, ...], capsys: Captured
) -> None:
    """No output at all could also mean that the file is empty."""
    assert main(["decode", *map(str, arguments)]) == CLEAN
    shown = capsys.readouterr()
    assert not [line for line in shown.out.splitlines() if not line.startswith("#")]
    assert shown.err.splitlines()[-1] == "kraftwire: nothing passes the filters"


def test_filters_that_match_something_say_no_more(capsys: Captured) -> None:
    """The line is for empty output."""
    assert main(["decode", str(golden("clients")), "--api", "Produce"]) == CLEAN
    assert "nothing passes" not in capsys.readouterr().err


def test_each_empty_folder_is_reported(tmp_path: Path, capsys: Captured) -> None:
    """Also next to a folder that is not empty."""
    (tmp_path / "empty").mkdir()
    assert main(["decode", str(tmp_path / "empty"), str(TOMBS)]) == CLEAN
    assert f"{tmp_path / 'empty'}: no file in it can be decoded" in capsys.readouterr().err


def test_a_folder_of_strangers_is_not_listed_file_by_file(
    tmp_path: Path, capsys: Captured
) -> None:
    """Nobody reads a thousand lines about files of unknown kinds."""
    for number in range(40):
        (tmp_path / f"{number:02}.conf").write_text("x = y\n")
    assert main(["decode", str(tmp_path)]) == NOTHING
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 7
    assert err[5] == "kraftwire: 35 more files of no known kind"


def _piped(data: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "kraftwire", "decode", "--format", "jsonl", "-", *options]
    return subprocess.run(command, input=data, capture_output=True, check=False, cwd=ROOT)


def test_a_pipe_may_hold_a_segment_a_state_file_or_what_was_packed() -> None:
    """As in the output of `zcat` and `kubectl exec ... cat`."""
    segment = TOMBS.read_bytes()
    wanted = [{**line, "file": "/dev/stdin"} for line in decode(TOMBS).lines]
    packed = (gzip.compress(segment), lzma.compress(segment), _zstd(segment))
    for data in (segment, *packed):
        done = _piped(data)
        assert (done.returncode, [json.loads(line) for line in done.stdout.splitlines()]) == (
            CLEAN, wanted,
        )  # fmt: skip
    done = _piped((BROKER / "meta.properties").read_bytes())
    assert json.loads(done.stdout)["type"] == "meta.properties"


def _zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


def test_a_pipe_of_something_else_is_reported() -> None:
    """One line names what was found."""
    index = struct.pack(">iiii", 40, 4200, 80, 8400)
    for data in (b"hello\n", index, gzip.compress(index), struct.pack(">hIi", 1, 0, 3)):
        done = _piped(data)
        assert done.returncode == NOTHING
        assert done.stderr.startswith(b"kraftwire: -: neither a capture nor ")
        assert b"pass its path" in done.stderr
    assert _piped(b"").stderr.startswith(b"kraftwire: -: no bytes")


def test_an_index_on_standard_input_is_reported(tmp_path: Path) -> None:
    """Also if its bytes could be read twice: its name is not known."""
    path = tmp_path / "x"
    path.write_bytes(struct.pack(">iiii", 40, 4200, 80, 8400))
    command = [sys.executable, "-m", "kraftwire", "decode", "-"]
    with path.open("rb") as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, check=False, cwd=ROOT)
    assert done.returncode == NOTHING
    assert b"pass its path" in done.stderr


def test_a_pipe_may_hold_a_producer_snapshot() -> None:
    """Its version and its size, which follows from the number of entries, identify it."""
    entries = b"".join(struct.pack(">qhiqiqiq", n, 0, 5, 9, 0, 1, 0, -1) for n in range(200))
    content = struct.pack(">hIi", 1, zlib.crc32(entries), 200) + entries
    for data in (content, gzip.compress(content)):
        (line,) = [json.loads(line) for line in _piped(data).stdout.splitlines()]
        assert len(line["data"]["producerEntries"]) == 200
    assert _piped(content + b"x").returncode == NOTHING


def test_a_folder_of_strangers_is_nothing(tmp_path: Path, capsys: Captured) -> None:
    """Though one begins like a batch, and a link leads nowhere."""
    (tmp_path / "x.conf").write_text("x = y\n")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    batch = build_batch([Record(0, 1, b"k", b"v" * 99)])
    (tmp_path / "x.dat").write_bytes(batch[:80])
    assert main(["decode", str(tmp_path)]) == NOTHING
    assert "batch-cut 1" in capsys.readouterr().err


def test_names_that_are_not_text_are_escaped(tmp_path: Path, capsys: Captured) -> None:
    """File names are bytes; a terminal gets neither broken text nor control sequences."""
    folder = os.path.join(os.fsencode(tmp_path), b"t\xff\x1b[31m-0")
    os.mkdir(folder)
    path = os.path.join(folder, b"00000000000000000000.log")
    with open(path, "wb") as file:
        file.write(build_batch([Record(0, 1, b"k", b"v")]))
    with open(os.path.join(folder, b"\xfe.txt"), "wb") as file:
        file.write(b"x")
    for command in ("decode", "decode -v", "decode --bytes", "stats", "decode --format jsonl"):
        main([*command.split(), str(tmp_path)])
        shown = capsys.readouterr()
        for text in (shown.out, shown.err):
            assert "\x1b" not in text
            text.encode()
        assert "\\udcfe.txt" in shown.err
    main(["decode", os.fsdecode(path)])
    assert "t\\udcff\\u001b[31m-0" in capsys.readouterr().out
