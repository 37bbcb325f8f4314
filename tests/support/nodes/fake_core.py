"""A Raft core, a disk and a network that do what a test prescribes and record what is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import trio
import trio.testing

from kraftwire.errors import StorageError
from kraftwire.log.snapshots.reader import SnapshotFile
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.node.driver import Driver
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import BatchBuilder, BatchHeader
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.ports import ResponsePart, WorkKind

WALL_MS = 1_700_000_000_000
Answer = Callable[[ev.Event], list[fx.Effect]]


class FakeCore:
    """Answers each event with what the test prescribes."""

    def __init__(self, answer: Answer = lambda _: []) -> None:
        self.answer = answer
        self.deadline_ms: int | None = None
        self.high_watermark = -1
        self.seen: list[tuple[ev.Event, int]] = []
        self.wall: list[int | None] = []

    def start(self, now_ms: int, wall_ms: int | None = None) -> list[fx.Effect]:
        del now_ms, wall_ms
        return []

    def handle(
        self, event: ev.Event, now_ms: int, wall_ms: int | None = None
    ) -> list[fx.Effect]:
        self.seen.append((event, now_ms))
        self.wall.append(wall_ms)
        return self.answer(event)

    @property
    def events(self) -> list[ev.Event]:
        """The events it was given."""
        return [event for event, _ in self.seen]


class World:
    """Records what is done to disk and network, in order. `wall_ms` is the wall clock's time."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.data = b""
        self.wall_ms = WALL_MS
        self.failure: StorageError | None = None
        self.during_flush: Callable[[], None] = lambda: None
        self.log = _Log(self)
        self.snapshots = _Snapshots(self)

    def persist(self, effect: fx.PersistQuorumState) -> None:
        if self.failure:
            raise self.failure
        self.done.append(f"persist {effect.state.epoch}")

    def send(self, request: fx.SendRequest, answered: Callable[[Any], None] | None = None) -> None:
        del answered
        self.done.append(f"send {request.request_id}")

    def reset(self) -> None:
        self.done.append("reset")


class _Log:
    def __init__(self, world: World) -> None:
        self._world = world
        self.size_bytes = 0

    def append(self, data: bytes | memoryview, base_offset: int, end_offset: int) -> None:
        self._world.done.append(f"append {base_offset}-{end_offset}")
        self._world.data += bytes(data)

    def flush(self) -> int:
        self._world.done.append("flush")
        self._world.during_flush()
        if self._world.failure:
            raise self._world.failure
        return 0

    def truncate(self, end_offset: int) -> int:
        self._world.done.append(f"truncate {end_offset}")
        return end_offset

    def reset(self, start: OffsetAndEpoch) -> None:
        self._world.done.append(f"empty to {start}")

    def drop_prefix(self, start_offset: int) -> None:
        self._world.done.append(f"drop below {start_offset}")

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        self._world.done.append(f"read {offset}-{end_offset}")
        return self._world.data[:max_bytes]

    def read_size(self, offset: int, max_bytes: int, end_offset: int) -> int:
        del offset, end_offset
        return len(self._world.data[:max_bytes])


