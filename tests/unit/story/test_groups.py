"""The story of groups: members, generations, assignments and lag, of every kind of group."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.cli.main import main
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stories.groups import GroupsWriter
from kraftwire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftwire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kraftwire.messages.heartbeat_request import HeartbeatRequest
from kraftwire.messages.heartbeat_response import HeartbeatResponse
from kraftwire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftwire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.story import events
from kraftwire.story.groups import members, offsets
from kraftwire.story.groups.model import assigned, of_consumer_protocol
from tests.support.captures.frames import FrameMaker

GROUPS = Path(__file__).resolve().parents[2] / "golden" / "captures" / "groups.pcapng.xz"
Captured = pytest.CaptureFixture[str]


def _text(capsys: Captured, *options: str) -> str:
    assert main(["story", "groups", str(GROUPS), "-q", *options]) == 0
    return capsys.readouterr().out


def _story(capsys: Captured) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_text(capsys, "--json"))
    return found


def _written(frames: list[RawFrame], ending: Ending | None = None) -> dict[str, Any]:
    stream = io.StringIO()
    settings = Settings()
    writer = GroupsWriter(stream, topics=settings.topics, as_json=True)
    decoder = FrameDecoder(settings)
    for frame in frames:
        writer.frame(decoder.decode(frame))
        if ending is not None and frame.time_ns >= ending.time_ns:
            writer.ending(ending)
            ending = None
    writer.finish()
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


# -- a recording of real clients ------------------------------------------------------------------


def test_every_kind_of_group_has_its_story(capsys: Captured) -> None:
    """The recording has one group of each kind, and one with commits only in a transaction."""
    groups = {each["group"]: each for each in _story(capsys)["groups"]}
    assert {name: each["kind"] for name, each in groups.items()} == {
        "readers": "classic",
        "watchers": "consumer",
        "workers": "share",
        "counter": "streams",
        "ledger": None,
    }
    sizes = [len(groups[name]["members"]) for name in ("readers", "watchers", "workers")]
    assert sizes == [4, 4, 2]


def test_generations_say_how_long_and_why(capsys: Captured) -> None:
    """A list of requests does not show a rebalance."""
    readers = next(each for each in _story(capsys)["groups"] if each["group"] == "readers")
    answered = [
        (each["number"], each["members"], each["reasons"]) for each in readers["generations"]
    ]
    assert answered == [
        (1, 1, ["readers-first joins"]),
        (2, 2, ["desk-1 joins"]),
        (3, 3, ["readers-hanging joins"]),
        (4, 2, ["readers-hanging leaves"]),
        (5, 3, ["readers-vanishing joins"]),
        (6, 2, ["readers-vanishing is missing"]),
    ]
    assert [round(each["seconds"], 2) for each in readers["generations"]] == [
        0.04, 0.05, 0.17, 0.8, 0.76, 0.06,
    ]
    assert {each["leader"] for each in readers["generations"]} == {"readers-first"}


def test_members_say_how_they_ended(capsys: Captured) -> None:
    """A member that hangs, vanishes or just ends has different problems."""
    groups = {each["group"]: each for each in _story(capsys)["groups"]}
    endings = {
        name: {each["member"]: each["ending"] for each in groups[name]["members"]}
        for name in ("readers", "watchers")
    }
    assert endings["readers"] == {
        "readers-first": "the consumer is being closed",
        "desk-1": None,
        "readers-hanging": "consumer poll timeout has expired.",
        "readers-vanishing": "vanished",
    }
    assert endings["watchers"]["desk-1"] == "left, keeping its place"


def test_assignments_are_those_of_the_members(capsys: Captured) -> None:
    """Together the members of a generation have every partition once."""
    story = _story(capsys)
    latest: dict[str, dict[str, Any]] = {}
    for each in story["events"]:
        if each["kind"] == "assign" and each["group"] == "watchers" and each["generation"] <= 4:
            latest[each["member"]] = each["details"]["assignment"]
    assert latest == {
        "watchers-first": {"payments": [0], "orders": [0]},
        "desk-1": {"orders": [2, 3]},
        "watchers-hanging": {"orders": [1]},
    }
    tasks = [each for each in story["events"] if each["group"] == "counter"]
    assert "is assigned tasks 0_0-3; 1_0-3" in [each["text"] for each in tasks]
    assert any("Internal topics are missing" in each["text"] for each in tasks)


def test_lag_is_the_distance_to_the_end(capsys: Captured) -> None:
    """The group that a transaction committed for stays seven records behind."""
    groups = {each["group"]: each for each in _story(capsys)["groups"]}
    (ledger,) = groups["ledger"]["offsets"]
    assert (ledger["committed"], ledger["end"], ledger["lag"]) == (5, 12, 7)
    assert [each["lag"] for each in groups["readers"]["offsets"]] == [0] * 5
    assert sum(each["commits"] for each in groups["readers"]["offsets"]) == 95


def test_a_group_alone_has_its_lag_too(capsys: Captured) -> None:
    """Frames that show where partitions end do not name the group."""
    whole = _story(capsys)["groups"]
    names = [each["group"] for each in whole if each["offsets"]]
    assert names
    for name in names:
        (alone,) = json.loads(_text(capsys, "--json", "--group", name))["groups"]
        (same,) = [each for each in whole if each["group"] == name]
        assert alone["offsets"] == same["offsets"]


def test_share_members_acquire_and_acknowledge(capsys: Captured) -> None:
    """Four records were released once and came again, four were rejected."""
    workers = next(each for each in _story(capsys)["groups"] if each["group"] == "workers")
    one = next(each for each in workers["members"] if each["member"] == "workers-one")
    assert (one["acquired"], one["redelivered"]) == (46, 4)
    lags = [(each["committed"], each["done"], each["lag"]) for each in workers["offsets"]]
    assert lags == [(6, 6, 0), (6, 4, 0), (6, 4, 0), (6, 4, 0)]
    assert one["acknowledged"] == {"accepted": 37, "gap": 1, "rejected": 4, "released": 4}


def test_text_fits_80_columns_and_cuts_no_event(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long events go on in the next line."""
    monkeypatch.setenv("COLUMNS", "80")
    text = _text(capsys)
    assert max(map(len, text.splitlines())) <= 80
    assert "generation 3 is reached in 169 ms because readers-hanging" in text
    assert "readers-hanging leaves (consumer poll timeout has expired.)" in text


