"""Forked workers: what they send, whose turn it is to write, and the size of a chunk."""

from __future__ import annotations

import os
from io import StringIO

import pytest

from kraftwire.errors import KraftwireError, StorageError
from kraftwire.inspect.run.parallel import (
    ENDED_EARLY,
    ChunkSize,
    OrderedOutput,
    Parent,
    Worker,
    fork,
    is_ready,
)


def _worker(work: object) -> Worker:
    """A worker that sends the result of some work."""
    other = fork()
    if isinstance(other, Parent):
        assert callable(work)
        other.exit_with(work)
    return other


def test_a_worker_sends_its_result_or_its_error() -> None:
    """Errors arrive as what they are; a worker that just ends is one."""

    def fail() -> object:
        raise StorageError("no room", file="a.pcap")

    done, failed, ended = _worker(lambda: {"shown": 3}), _worker(fail), _worker(lambda: os._exit(0))
    assert done.receive() == {"shown": 3}
    with pytest.raises(StorageError, match="no room"):
        failed.receive()
    with pytest.raises(KraftwireError, match=ENDED_EARLY):
        ended.receive()
    for worker in (done, failed, ended):
        worker.wait()


def test_a_worker_that_is_stopped_sends_nothing() -> None:
    """It may wait for something that never comes."""
    reading, writing = os.pipe()
    worker = _worker(lambda: os.read(reading, 1))
    assert not is_ready(worker.descriptor)
    worker.stop()
    os.close(reading)
    os.close(writing)


def _turns() -> tuple[OrderedOutput, OrderedOutput, StringIO]:
    """The streams of a worker and of its parent, here in one process."""
    text = StringIO()
    before, after = OrderedOutput(text), OrderedOutput(text)
    ends = after.before_fork()
    copied = os.dup(ends[0]), os.dup(ends[1])
    after.after_fork_in_parent(ends)
    before.after_fork_in_worker(copied)
    return before, after, text


def test_output_out_of_turn_is_buffered() -> None:
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
def test_a_worker_gets_less_towards_the_end(
    monkeypatch: pytest.MonkeyPatch, part: float, share: int
) -> None:
    """So that all processes are done at the same time; nothing where that is not known."""
    clock = iter([0.0, 1.0])
    monkeypatch.setattr("time.process_time", lambda: next(clock))
    size = ChunkSize(2, 0, lambda: part)
    size.start(0)
    size.stop(1000)
    assert size.frames(1000) == share