class _Snapshots:
    """`stored_values` has the values of each snapshot; `broken` names those whose check fails,
    `full` those that the disk has no room for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.stored_values: dict[OffsetAndEpoch, list[bytes]] = {}
        self.timestamps: dict[OffsetAndEpoch, int] = {}
        self.broken: dict[OffsetAndEpoch, StorageError] = {}
        self.full: dict[OffsetAndEpoch, StorageError] = {}

    def append(self, id: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        self._world.done.append(f"piece of {id} at {position}: {len(data)}")
        if id in self.full:
            raise self.full[id]

    def finish(self, id: OffsetAndEpoch) -> SnapshotFile:
        self._world.done.append(f"finish {id}")
        if id in self.broken:
            raise self.broken[id]
        return SnapshotFile(id, 1000, b"control", 777)

    def discard(self, id: OffsetAndEpoch) -> None:
        self._world.done.append(f"discard {id}")

    def writer(self, id: OffsetAndEpoch, control: Any, timestamp: int, now_ms: int) -> _Writer:
        self._world.done.append(f"write {id} of {timestamp} at {now_ms}")
        del control
        return _Writer(self._world, self.stored_values, id)

    def reader(self, id: OffsetAndEpoch) -> _File:
        self._world.done.append(f"open {id}")
        return _File(self._world, self.stored_values[id])

    def read(self, id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        self._world.done.append(f"read {id} at {position}")
        return b"snapshot"[position : position + max_bytes]

    def stored(self) -> list[SnapshotFile]:
        return [
            SnapshotFile(id, sum(map(len, values)), b"control", self.timestamps.get(id, WALL_MS))
            for id, values in sorted(self.stored_values.items())
        ]

    def delete(self, ids: Sequence[OffsetAndEpoch], due_ms: int) -> None:
        for one in ids:
            self._world.done.append(f"delete {one}, due at {due_ms}")
            self.stored_values.pop(one, None)

    def purge(self, now_ms: int) -> None:
        self._world.done.append(f"purge at {now_ms}")


class _Writer:
    def __init__(
        self, world: World, stored: dict[OffsetAndEpoch, list[bytes]], id: OffsetAndEpoch
    ) -> None:
        self._world = world
        self._stored = stored
        self._id = id
        self._values: list[bytes] = []

    def append(self, values: Sequence[bytes]) -> None:
        self._values += values
        if self._world.failure:
            raise self._world.failure

    def freeze(self) -> int:
        self._world.done.append(f"freeze {self._id}")
        self._stored[self._id] = self._values
        return sum(map(len, self._values))

    def discard(self) -> None:
        self._world.done.append(f"give up {self._id}")


class _File:
    timestamp = 777

    def __init__(self, world: World, values: list[bytes]) -> None:
        self._world = world
        self._values = values

    def __iter__(self) -> Iterator[RecordBatch]:
        for place, value in enumerate(self._values):
            yield RecordBatch(batch(place, value))

    def close(self) -> None:
        self._world.done.append("close")


class Lock:
    """A lock that shows whether it is held."""

    def __init__(self) -> None:
        self.is_held = False

    def __enter__(self) -> None:
        assert not self.is_held
        self.is_held = True

    def __exit__(self, *_: object) -> None:
        self.is_held = False


class Workers:
    """Does work when the test requests it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.jobs: list[tuple[WorkKind, Callable[[], Any], Callable[[Any], None]]] = []

    def start(self, kind: WorkKind, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append((kind, work, done))

    def finish(self, kind: WorkKind) -> None:
        """Do the oldest work of a kind."""
        job = next(job for job in self.jobs if job[0] is kind)
        self.jobs.remove(job)
        _, work, done = job
        done(work())


class Host:
    """Records its calls, and keeps events to be handled later."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.submitted: list[ev.Event] = []
        self.waiting: set[int] = set()
        self.replies: dict[int, Any] = {}
        self.notes: list[fx.Effect] = []

    def submit(self, event: ev.Event) -> None:
        self.submitted.append(event)

    def send(self, request: fx.SendRequest) -> None:
        self._world.send(request)

    def wants_reply(self, token: int) -> bool:
        return token in self.waiting

    def reply(self, token: int, message: Any, part: ResponsePart | None) -> None:
        if part is not None:
            part.put()
        self.replies[token] = message

    def record(self, effect: Any) -> None:
        self.notes.append(effect)

    reset_connections = decided = committed = record
    role_changed = voters_changed = note = shut_down = record


class Listener:
    """A state machine that records its calls; its state is what was applied."""

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []
        self.leaders: list[tuple[int, int, int]] = []
        self.threads: set[int] = set()

    def apply(self, batches: Any) -> None:
        self.batches += batches

    def load(self, snapshot: Any) -> None:
        self.threads.add(threading.get_ident())
        self.batches = list(snapshot)

    def freeze(self) -> list[bytes]:
        values = (record.value for batch in self.batches for record in batch.records())
        return [value for value in values if value is not None]

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        self.leaders.append((leader_id, epoch, end_offset))


def make(core: FakeCore, world: World) -> Driver:
    """A driver between them."""
    disk: Any = world  # it implements as much of a disk as a driver uses
    return Driver(core, disk, world, wall_seconds=lambda: world.wall_ms / 1000)


def batch(base_offset: int, *values: bytes) -> bytes:
    """A batch of epoch 1 with these values."""
    builder = BatchBuilder(BatchHeader(base_offset=base_offset, partition_leader_epoch=1))
    for value in values:
        builder.append(0, None, value)
    return builder.build()


def send(request_id: int) -> fx.SendRequest:
    """A request to node 2."""
    return fx.SendRequest(request_id, fx.Destination(2, "peer", 1), VoteRequest(), 1000)


async def run(driver: Driver, nursery: trio.Nursery) -> None:
    """Start a driver and let it run until it is idle."""
    nursery.start_soon(driver.run)
    await trio.testing.wait_all_tasks_blocked()
