"""A time that was not recorded is no evidence: no node is silent in it, and nobody's rule ends.

In the golden capture the leader of epoch 1 is killed at 362.9 s and comes back at 373.9; epochs 2,
3 and 4 begin at 364.8, 378.6 and 396.2.
"""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.recorded import PAUSE_NS, Recorded, Recordings
from kraftwire.story.raft.coverage import Coverage, Extent
from kraftwire.story.raft.nodes import Nodes
from kraftwire.story.raft.timeline import Timeline
from tests.fuzz.outcome import seed
from tests.support.captures.cuts import DAY_S, part, raft_story, raft_text, save, without
from tests.support.captures.scripted_quorum import ScriptedQuorum

_CUTS = 12
_MOMENT_S = 0.001
# Between two requests of a replica, at most.
_FETCH_S = 0.55


def _events(story: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each for each in story["events"] if each["event"] == kind]


def _leaders(story: dict[str, Any]) -> list[tuple[int, int, str | None]]:
    return [(each["epoch"], each["leader"], each["ending"]) for each in story["leaders"]]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Captures of two days: epoch 1, and epoch 3 without its election."""
    folder = tmp_path_factory.mktemp("days")
    return (
        save(folder / "first.pcap", part(0, 12)),
        save(folder / "second.pcap", part(380, 390, shift=2 * DAY_S)),
    )


def test_captures_of_two_days_say_nothing_of_the_time_between(days: tuple[Path, Path]) -> None:
    """Alone, the first one says that its leader leads to the end; no node fell silent."""
    first, second = days
    alone, both = raft_story(first), raft_story(first, second)
    assert _leaders(alone) == [(1, 2, None)]
    assert alone["notRecorded"] == []
    assert _events(both, "silence") == []
    assert _leaders(both) == [(1, 2, "leads to the end of the recording"), (3, 1, None)]
    one, other = both["leaders"]
    (hole,) = both["notRecorded"]
    assert one["from"] == alone["leaders"][0]["from"]
    assert one["to"] == hole["from"] == other["notBefore"]
    assert one["leaderless"] is None
    assert other["begins"] == "not recorded"
    assert hole["to"] <= other["from"] < hole["to"] + 1
    assert alone["end"] - 1 < hole["from"] < alone["end"] + 1
    (event,) = _events(both, "not-recorded")
    assert (event["time"], event["until"]) == (hole["from"], hole["to"])
    assert {"not recorded"} < set(map(str, both["replicas"][0]["lags"]))


def test_the_text_names_the_time_that_is_not_recorded(days: tuple[Path, Path]) -> None:
    """As an event, as a row among the leaders, and in the lag of replicas."""
    text = raft_text(*days)
    assert "nothing is recorded for 2 d 0 h" in text
    assert "leads to the end of the recording" in text
    assert "elected within the 2 d 0 h before, which are not recorded" in text
    assert "its beginning is not recorded" in text
    assert "not recorded 11-20" in text
    assert "(?: not recorded)" in text
    assert "silent" not in text
    assert "no leader for" not in text


def test_the_order_in_which_captures_are_named_does_not_matter(days: tuple[Path, Path]) -> None:
    """Those of a folder are read in the order of time as well."""
    first, second = days
    assert raft_story(second, first) == raft_story(first, second) == raft_story(first.parent)


def test_one_file_with_a_hole_is_like_two(days: tuple[Path, Path], tmp_path: Path) -> None:
    """As made by `mergecap`, or where a machine slept."""
    both = save(tmp_path / "both.pcap", part(0, 12), part(380, 390, shift=2 * DAY_S))
    assert raft_story(both)["events"] == raft_story(*days)["events"]


def test_an_election_in_the_second_capture_is_not_a_gap_of_days(tmp_path: Path) -> None:
    """The leader of the first may have led until just before."""
    first = save(tmp_path / "first.pcap", part(0, 12))
    second = save(tmp_path / "second.pcap", part(364.2, 370, shift=2 * DAY_S))
    story = raft_story(first, second)
    assert _leaders(story) == [(1, 2, "leads to the end of the recording"), (2, 3, None)]
    assert story["leaders"][0]["leaderless"] is None
    assert story["leaders"][1]["begins"] is None
    assert "no leader for" not in str(story["events"])


def test_files_of_one_recording_have_no_gap(tmp_path: Path) -> None:
    """Rotated files follow each other, packet by packet."""
    parts = [part(at, at + 5) for at in range(355, 370, 5)]
    files = [save(tmp_path / f"ring_{at:05}.pcap", each) for at, each in enumerate(parts)]
    whole = raft_story(save(tmp_path / "whole.pcap", *parts))
    assert raft_story(*files) == whole
    assert [each["node"] for each in _events(whole, "silence")] == [2]


def test_a_silence_reaches_no_further_than_the_recording(tmp_path: Path) -> None:
    """Node 2 came back, which the capture does not show."""
    story = raft_story(save(tmp_path / "cut.pcap", part(355, 370)))
    (silence,) = _events(story, "silence")
    assert silence["node"] == 2
    assert silence["seconds"] is None
    assert 6 < silence["recordedSeconds"] < 8
    assert "for at least" in silence["text"]
    assert "(3 requests to it without an answer, not recorded after that)" in silence["text"]
    (leader, _) = story["leaders"]
    assert leader["ending"] == "fell silent"
    assert leader["leaderless"] == {"from": leader["to"], "to": story["leaders"][1]["from"]}


@pytest.mark.parametrize("has_log", [False, True])
def test_a_log_tells_of_the_time_that_no_capture_shows(has_log: bool) -> None:
    """It is no hole then, though no node can be heard in it."""
    quorum = ScriptedQuorum()
    for _ in range(2):
        for _ in range(8):
            quorum.fetch(2, 1, offset=5, epoch=1, high_watermark=5)
            quorum.wait(0.5)
        quorum.wait(100)
    for at in range(150 if has_log else 0):
        time = 1000.0 + at
        quorum.timeline.on_file_records(
            "n1/__cluster_metadata-0/0.log", Extent(at, at, 1, time, time), (), is_idle=True
        )
    story = quorum.timeline.story()
    assert [round(end - start) for start, end in story.not_recorded] == [] if has_log else [100]
    assert story.silences == []


def test_an_election_counts_whatever_names_the_leader_first() -> None:
    """The first answer to a Fetch may come before the leader announces itself to others."""
    quorum = ScriptedQuorum()
    quorum.begin(1, 2, epoch=1)
    for _ in range(8):
        quorum.fetch(2, 1, offset=7, epoch=1, high_watermark=7)
        quorum.wait(0.5)
    quorum.go_on(2)
    quorum.vote(3, 2, epoch=2)
    quorum.fetch(2, 3, offset=7, epoch=2, high_watermark=7)
    quorum.go_on(2)
    one, other = quorum.timeline.story().leaders
    assert one.leaderless == (one.end, other.time)
    assert other.seen_in == "Fetch"


def test_a_capture_at_one_host_does_not_show_what_others_say_to_a_new_leader() -> None:
    """Node 2 fetches from node 3 from then on, and nothing of that comes by node 1."""
    quorum = ScriptedQuorum()
    quorum.begin(1, 2, epoch=1)
    for _ in range(8):
        for replica in (2, 3):
            quorum.fetch(replica, 1, offset=7, epoch=1, high_watermark=7)
        quorum.wait(0.5)
    quorum.end(1, 2, epoch=1, preferred=[3])
    quorum.begin(3, 1, epoch=2)
    for _ in range(8):
        quorum.fetch(1, 3, offset=7, epoch=2, high_watermark=7)
        quorum.wait(0.5)
    assert quorum.timeline.story().silences == []


def test_a_leader_is_silent_only_where_a_request_waits_for_it() -> None:
    """A capture at node 3's host shows of the leader only what it answers node 3."""
    for is_asked in (False, True):
        quorum = ScriptedQuorum()
        quorum.begin(1, 3, epoch=1)
        for _ in range(8):
            quorum.fetch(3, 1, offset=7, epoch=1, high_watermark=7)
            quorum.wait(0.5)
        if is_asked:
            quorum.fetch(3, 1, offset=7, epoch=1, is_answered=False)
        quorum.go_on(8)
        quorum.fetch(3, 1, offset=7, epoch=1, high_watermark=7)
        silent = [each.node for each in quorum.timeline.story().silences]
        assert (1 in silent) is is_asked


