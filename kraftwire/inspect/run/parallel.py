"""Forked workers render chunks of frames while the parent keeps reading.

A worker is forked where a chunk begins, so it knows all that the run knows by then; it shows the
chunk and ends. The parent passes over the frames of the chunk: it reads them, and learns from them
as if it had shown them. Then it shows what follows itself, until a worker is done and the next one
can be forked. So every frame is shown by a process that knows what a single process would know, and
chunks are written one after the other.

Owns who shows which frames, and the order of the output.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn

from kraftwire.errors import KraftwireError

ENDED_EARLY = "a job ended before its work was done"

_FAILED = 1
_DONE = b"."

# Characters or bytes that a process may hold back.
_HELD_MAX = 16 * 1024 * 1024

# After this many frames it is estimated again whether a worker is worth it.
CHECKED_FRAMES = 128

# How long a worker takes for its chunk: long compared with the milliseconds that forking costs,
# short enough for the output buffered meanwhile. Units: seconds.
_CHUNK_S = 0.6
_CHUNK_MIN_S = 0.03


class Worker:
    """A forked process, as seen by its parent.

    `descriptor` becomes readable when the worker sends something, or ends.
    """

    def __init__(self, pid: int, descriptor: int) -> None:
        self.descriptor = descriptor
        self._pid = pid
        self._file = os.fdopen(descriptor, "rb")

    def receive(self) -> Any:
        """Wait for the next value that the worker sends, and return it.

        Raises: the error that the worker sends; KraftwireError if it has ended.
        """
        try:
            value = pickle.load(self._file)
        except (EOFError, pickle.UnpicklingError):
            raise KraftwireError(ENDED_EARLY) from None
        if isinstance(value, BaseException):
            raise value
        return value

    def wait(self) -> None:
        """Wait until the worker has ended."""
        self._file.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def stop(self) -> None:
        """End the worker at once, whatever it does."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
        self.wait()


