"""Stories of clients tell nothing of a time that was not recorded."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.recorded import Recorded, Recordings
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stories.groups import GroupsWriter
from kraftwire.inspect.stories.topics import TopicsWriter
from kraftwire.inspect.stories.transactions import TransactionsWriter
from kraftwire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kraftwire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kraftwire.messages.end_txn_request import EndTxnRequest
from kraftwire.messages.end_txn_response import EndTxnResponse
from kraftwire.story.observed_exchange import ObservedExchange
from kraftwire.story.transactions import TransactionStory
from tests.fuzz.outcome import seed
from tests.support.captures.cuts import DAY_S, GROUPS, packets, part, read_into, save, without
from tests.support.captures.frames import FrameMaker

_CUTS = 6


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two captures of the same groups, two days apart."""
    folder = tmp_path_factory.mktemp("days")
    return (
        save(folder / "first.pcap", part(0, 30, of=GROUPS)),
        save(folder / "second.pcap", part(45, 86, shift=2 * DAY_S, of=GROUPS)),
    )


# The writers of stories about the clients of a cluster.
Writer = type[GroupsWriter] | type[TopicsWriter] | type[TransactionsWriter]


def _text(writer: Writer, *paths: Path) -> str:
    stream = io.StringIO()
    read_into(writer(stream, topics=TopicNames()), paths)
    return " ".join(stream.getvalue().split())


def _json(writer: Writer, *paths: Path) -> dict[str, Any]:
    stream = io.StringIO()
    read_into(writer(stream, topics=TopicNames(), as_json=True), paths)
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


@pytest.mark.parametrize("writer", [GroupsWriter, TopicsWriter, TransactionsWriter])
def test_the_text_says_what_is_not_recorded(
    writer: Writer, days: tuple[Path, Path]
) -> None:
    """In the first line, and where it was."""
    text = _text(writer, *days)
    assert "2 d 0 h, of which 69" in text
    assert "nothing is recorded for 2 d 0 h" in text
    assert text == _text(writer, *reversed(days))
    assert "recorded" not in _text(writer, days[0]).replace("when the recording ends", "")


@pytest.mark.parametrize("writer", [GroupsWriter, TopicsWriter, TransactionsWriter])
def test_the_json_form_says_it_as_well(
    writer: Writer, days: tuple[Path, Path]
) -> None:
    """For programs."""
    (hole,) = _json(writer, *days)["notRecorded"]
    assert hole["to"] - hole["from"] == pytest.approx(2 * DAY_S + 15, abs=2)
    assert _json(writer, days[0])["notRecorded"] == []


def test_groups_across_two_captures(days: tuple[Path, Path]) -> None:
    """No rebalance takes days, and who was there on the first day is not a member on the third."""
    first, both = _json(GroupsWriter, days[0]), _json(GroupsWriter, *days)
    (hole,) = both["notRecorded"]
    for group in both["groups"]:
        assert all(each["seconds"] < 60 for each in group["generations"])
        for member in group["members"]:
            is_old = member["lastSeen"] <= hole["from"]
            assert not is_old or member["ended"] is not None, member
    readers = {group["group"]: group for group in both["groups"]}["readers"]
    endings = {each["member"]: each["ending"] for each in readers["members"]}
    assert endings["desk-1"] == "not recorded after that"
    assert endings["readers-vanishing"] == "vanished"
    alone = {group["group"]: group for group in first["groups"]}["readers"]
    assert {each["member"]: each["ending"] for each in alone["members"]}["desk-1"] is None
    # The records of the third day were perhaps all read.
    known = {(each["topic"], each["partition"]): each for each in alone["offsets"]}
    for each in readers["offsets"]:
        before = known[each["topic"], each["partition"]]
        assert each["committed"] == before["committed"]
        assert each["lag"] in (None, before["lag"])
    assert any(each["lag"] is None for each in readers["offsets"])


def _sent(story: TransactionStory, time: int, request: Any, response: Any) -> None:
    maker, decoder = FrameMaker(time_s=time), FrameDecoder(Settings())
    sent = decoder.decode(maker.request(request, 3))
    story.on_request(ObservedExchange(sent, None))
    story.on_response(ObservedExchange(sent, decoder.decode(maker.response(response, 10_000_000))))


def test_a_transaction_does_not_last_over_a_hole() -> None:
    """It ended unseen, and the end that is seen is that of another one."""
    recorded = Recorded()
    for at in (0, 1, 2, 5000, 5001):
        recorded.note(at * 1_000_000_000)
    story = TransactionStory(TopicNames(), Recordings([recorded]))
    begin = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    for time in (1, 5000):
        _sent(story, time, begin, AddPartitionsToTxnResponse())
    _sent(story, 5001, EndTxnRequest(transactional_id="x", committed=True), EndTxnResponse())
    story.finish([])
    lost, ended = story.transactions
    assert (lost.ending, lost.seconds(5001)) == ("open", pytest.approx(0.01))
    assert (ended.ending, ended.start) == ("committed", 5000)
    assert [each.kind for each in story.events.in_order()] == ["open", "commit"]
    assert "has a transaction open when the recording ends" in story.events.in_order()[0].text


def test_a_cut_does_not_make_members_vanish(tmp_path: Path) -> None:
    """Whoever is given up by a group in a part of a capture is not heard again in the whole."""
    chance = random.Random(seed())
    whole = packets(GROUPS)
    story = _json(GroupsWriter, save(tmp_path / "whole.pcap", whole))
    last = {
        (group["group"], member["member"]): member["lastSeen"]
        for group in story["groups"]
        for member in group["members"]
    }
    for _ in range(_CUTS):
        length = chance.choice((0.5, 2, 5, 12, 30))
        start = chance.uniform(0, 85 - length)
        path = save(tmp_path / "cut.pcap", without(whole, start, start + length))
        for event in _json(GroupsWriter, path)["events"]:
            if event["kind"] == "gone":
                heard = last[event["group"], event["member"]]
                assert heard <= event["time"], (start, length, event["text"])