def _with_port(whole: Any, port: int) -> list[tuple[int, bytes]]:
    """The packets from and to a listener on one machine."""
    return [each for each in whole if port.to_bytes(2, "big") in (each[1][34:36], each[1][36:38])]


@pytest.mark.parametrize("port", [23001, 23002, 23003])
def test_a_capture_of_one_listener_adds_no_silence(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nodes say to the other listeners of the same machine is not recorded."""
    packets = part(357, 402)
    _, heard = _signs(monkeypatch, save(tmp_path / "whole.pcap", packets))
    story = raft_story(save(tmp_path / "port.pcap", _with_port(packets, port)))
    for silence in _events(story, "silence"):
        # A node that is back may be heard by others first.
        begin, end = silence["time"] + _MOMENT_S, silence["until"] - _FETCH_S
        assert not [time for time in heard[silence["node"]] if begin < time < end], silence["text"]


def test_a_node_is_silent_only_where_the_capture_of_its_hosts_runs() -> None:
    """Of two captures at the same time, the one that shows node 4 ends before the other."""
    first, second = (Recorded(pairs={("10.0.0.1", f"10.0.0.{node}")}) for node in (4, 2))
    quorum = ScriptedQuorum()
    quorum.timeline = Timeline(Recordings([first, second]))
    for at in range(32):
        quorum.fetch(2, 1, offset=7, epoch=1, high_watermark=7)
        second.note(round(quorum.now * 1e9))
        if at < 16:
            quorum.fetch(4, 1, offset=7, epoch=1, high_watermark=7)
            first.note(round(quorum.now * 1e9))
        quorum.wait(0.5)
    assert quorum.timeline.story().silences == []
    for at in range(16, 32):
        first.note(round((1000 + at / 2) * 1e9))
    (silence,) = quorum.timeline.story().silences
    assert silence.node == 4


def _signs(monkeypatch: pytest.MonkeyPatch, path: Path) -> tuple[dict[str, Any], dict[Any, Any]]:
    """A story, and the times at which each node was heard."""
    found: dict[Any, list[float]] = {}
    heard = Nodes._sign_of_life

    def note(self: Nodes, node: Any, time: float) -> None:
        found.setdefault(node, []).append(time)
        heard(self, node, time)

    with monkeypatch.context() as patch:
        patch.setattr(Nodes, "_sign_of_life", note)
        return raft_story(path), found


def test_a_cut_adds_no_claim_that_the_whole_contradicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a capture lacks a time: no silence, no lost answer, no time without a leader."""
    chance = random.Random(seed())
    part_of_it = part(357, 402)
    whole, heard = _signs(monkeypatch, save(tmp_path / "whole.pcap", part_of_it))
    answered = {
        (each["event"], each["epoch"], each["node"], answer["voter"])
        for each in whole["events"]
        if each["event"] in ("vote", "pre-vote")
        for answer in each["answers"]
        if answer["granted"] is not None
    }
    for _ in range(_CUTS):
        length = chance.choice((0.3, 0.7, 1, 1.6, 2, 3, 5, 15))
        start = chance.uniform(1, 44 - length)
        packets = without(part_of_it, start, start + length)
        cut = raft_story(save(tmp_path / "cut.pcap", packets))
        what = f"cut {start:.3f} to {start + length:.3f} s"
        times = [time / 1e9 for time, _ in packets]
        # What is shorter than a pause cannot be noticed.
        least = min(length, PAUSE_NS / 1e9) - _MOMENT_S
        pauses = [(a, b) for a, b in pairwise(times) if b - a > least]
        for silence in _events(cut, "silence"):
            begin, end = silence["time"], silence["until"]
            inside = [
                time
                for time in heard[silence["node"]]
                if begin + _MOMENT_S < time < end - _MOMENT_S
                and not any(a < time < b for a, b in pauses)
            ]
            assert not inside, (what, silence["text"])
        led = [(each["from"], each["to"] or whole["end"]) for each in whole["leaders"]]
        for leader in cut["leaders"]:
            if leader["leaderless"] is None:
                continue
            slack = _MOMENT_S if length * 1e9 > PAUSE_NS else length + _FETCH_S
            first = leader["leaderless"]["from"] + slack
            last = leader["leaderless"]["to"] - slack
            assert not [a for a, b in led if a < last and b > first], (what, leader)
        for vote in (*_events(cut, "vote"), *_events(cut, "pre-vote")):
            for answer in vote["answers"]:
                key = vote["event"], vote["epoch"], vote["node"], answer["voter"]
                lost = answer["granted"] is None and answer["isRecorded"]
                is_noticed = length * 1e9 > PAUSE_NS
                assert not (is_noticed and lost and key in answered), (what, vote["text"])


@pytest.mark.parametrize("is_in_order", [False, True])
def test_a_log_goes_on_where_a_capture_of_its_first_records_ends(is_in_order: bool) -> None:
    """The records of Fetch come without times; those of the file after them have some."""
    coverage = Coverage()
    extents = [Extent(0, 3, 1), Extent(4, 7, 1, 10.0, 14.0), Extent(8, 9, 1, 14.5, 15.0)]
    for extent in extents if is_in_order else reversed(extents):
        coverage.add(extent)
    assert coverage.recorded().stretches == [[10_000_000_000, 15_000_000_000]]


def test_a_replica_that_is_met_while_it_fetches_does_not_begin_to(tmp_path: Path) -> None:
    """Only where the time before is recorded, or the log is fetched from its first record on."""
    middle = raft_text(save(tmp_path / "middle.pcap", part(300, 362), part(380, 402)))
    assert "node 1 fetches at offset " in middle
    assert "node 1 begins to fetch" not in middle
    late = raft_text(save(tmp_path / "late.pcap", part(357, 402)))
    assert "node 2 begins to fetch at offset 810 (voter)" in late
    assert "node 1 begins to fetch" not in late
    assert "node 1 begins to fetch at offset 0" in raft_text(save(tmp_path / "x.pcap", part(0, 5)))
