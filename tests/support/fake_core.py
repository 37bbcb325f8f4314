"""A Raft core, a disk and a network that do what a test says and note what is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
import trio.testing

from kraftwire.errors import StorageError
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.node.driver import Driver
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import BatchBuilder, BatchHeader

__all__ = ["WALL_MS", "FakeCore", "Listener", "World", "batch", "make", "run", "send"]

WALL_MS = 1_700_000_000_000
Answer = Callable[[ev.Event], list[fx.Effect]]


class FakeCore:
    """Answers each event with what the test says."""

    def __init__(self, answer: Answer = lambda _: []) -> None:
        self.answer = answer
        self.deadline_ms: int | None = None
        self.high_watermark = -1
        self.seen: list[tuple[ev.Event, int]] = []

    def start(self, now_ms: int) -> list[fx.Effect]:
        del now_ms
        return []

    def handle(self, event: ev.Event, now_ms: int) -> list[fx.Effect]:
        self.seen.append((event, now_ms))
        return self.answer(event)


class World:
    """Disk and network that note what is done, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.data = b""
        self.failure: StorageError | None = None
        self.during_flush: Callable[[], None] = lambda: None

    def append(self, data: bytes | memoryview, base_offset: int, end_offset: int) -> None:
        self.done.append(f"append {base_offset}-{end_offset}")
        self.data += bytes(data)

    def flush(self) -> int:
        self.done.append("flush")
        self.during_flush()
        if self.failure:
            raise self.failure
        return 0

    def truncate(self, end_offset: int) -> int:
        self.done.append(f"truncate {end_offset}")
        return end_offset

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        self.done.append(f"read {offset}-{end_offset}")
        return self.data[:max_bytes]

    def persist(self, effect: fx.PersistQuorumState) -> None:
        if self.failure:
            raise self.failure
        self.done.append(f"persist {effect.state.epoch}")

    def send(self, request: fx.SendRequest) -> None:
        self.done.append(f"send {request.request_id}")

    def reset(self) -> None:
        self.done.append("reset")


class Listener:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []
        self.leaders: list[tuple[int, int, int]] = []

    def handle_commit(self, batches: Any) -> None:
        self.batches += batches

    def handle_leader_change(self, leader_id: int, epoch: int, end_offset: int) -> None:
        self.leaders.append((leader_id, epoch, end_offset))


def make(core: FakeCore, world: World) -> Driver:
    """A driver between them."""
    return Driver(core, world, world.persist, world, wall_ms=WALL_MS)


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
    """Start a driver and let it come to rest."""
    nursery.start_soon(driver.run)
    await trio.testing.wait_all_tasks_blocked()