# -- logs of a coordinator ------------------------------------------------------------------------


def test_a_coordinators_log_has_the_story_too(capsys: Captured) -> None:
    """A broker's log directories show groups whose traffic was not recorded."""
    broker = GROUPS.parents[1] / "logs" / "broker"
    assert main(["story", "groups", str(broker), "--json", "-q"]) == 0
    story = json.loads(capsys.readouterr().out)
    groups = {each["group"]: each for each in story["groups"]}
    assert {name: groups[name]["kind"] for name in ("aio-grp", "grp-consumer-2", "sg1")} == {
        "aio-grp": "classic",
        "grp-consumer-2": "consumer",
        "sg1": "share",
    }
    answered = groups["grp-consumer-2"]["generations"]
    assert [(each["number"], each["members"]) for each in answered] == [
        (2, 1),
        (3, 2),
        (4, 1),
        (5, 0),
    ]
    assert answered[1]["reasons"] == ["lab-cons-consumer #2 joins"]
    assert round(answered[1]["seconds"], 1) == 5.1
    place = ("comp-snappy", 0)
    lags = {
        (each["topic"], each["partition"]): each["lag"]
        for each in groups["grp-consumer-2"]["offsets"]
    }
    assert lags[place] == 142
    texts = [each["text"] for each in story["events"] if each["group"] == "aio-grp"]
    assert texts == [
        "joins from 127.0.0.1",
        "is assigned comp-snappy 0-1; txn-out 0-1",
        "generation 1 is reached because aiokafka-0.14.0 joins (1 member, leader "
        "aiokafka-0.14.0, roundrobin)",
        "is out of the group",
    ]


