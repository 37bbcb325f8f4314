"""Repeated events of a quorum are folded into one line with their count."""

from __future__ import annotations

import io

from kraftwire.decode.text import ids_text
from kraftwire.inspect.stories.raft import write_story
from kraftwire.inspect.stories.raft_json import story_to_json
from kraftwire.messages import fetch_response
from kraftwire.story.raft.model import RaftEvent, Story
from kraftwire.story.raft.repetitions import fold_repetitions
from tests.support.captures.scripted_quorum import ScriptedQuorum


def _lines(story: Story) -> list[str]:
    """The lines of a story, each of them whole."""
    out = io.StringIO()
    write_story(story, out)
    return out.getvalue().splitlines()


def _repeated_instructions(times: int) -> Story:
    """A replica that loads a snapshot and is told to load it again, for whatever reason."""
    quorum = ScriptedQuorum()
    snapshot = fetch_response.SnapshotId(end_offset=50, epoch=2)
    for _ in range(times):
        quorum.fetch(3, 1, offset=0, epoch=2, snapshot_id=snapshot)
        quorum.fetch(3, 1, offset=60, epoch=2)
        quorum.wait(0.2)
    return quorum.timeline.story()


def test_the_same_instruction_again_and_again_is_one_line() -> None:
    """649 equal lines hide the one that differs."""
    story = _repeated_instructions(40)
    assert len([e for e in story.events if e.kind == "snapshot-needed"]) == 40
    lines = [line for line in _lines(story) if "is told to load" in line]
    assert len(lines) == 1
    assert lines[0].endswith("(asked for offset 0) (40 times in 8.58 s)")
    (event,) = [e for e in story_to_json(story)["events"] if e["event"] == "snapshot-needed"]
    assert (event["count"], event["endOffset"]) == (40, 50)
    assert event["until"] - event["time"] > 8


def test_two_of_a_kind_stay_two_lines() -> None:
    """Folding them would save nothing."""
    lines = [line for line in _lines(_repeated_instructions(2)) if "is told to load" in line]
    assert len(lines) == 2


def test_counts_of_events_that_were_folded_before_add_up() -> None:
    """An instruction that repeats in a row has its number already."""
    text = "is told to load snapshot 50-2 first (asked for offset 0, 2 times)"
    events = [
        RaftEvent(float(at), "snapshot-needed", text, 2, 3, {"count": 2}) for at in range(4)
    ]
    (event,) = fold_repetitions(events)
    assert event.text == (
        "is told to load snapshot 50-2 first (asked for offset 0) (8 times in 3 s)"
    )
    assert event.details == {"count": 8, "until": 3.0}


def test_elections_that_fail_are_one_line_though_the_epoch_rises() -> None:
    """A voter that hears from nobody tries again and again."""
    quorum = ScriptedQuorum()
    for epoch in range(5, 25):
        quorum.vote(1, 2, epoch=epoch, granted=None)
        quorum.wait(1.5)
    quorum.go_on(3)
    votes = [line for line in _lines(quorum.timeline.story()) if "asks for votes" in line]
    assert len(votes) == 1
    assert votes[0].endswith("no answer of 2 (20 times in 28.5 s, up to epoch 24)")


def test_leaders_are_never_folded() -> None:
    """Each of them changed something."""
    events = [RaftEvent(float(at), "leader", "is elected leader", 3, 1, {}) for at in range(5)]
    assert fold_repetitions(events) == events


def test_what_happens_again_after_a_long_time_is_news() -> None:
    """Otherwise the second incident of a day would be hidden in the first."""
    text = "high watermark was stuck"
    events = [RaftEvent(at, "stuck", text, 3, None, {}) for at in (0, 1, 2, 90)]
    assert [each.time for each in fold_repetitions(events)] == [0, 90]


def test_what_differs_in_durations_alone_is_the_same() -> None:
    """No two downloads take the same time."""
    texts = [f"fetches snapshot 50-2 from 1 ({n}.1 KiB at once, {n}5 ms)" for n in range(1, 5)]
    events = [RaftEvent(float(i), "snapshot", text, None, 3, {}) for i, text in enumerate(texts)]
    assert len(fold_repetitions(events)) == 1
    other = RaftEvent(4.0, "snapshot", texts[0].replace("50-2", "51-2"), None, 3, {})
    assert len(fold_repetitions([*events, other])) == 2


def _many_brokers(count: int) -> Story:
    quorum = ScriptedQuorum()
    quorum.begin(1, 2, epoch=1)
    for broker in range(1000, 1000 + count):
        quorum.fetch(broker, 1, offset=broker % 3, epoch=1)
    return quorum.timeline.story()


def test_hundreds_of_brokers_do_not_fill_the_screen() -> None:
    """Nobody reads a heading, an event and a table that name each of 400 brokers."""
    lines = _lines(_many_brokers(400))
    assert max(map(len, lines)) < 200
    assert len(lines) < 40
    assert "observers 1000-1399" in lines[0]
    (arrivals,) = [line for line in lines if " fetch at offset" in line]
    assert "observers 1000-1399 fetch at offsets 0 to 2 (400 observers)" in arrivals
    assert any("380 observers more" in line for line in lines)


def test_a_few_brokers_are_named_one_by_one() -> None:
    """There is room for them."""
    lines = _lines(_many_brokers(3))
    events = [line for line in lines if line.startswith("+")]
    assert len([line for line in events if "fetch" in line and "at offset" in line]) == 3
    assert not any("more" in line for line in lines)


def test_ids_are_shown_as_ranges() -> None:
    """Short lists stay unchanged."""
    assert ids_text([3, 1, 2]) == "1, 2, 3"
    assert ids_text([10, *range(1, 8)]) == "1-7, 10"
    assert ids_text([1, 5, "10.0.0.1:9093"]) == "1, 5, 10.0.0.1:9093"
    assert ids_text(range(0, 100, 2)) == "0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and 40 more"
    assert ids_text([]) == "none"
