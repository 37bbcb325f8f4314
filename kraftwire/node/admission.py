"""Admission: how much of a node's memory and time its connections may take.

Replicas, clients and strangers share one thread. A flood of requests, one huge request or thousands
of unread answers would otherwise delay the node's own votes and fetches and cost it its leadership.
Every request passes through here twice: before it is decoded, and before its answer is read from
the log.

| resource | bound | beyond it |
|---|---|---|
| memory of all connections | `CONNECTION_BYTES_MAX` | the oldest holders are closed |
| elements of a request | `REQUEST_ELEMENTS_MAX` | its connection is closed |
| long requests, from 4 KiB | one at a time, 512 KiB/s, then a pause | wait in a `WorkQueue` |
| long answers, from 64 KiB | one at a time, 512 MiB/s, then a pause | wait in a `WorkQueue` |
| short requests and answers | 4 KiB in a round of the loop | wait at a `RateGate` |
| reading from connections | four in a round of the loop | wait at another, `paced_stream` |
| logins, from 16 KiB, or a token of 4 KiB | one at a time, then a pause | wait in a `WorkQueue` |
| changes of the metadata | eight in a batch of the controller | wait for the next, `next_in_turn` |

Short work never waits for long work. Where many wait, the connections that have been open for
longest come first, because those of replicas are among them. A well-behaved peer sends a request
at a time and reads its answers, so it notices little of a flood.

`Admission` belongs to a node, a `ConnectionBudget` to each of its connections. Order: all calls in
trio's thread.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar

import trio

from kraftwire.limits import CONNECTION_BYTES_MAX, REQUEST_ELEMENTS_MAX
from kraftwire.transport.paced_stream import PacedStream, Readiness
from kraftwire.transport.rate_gate import REQUEST_COST_BYTES, RateGate
from kraftwire.transport.streams import Stream
from kraftwire.wire.message import Message, Struct

# Holders of fewer bytes are closed last.
EVICTED_BYTES_MIN = 64 * 1024

# Bytes of an open connection in Python, and in addition while one of its requests waits or is
# answered: tasks, buffers, objects. If all connections are open and idle, they take half of
# CONNECTION_BYTES_MAX.
OPEN_CONNECTION_BYTES = 8 * 1024
# Bytes of TLS besides, for each connection of a node with such a listener; one that is used has
# 64 KiB more, which do not count.
TLS_CONNECTION_BYTES = 24 * 1024
OPEN_REQUEST_BYTES = 16 * 1024

# While a request is answered, it counts for this many times its length: objects are larger than
# the bytes from which they were decoded.
DECODED_FACTOR = 8

# A long request waits for its turn. All long requests together get this many bytes a second, about
# a quarter of what one thread can decode and answer, after a burst that an idle node allows.
LONG_REQUEST_BYTES_MIN = 4 * 1024
LONG_REQUESTS_BYTES_PER_SECOND = 512 * 1024
LONG_REQUESTS_BYTES_BURST = 256 * 1024

# A long answer carries at least this much of the log or of a snapshot. It costs little per byte;
# the rate is far above what replicas need, since all of them share it: two followers of a leader
# that appends 120 MiB a second take half.
LONG_ANSWER_BYTES_MIN = 64 * 1024
LONG_ANSWERS_BYTES_PER_SECOND = 512 * 1024 * 1024
LONG_ANSWERS_BYTES_BURST = 16 * 1024 * 1024

# How many wait for long answers in a quorum under load: its other voters and a few observers.
LONG_ANSWERS_CROWD = 6

# Each piece of long work is followed by a pause of this many times its duration if a crowd is
# waiting; if only few are, there is none. An answer is encoded and written to the socket within
# this many rounds of the loop after it was read.
LONG_WORK_REST = 3
LONG_WORK_REST_FEW = 0
LONG_WORK_ROUNDS = 5

# The first bytes of a login are read as they come, and most logins have no more; the others are
# read in turns of this many bytes, and long tokens are judged in the same turns. Nothing of them
# becomes objects, so they need not wait as long as requests. One alone hardly notices the rate;
# many get pauses.
LOGIN_READ_BYTES = 16 * 1024
LOGINS_BYTES_PER_SECOND = 64 * 1024 * 1024
LOGINS_BYTES_BURST = 1024 * 1024

T = TypeVar("T")

# The number of the connection whose request a task answers: a lower one has been open for longer.
# The node's own work comes first of all.
CONNECTION: ContextVar[int] = ContextVar("connection", default=0)


class Holder(Protocol):
    """Something that holds bytes."""

    def evict(self) -> None:
        """Release them soon; they no longer count."""


class MemoryBudget:
    """Counts bytes by holder. `used` is their sum plus the overhead of open connections.

    A connection holds requests that are incomplete or unanswered, and answers that its peer has not
    read. Above the limit the oldest holders are evicted, not the newest.
    """

    def __init__(self, limit: int, open_bytes: int = OPEN_CONNECTION_BYTES) -> None:
        self.limit = limit
        self.used = 0
        self._open_bytes = open_bytes
        # In the order in which they began to hold something.
        self._sizes: dict[Holder, int] = {}

    def add_connection(self) -> None:
        """Count an open connection."""
        self._add(self._open_bytes)

    def remove_connection(self) -> None:
        """Discount a closed connection."""
        self.used -= self._open_bytes

    def hold(self, holder: Holder, size: int) -> None:
        """Set the bytes of a holder, and evict holders if the sum exceeds the limit.

        The caller itself may be evicted.
        """
        before = self._sizes.pop(holder, 0) if not size else self._sizes.get(holder, 0)
        if size:
            self._sizes[holder] = size
        self._add(size - before)

    def _add(self, size: int) -> None:
        self.used += size
        if size > 0 and self.used > self.limit:
            self._make_room()

    def _make_room(self) -> None:
        """Evict the oldest holders; small ones only if there are no others."""
        for least in (EVICTED_BYTES_MIN, 1):
            for holder in [one for one, size in self._sizes.items() if size >= least]:
                if self.used <= self.limit:
                    return
                self.used -= self._sizes.pop(holder)
                holder.evict()


class WorkQueue:
    """Long work: one piece at a time, each followed by a pause. Order: `finish` after each `admit`.

    The cost of a piece is the CPU time of the whole process, threads included, from its start until
    some rounds of the loop after its end. Other work in that time counts too: a busy node pauses
    for longer. Every second turn is that of the connection that has been open for longest. In the
    others, kinds of work get equally many bytes: what is of the same size but for a factor of two
    is one kind, in which comes first who has waited for longest. So short work waits for no more
    of the huge one than it is itself.
    """

    def __init__(
        self,
        bytes_per_second: float,
        burst_bytes: float,
        *,
        crowd: int = 1,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        """Units: sizes are bytes, `clock` returns seconds of CPU time.

        If fewer than `crowd` wait, the pause is the shorter one.
        """
        self._crowd = crowd
        self._rate = bytes_per_second
        self._burst = burst_bytes / bytes_per_second
        self._clock = clock
        self._free_at = -float("inf")
        # By connection number, in order of arrival.
        self._waiting: dict[int, tuple[int, trio.Event]] = {}
        self._done = trio.Event()
        self._is_running = False
        self._is_turn_of_oldest = True
        # By kind: the bytes after which its next turn comes, and those of the last turn.
        self._next_at: dict[int, float] = {}
        self._passed = 0.0

    async def admit(self, number: int, size: int) -> None:
        """Return when work of this size on this connection may begin."""
        turn = trio.Event()
        self._waiting[number] = size, turn
        if not self._is_running:
            self._is_running = True
            trio.lowlevel.spawn_system_task(self._run)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self.finish()
            else:
                del self._waiting[number]
            raise

    def finish(self) -> None:
        """End the current piece of work."""
        self._done.set()

    async def _run(self) -> None:
        """Start one piece after the other until none is waiting."""
        try:
            while self._waiting:
                await trio.sleep_until(max(self._free_at, trio.current_time()))
                if not self._waiting:
                    return
                began = self._clock()
                self._done = trio.Event()
                self._start_next()
                await self._done.wait()
                for _ in range(LONG_WORK_ROUNDS):
                    await trio.lowlevel.checkpoint()
                is_crowd = len(self._waiting) >= self._crowd
                rest = LONG_WORK_REST if is_crowd else LONG_WORK_REST_FEW
                await trio.sleep((self._clock() - began) * rest)
        finally:
            self._is_running = False

    def _start_next(self) -> None:
        number = min(self._waiting) if self._is_turn_of_oldest else self._fairest_connection()
        self._is_turn_of_oldest = not self._is_turn_of_oldest
        size, turn = self._waiting.pop(number)
        self._free_at = max(self._free_at, trio.current_time() - self._burst) + size / self._rate
        turn.set()

    def _fairest_connection(self) -> int:
        """Return whose kind has had the fewest bytes, and count it; an idle kind saves up none."""
        first: dict[int, int] = {}
        for number, (size, _) in self._waiting.items():
            first.setdefault(size.bit_length(), number)
        kind = min(first, key=lambda one: (max(self._passed, self._next_at.get(one, 0)), one))
        number = first[kind]
        self._passed = max(self._passed, self._next_at.get(kind, 0))
        self._next_at[kind] = self._passed + self._waiting[number][0]
        return number


class Admission:
    """The resources that all connections of a node share: memory, and queues for work."""

    def __init__(
        self,
        memory_limit: int = CONNECTION_BYTES_MAX,
        open_bytes: int = OPEN_CONNECTION_BYTES,
        *,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        """`clock` returns seconds of CPU time."""
        self.memory = MemoryBudget(memory_limit, open_bytes)
        self.readiness = Readiness()
        self.short_work = RateGate()
        self.long_requests = WorkQueue(
            LONG_REQUESTS_BYTES_PER_SECOND, LONG_REQUESTS_BYTES_BURST, clock=clock
        )
        self.long_logins = WorkQueue(LOGINS_BYTES_PER_SECOND, LOGINS_BYTES_BURST, clock=clock)
        self.long_answers = WorkQueue(
            LONG_ANSWERS_BYTES_PER_SECOND,
            LONG_ANSWERS_BYTES_BURST,
            crowd=LONG_ANSWERS_CROWD,
            clock=clock,
        )
        self._connections = 0

    def connection(self, stream: Stream) -> ConnectionBudget:
        """Return the share of a new connection."""
        self._connections += 1
        if isinstance(stream, trio.SocketStream):
            stream = PacedStream(stream, self.readiness, self._connections)
        return ConnectionBudget(self, self._connections, stream)


class ConnectionBudget:
    """The share of one connection, one request at a time. Units: bytes.

    Order: for each request `admit_request`, `end_request` once it is decoded, then `admit_answer`
    before parts of its answer are read, and `end_answer`. `backlog` is the size of requests that
    are incomplete or wait behind the current one. A connection that holds too much ends by `scope`,
    in which it runs; nothing else cancels that.
    """

    def __init__(self, admission: Admission, number: int, stream: Stream) -> None:
        """`number` counts the node's connections: a lower one has been open for longer."""
        self.backlog = 0
        self.scope = trio.CancelScope()
        self._admission = admission
        self._number = number
        self.stream = stream
        # Bytes of the answer that were admitted; -1 before that.
        self._answer_size = -1
        self._login_bytes = 0

    def open(self) -> None:
        """Count the connection. Order: in the task that serves it."""
        self._admission.memory.add_connection()
        CONNECTION.set(self._number)

    def close(self) -> None:
        """Release what the connection holds."""
        self._admission.memory.hold(self, 0)
        self._admission.memory.remove_connection()

    def evict(self) -> None:
        """End the connection because all connections together hold too much."""
        self.scope.cancel()

    def hold(self, size: int) -> None:
        """Set how many bytes the connection holds besides its backlog."""
        self._admission.memory.hold(self, size + self.backlog)

    def begin_login(self) -> None:
        """Begin another login on this connection."""
        self._login_bytes = 0

    async def admit_login_read(self) -> None:
        """Return when a login may read on: at once, or in turn after many bytes or pieces."""
        if self._login_bytes < LOGIN_READ_BYTES:
            return
        queue = self._admission.long_logins
        await queue.admit(self._number, LOGIN_READ_BYTES)
        # It may wait for its peer for long, and no other login waits for that.
        queue.finish()

    def end_login_read(self, size: int) -> None:
        """Count what a login has read."""
        self._login_bytes += size + REQUEST_COST_BYTES

    async def admit_token(self, size: int) -> None:
        """Return when a part of a login may be judged. Raises: PeerGone while a long one waits."""
        shared = self._admission
        self.hold(OPEN_REQUEST_BYTES + size)
        if size < LONG_REQUEST_BYTES_MIN:
            await shared.short_work.wait_turn(self._number, size)
            return
        await self.while_connected(lambda: shared.long_logins.admit(self._number, size))

    def end_token(self, size: int) -> None:
        """End the judging of a part of a login, which may have failed."""
        if size >= LONG_REQUEST_BYTES_MIN:
            self._admission.long_logins.finish()
        self.hold(0)

    async def admit_request(self, size: int) -> None:
        """Return when a request may be decoded. Raises: PeerGone while a long one waits."""
        shared = self._admission
        if size < LONG_REQUEST_BYTES_MIN:
            self.hold(OPEN_REQUEST_BYTES + size)
            await shared.short_work.wait_turn(self._number, size)
            return
        self.hold(OPEN_REQUEST_BYTES + size * DECODED_FACTOR)
        await self.while_connected(lambda: shared.long_requests.admit(self._number, size))

    def end_request(self, size: int) -> None:
        """End the decoding of a request, which may have failed."""
        if size >= LONG_REQUEST_BYTES_MIN:
            self._admission.long_requests.finish()

    async def admit_answer(self, size: int) -> None:
        """Return when this many bytes may be read for the answer."""
        self.end_answer()
        if size < LONG_ANSWER_BYTES_MIN:
            await self._admission.short_work.wait_turn(self._number, 0)
        else:
            await self._admission.long_answers.admit(self._number, size)
        self._answer_size = size
        self.hold(OPEN_REQUEST_BYTES + size)

    @property
    def has_begun_answer(self) -> bool:
        """Whether bytes of the current answer were admitted."""
        return self._answer_size >= 0

    def end_answer(self) -> None:
        """End the reading of an answer, if it has begun."""
        if self._answer_size >= LONG_ANSWER_BYTES_MIN:
            self._admission.long_answers.finish()
        self._answer_size = -1

    async def while_connected(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `work`; cancels it if the peer leaves. Raises: PeerGone."""
        if not isinstance(self.stream, PacedStream):
            return await work()
        return await self.stream.while_open(work)


def has_too_many_elements(message: Message, size: int) -> bool:
    """Return whether the arrays of a request have more elements than any client sends.

    Units: `size` is the length of the request in bytes.
    """
    return size >= LONG_REQUEST_BYTES_MIN and has_more_elements(message, REQUEST_ELEMENTS_MAX)


def has_more_elements(message: Message, most: int) -> bool:
    """Return whether the arrays of a message have more elements; looks at no more than `most`."""
    left = most
    waiting: list[Struct] = [message]
    while waiting:
        one = waiting.pop()
        for name in one.__class__.__slots__:
            value = getattr(one, name)
            if isinstance(value, list | dict):
                left -= len(value)
                if left < 0:
                    return True
                if isinstance(value, list) and value and isinstance(value[0], Struct):
                    waiting += value
            elif isinstance(value, Struct):
                waiting.append(value)
    return False