# -- what no client of the recording did ----------------------------------------------------------


def _beat(
    maker: FrameMaker, member: str, epoch: int, answer: int, *, error: int = 0, group: str = "g"
) -> list[RawFrame]:
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member, member_epoch=answer, heartbeat_interval_ms=1000, error_code=error
    )
    return [maker.request(request, 1, client_id=member), maker.response(response)]


def test_a_member_that_falls_silent_is_missed() -> None:
    """Brokers of the new protocol never report which members they gave up."""
    loud, lost = FrameMaker("1.1.1.1:1-2.2.2.2:9092"), FrameMaker("1.1.1.1:2-2.2.2.2:9092")
    frames = _beat(loud, "loud", 0, 1) + _beat(lost, "lost", 0, 2)
    for second in range(1, 9):
        loud.wait(1)
        frames += _beat(loud, "loud", 2, 2 if second < 8 else 3)
    end = Ending("1.1.1.1:2-2.2.2.2:9092", 1_001_000_000_000, True, False)
    story = _written(frames, end)
    (gone,) = [each for each in story["events"] if each["kind"] == "gone"]
    assert gone["member"] == "lost"
    assert gone["text"].startswith("is given up by the group (last heard 8.")
    assert "its connection ended 7." in gone["text"]
    assert story["groups"][0]["generations"][-1]["reasons"] == ["lost is missing"]


def test_members_from_before_the_capture_are_found() -> None:
    """Most captures begin after all members have joined."""
    maker = FrameMaker()
    frames = _beat(maker, "new", 7, 7, group="newer")
    for error in (0, 0, int(ErrorCode.UNKNOWN_MEMBER_ID)):
        beat = HeartbeatRequest(group_id="older", member_id="old", generation_id=4)
        frames += [
            maker.request(beat, 4, client_id="app"),
            maker.response(HeartbeatResponse(error_code=error)),
        ]
    story = _written(frames)
    assert [(each["kind"], each["text"]) for each in story["events"]] == [
        ("present", "is a member, from 10.0.0.1"),
        ("present", "is a member, from 10.0.0.1"),
        ("error", "Heartbeat is refused: UNKNOWN_MEMBER_ID"),
    ]
    assert [each["kind"] for each in story["groups"]] == ["consumer", "classic"]


def test_a_late_answer_brings_no_member_back() -> None:
    """A heartbeat in flight is answered after its member has left on another connection."""
    one, two = FrameMaker("1.1.1.1:1-2.2.2.2:9092"), FrameMaker("1.1.1.1:2-2.2.2.2:9092")
    frames = _beat(one, "m", 0, 1)
    two.wait(0.01)
    requested, answered = _beat(two, "m", 1, 1)
    one.wait(0.02)
    left = _beat(one, "m", -1, -1)
    kinds = [each["kind"] for each in _written([*frames, requested, *left, answered])["events"]]
    assert kinds == ["join", "rebalance", "leave"]


def test_refusals_are_folded() -> None:
    """A member that is refused all day is one line."""
    maker = FrameMaker()
    frames = _beat(maker, "m", 0, 1)
    for _ in range(50):
        maker.wait(1)
        frames += _beat(maker, "m", 1, 0, error=int(ErrorCode.FENCED_MEMBER_EPOCH))
        beat = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
        frames += [
            maker.request(beat, 4, client_id="m"),
            maker.response(HeartbeatResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID))),
        ]
    errors = [each for each in _written(frames)["events"] if each["kind"] == "error"]
    assert [(each["text"], each["count"]) for each in errors] == [
        ("ConsumerGroupHeartbeat is refused: FENCED_MEMBER_EPOCH", 50),
        ("Heartbeat is refused: UNKNOWN_MEMBER_ID", 50),
    ]


