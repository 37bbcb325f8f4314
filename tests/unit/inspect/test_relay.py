"""Copies of a process: what they say, whose turn it is to write, and how much one gets."""

from __future__ import annotations

import os
from io import StringIO

import pytest

from kraftwire.errors import KraftwireError, StorageError
from kraftwire.inspect.run.chunking import Pace
from kraftwire.inspect.run.forked import ENDED_EARLY, Copy, Original, is_ready, split
from kraftwire.inspect.run.ordered_output import InTurn


def _copy(work: object) -> Copy:
    """A copy that says the result of some work."""
    other = split()
    if isinstance(other, Original):
        assert callable(work)
        other.leave(work)
    return other


def test_a_copy_says_what_it_has_done_or_why_not() -> None:
    """Errors arrive as what they are; a copy that just ends is one."""

    def fail() -> object:
        raise StorageError("no room", file="a.pcap")

    done, failed, ended = _copy(lambda: {"shown": 3}), _copy(fail), _copy(lambda: os._exit(0))
    assert done.hear() == {"shown": 3}
    with pytest.raises(StorageError, match="no room"):
        failed.hear()
    with pytest.raises(KraftwireError, match=ENDED_EARLY):
        ended.hear()
    for copy in (done, failed, ended):
        copy.wait()


def test_a_copy_that_is_stopped_says_nothing() -> None:
    """It may wait for something that never comes."""
    reading, writing = os.pipe()
    copy = _copy(lambda: os.read(reading, 1))
    assert not is_ready(copy.descriptor)
    copy.stop()
    os.close(reading)
    os.close(writing)


def _turns() -> tuple[InTurn, InTurn, StringIO]:
    """The streams of a copy and of the process that goes on after it, here in one process."""
    text = StringIO()
    before, after = InTurn(text), InTurn(text)
    ends = after.prepare()
    copied = os.dup(ends[0]), os.dup(ends[1])
    after.stay(ends)
    before.go(copied)
    return before, after, text


def test_what_is_written_out_of_turn_is_held_back() -> None:
    """Until the process before says that it has written everything."""
    before, after, text = _turns()
    after.write("third ")
    before.write("first ")
    after.flush()
    before.write("second ")
    assert text.getvalue() == "first second "
    before.finish()
    after.write("fourth")
    assert text.getvalue() == "first second third fourth"
    after.finish()


def test_nothing_is_written_after_a_process_that_ended_early() -> None:
    """There would be a gap in the output."""
    before, after, text = _turns()
    after.write("later")
    assert before._after is not None
    os.close(before._after)
    with pytest.raises(KraftwireError, match=ENDED_EARLY):
        after.finish()
    assert text.getvalue() == ""


@pytest.mark.parametrize(
    ("part", "share"), [(0.0, 0), (0.001, 600), (0.5, 450), (0.99, 0), (1.0, 0), (2.0, 0)]
)
def test_a_copy_gets_less_towards_the_end(
    monkeypatch: pytest.MonkeyPatch, part: float, share: int
) -> None:
    """So that all processes are done at the same time; nothing where that is not known."""
    clock = iter([0.0, 1.0])
    monkeypatch.setattr("time.process_time", lambda: next(clock))
    pace = Pace(2, 0, lambda: part)
    pace.start(0)
    pace.stop(1000)
    assert pace.stretch(1000) == share