class Parent:
    """The parent of this process, as seen by a worker."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "wb")

    def send(self, value: object) -> None:
        """Send a value. Raises: BrokenPipeError if the parent no longer reads."""
        pickle.dump(value, self._file)
        self._file.flush()

    def exit_with(self, last: Callable[[], object]) -> NoReturn:
        """End this process after some last work; sends its result, or its error.

        Exits without running the parent's cleanup.
        """
        code = _FAILED
        try:
            try:
                value = last()
            except (KraftwireError, OSError) as error:
                value = error
            self.send(value)
            code = 0
        except (BrokenPipeError, KeyboardInterrupt):
            pass
        except BaseException:  # noqa: BLE001 - shown as it would be by the process that ends
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)


def fork() -> Worker | Parent:
    """Fork this process: returns the worker, and in the worker its parent.

    Both have what is in buffers. Order: while there is only one thread. Raises: OSError.
    """
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if pid:
        os.close(writing)
        return Worker(pid, reading)
    os.close(reading)
    # A collection would write to all objects, and thus copy all memory.
    gc.freeze()
    return Parent(writing)


def is_ready(descriptor: int) -> bool:
    """Whether a descriptor can be read from without waiting, its end included."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class OrderedOutput:
    """Serializes the output of workers, in the order of their chunks.

    Early output is buffered, up to a limit at which the process waits. It takes text
    or bytes, whichever the other stream takes.
    """

    def __init__(self, stream: IO[Any]) -> None:
        self._stream = stream
        self._pass_on: Callable[[Any], object] = stream.write
        # Where the process before this one signals that it has finished; None if this is the first.
        self._before: int | None = None
        # Where the process after this one waits for the same.
        self._after: int | None = None
        self._waiting: list[Any] = []
        self._size = 0

    def write(self, data: Any) -> int:
        """Write, or hold back until the process before has finished."""
        if self._before is not None:
            self._waiting.append(data)
            self._size += len(data)
            if self._size > _HELD_MAX or is_ready(self._before):
                self._await_turn()
        else:
            self._pass_on(data)
        return len(data)

    def flush(self) -> None:
        """Flush what is not buffered."""
        if self._before is None:
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether the other stream is a terminal."""
        return self._stream.isatty()

    def finish(self) -> None:
        """Write everything, and signal that to the process after this one."""
        if self._before is not None:
            self._await_turn()
        self._stream.flush()
        if self._after is not None:
            os.write(self._after, _DONE)

    def before_fork(self) -> tuple[int, int]:
        """Prepare for a fork; returns what the two methods for after it need."""
        self.flush()
        return os.pipe()

    def after_fork_in_parent(self, ends: tuple[int, int]) -> None:
        """Write after the worker, which writes the buffered output."""
        if self._before is not None:
            os.close(self._before)
        self._before, writing = ends
        os.close(writing)
        self._waiting, self._size = [], 0

    def after_fork_in_worker(self, ends: tuple[int, int]) -> None:
        """Write before the parent."""
        reading, self._after = ends
        os.close(reading)

    def _await_turn(self) -> None:
        assert self._before is not None
        signalled = os.read(self._before, 1)
        os.close(self._before)
        self._before = None
        if signalled != _DONE:
            raise KraftwireError(ENDED_EARLY)
        waiting, self._waiting, self._size = self._waiting, [], 0
        for data in waiting:
            self._pass_on(data)


class ChunkSize:
    """Sizes chunks so that forking pays off, by the measured time per frame.

    `part_read` is the part of the input that was read, from 0 to 1, and `first` the number of
    its first frame; `count` processes share the work. It decides who shows a frame, and never what
    is shown.
    """

    def __init__(self, count: int, first: int, part_read: Callable[[], float]) -> None:
        self._count = count
        self._first = first
        self._part_read = part_read
        self._shown = 0
        self._seconds = 0.0
        self._started: tuple[int, float] | None = None

    def start(self, number: int) -> None:
        """Note that frames are shown from this number on."""
        self._started = number, time.process_time()

    def stop(self, number: int) -> None:
        """Note that frames were shown up to this number."""
        if self._started is not None:
            first, began = self._started
            self._shown += number - first
            self._seconds += time.process_time() - began
            self._started = None

    def frames(self, number: int) -> int:
        """Return how many frames a worker should show from here on; 0 if it is not worth it."""
        if not self._shown:
            return 0
        each = max(self._seconds / self._shown, 1e-9)
        part = self._part_read()
        left = (number - self._first) * (1 - part) / part if part > 0 else 0.0
        # The last ones are shared so that all are done at the same time.
        seconds = min(_CHUNK_S, left * each * 0.9 / self._count)
        return int(seconds / each) if seconds >= _CHUNK_MIN_S else 0


@dataclass(slots=True)
class Relay:
    """Divides the frames of a run among `count` processes.

    `out` is where the run writes to, and `progress` gets the number of frames now and then.
    `hand_over` has to put all that the run holds back into `out`, and `take` to return what
    was counted since the last time; the run sets them. Order: `turn` when it said so, `end` after
    the frames of each input, `finish` after everything, or `stop`.
    """

    count: int
    out: OrderedOutput
    progress: Callable[[int], object]
    hand_over: Callable[[], object] = lambda: None
    take: Callable[[], Any] = lambda: None
    # Set in a worker.
    parent: Parent | None = None
    # Counts in the order of frames, with the workers that have not sent theirs yet.
    _counted: list[Any] = field(default_factory=list)
    _running: list[Worker] = field(default_factory=list)
    _chunk: ChunkSize | None = None
    _is_passing: bool = False

    def begin(self, number: int, part_read: Callable[[], float]) -> int:
        """Begin an input; returns the number of the frame before which to ask for a `turn`."""
        self._chunk = ChunkSize(self.count, number, part_read)
        self._chunk.start(number)
        return number + CHECKED_FRAMES

    def turn(self, number: int) -> tuple[bool, int]:
        """Decide about frames from a number on: whether to pass over them, and when to ask next.

        Does not return in a worker whose chunk is over.
        """
        chunk = self._chunk
        assert chunk is not None
        if self.parent is not None:
            self._exit()
        if not self._is_passing:
            chunk.stop(number)
        self._is_passing = False
        self._collect_finished()
        if len(self._running) < self.count - 1 and (size := chunk.frames(number)):
            self._is_passing = self._fork(number)
            if self._is_passing or self.parent is not None:
                return self._is_passing, number + size
        chunk.start(number)
        return False, number + CHECKED_FRAMES

    def end(self) -> None:
        """End the frames of an input. Does not return in a worker."""
        if self.parent is not None:
            self._exit()
        self._is_passing = False

    def fail(self, error: BaseException) -> None:
        """Exit with an error, if this is a worker."""
        if self.parent is not None:
            self.parent.exit_with(lambda: error)

    def finish(self) -> list[Any]:
        """Wait until all is written; returns what was counted, in the order of frames."""
        self.out.finish()
        for worker in list(self._running):
            self._collect(worker)
        self._counted.append(self.take())
        return self._counted

    def reason(self, error: Exception) -> Exception:
        """The error with which a worker has ended, if that is what an error is about."""
        if str(error) == ENDED_EARLY:
            for worker in self._running:
                if is_ready(worker.descriptor):
                    try:
                        worker.receive()
                    except (KraftwireError, OSError) as other:
                        if str(other) != ENDED_EARLY:
                            return other
        return error

    def stop(self) -> None:
        """End the workers that run, if there are any."""
        while self._running:
            self._running.pop().stop()

    def _fork(self, number: int) -> bool:
        """Fork a worker that shows what comes next; False if there is none, and in the worker."""
        self.progress(number)
        self.hand_over()
        counted = self.take()
        ends = self.out.before_fork()
        try:
            other = fork()
        except OSError:
            return self._go_on_alone(ends, counted)
        if isinstance(other, Parent):
            self.parent = other
            self.out.after_fork_in_worker(ends)
            return False
        self.out.after_fork_in_parent(ends)
        self._counted += counted, other
        self._running.append(other)
        return True

    def _go_on_alone(self, ends: tuple[int, int], counted: Any) -> bool:
        """Continue without workers, because the system has no room for one."""
        for each in ends:
            os.close(each)
        self._counted.append(counted)
        self.count = 1
        return False

    def _exit(self) -> None:
        """End this worker, whose chunk is over."""
        assert self.parent is not None
        self.parent.exit_with(self._written)

    def _written(self) -> Any:
        self.hand_over()
        self.out.finish()
        return self.take()

    def _collect_finished(self) -> None:
        """Collect the counts of workers that have finished."""
        for worker in list(self._running):
            if is_ready(worker.descriptor):
                self._collect(worker)

    def _collect(self, worker: Worker) -> None:
        self._counted[self._counted.index(worker)] = worker.receive()
        self._running.remove(worker)
        worker.wait()