def _commit(maker: FrameMaker, group: str, count: int, error: int = 0) -> list[RawFrame]:
    numbers = range(count)
    requested = [
        OffsetCommitRequestPartition(partition_index=n, committed_offset=n) for n in numbers
    ]
    answered = [OffsetCommitResponsePartition(partition_index=n, error_code=error) for n in numbers]
    return [
        maker.request(
            OffsetCommitRequest(
                group_id=group, topics=[OffsetCommitRequestTopic(name="t", partitions=requested)]
            ),
            8,
        ),
        maker.response(
            OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=answered)])
        ),
    ]


def test_commits_that_are_refused_do_not_count() -> None:
    """A lag computed from a refused commit would be too small."""
    maker = FrameMaker()
    frames = _commit(maker, "g", 1, int(ErrorCode.ILLEGAL_GENERATION))
    story = _written(frames)
    assert story["groups"] == []
    assert story["events"][0]["text"] == "OffsetCommit is refused: ILLEGAL_GENERATION"


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture with a million groups, members or partitions must not fill the memory."""
    monkeypatch.setattr(members, "GROUPS_MAX", 3)
    monkeypatch.setattr(members, "GROUP_MEMBERS_MAX", 5)
    monkeypatch.setattr(members, "GROUP_GENERATIONS_MAX", 4)
    monkeypatch.setattr(offsets, "GROUP_OFFSETS_MAX", 6)
    monkeypatch.setattr(events, "STORY_EVENTS_MAX", 7)
    maker = FrameMaker()
    frames = [each for n in range(9) for each in _beat(maker, f"m{n}", 0, n + 1, group=f"g{n % 4}")]
    frames += [each for n in range(9) for each in _beat(maker, "m0", n, n + 2, group="g0")]
    frames += [each for n in range(3) for each in _commit(maker, f"g{n}", 5)]
    story = _written(frames)
    assert len(story["groups"]) == 3
    assert sum(len(each["members"]) for each in story["groups"]) == 5
    assert sum(len(each["generations"]) for each in story["groups"]) <= 5
    assert sum(len(each["offsets"]) for each in story["groups"]) == 6
    assert len(story["events"]) == 7
    assert story["eventOverflow"] > 0


def test_names_never_reach_a_terminal_raw() -> None:
    """Peers choose group and member ids freely."""
    stream = io.StringIO()
    settings = Settings()
    writer = GroupsWriter(stream, topics=settings.topics)
    decoder = FrameDecoder(settings)
    for frame in _beat(FrameMaker(), "m\x1b[31m", 0, 1, group="g\x1b]0;x\x07\n"):
        writer.frame(decoder.decode(frame))
    writer.finish()
    assert "\x1b" not in stream.getvalue()
    assert "g\\u001b]0;x\\u0007\\u000a" in stream.getvalue()


def test_names_of_any_length_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group's name may have 32,767 bytes; events have all of it, and tables both its ends."""
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    settings = Settings()
    writer = GroupsWriter(stream, topics=settings.topics)
    decoder = FrameDecoder(settings)
    for frame in _beat(FrameMaker(), "m" * 300, 0, 1, group="g" * 300):
        writer.frame(decoder.decode(frame))
    writer.finish()
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    story = "".join(lines).replace(" ", "")
    assert story.count("g" * 300) == 2
    assert story.count("m" * 300) == 2
    assert any("g…g" in line and "m…m" in line for line in lines)


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        ({"b": (3, 4, 5, 9), "a": (1,)}, "a 1; b 3-5,9"),
        ({"a": ()}, "nothing"),
        ({}, "nothing"),
        (None, "an assignment of its own kind"),
        ({str(n): (0,) for n in range(8)}, "0 0; 1 0; 2 0; 3 0; 4 0; 5 0; 2 more"),
    ],
)
def test_assignments_in_words(assignment: Any, text: str) -> None:
    """Runs of partitions are ranges, and a hundred topics are not listed."""
    assert assigned(assignment) == text


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff", b"\x00\x00\x00\x00\x00\x09", b"connect"])
def test_assignments_of_other_protocols_are_left_alone(data: bytes) -> None:
    """Kafka Connect and others write their own formats there."""
    assert of_consumer_protocol(data) is None
