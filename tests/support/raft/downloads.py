"""A follower that its leader sends to a snapshot, and a leader that serves it in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.raft.disk import Control, snapshot_bytes
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import fetched, snapshot_part

SNAPSHOT, NEWER = OffsetAndEpoch(10, 2), OffsetAndEpoch(20, 3)
LEADER, EPOCH = 2, 3


def file_of(
    snapshot: OffsetAndEpoch = SNAPSHOT, control: Control = (), values: Sequence[bytes] = (b"v",)
) -> bytes:
    """The leader's file of this snapshot."""
    return snapshot_bytes(snapshot, control, values)


def behind(**config: Any) -> Lone:
    """Node 1 has four records of epoch 1, and follows node 2 in epoch 3."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(1), **config)
    lone.follow(LEADER, EPOCH)
    return lone


def sent_to(
    lone: Lone, snapshot: OffsetAndEpoch = SNAPSHOT, *, leader: int = LEADER, epoch: int = EPOCH
) -> list[effects.Effect]:
    """Answer its fetch: what it lacks is only in a snapshot."""
    return lone.fetch_gets(fetched(leader, epoch, snapshot=snapshot, high_watermark=12))


def part_asked_for(lone: Lone) -> tuple[OffsetAndEpoch, int]:
    """The snapshot and the position that the newest request asks for."""
    message: Any = lone.last_request.message
    assert message.NAME == "FetchSnapshotRequest", message.NAME
    [partition] = message.topics[0].partitions
    named = partition.snapshot_id
    return OffsetAndEpoch(named.end_offset, named.epoch), partition.position


def serve(lone: Lone, data: bytes, size: int, *, leader: int = LEADER, epoch: int = EPOCH) -> None:
    """Answer the newest request with this many bytes of a file."""
    snapshot, position = part_asked_for(lone)
    part = data[position : position + size]
    answer = snapshot_part(
        leader, epoch, snapshot, data=part, position=position, size=len(data)
    )
    lone.answer(lone.last_request, answer)


def take(lone: Lone, data: bytes, chunk: int = 1 << 20, **leader: int) -> list[effects.Effect]:
    """Serve the whole file and have it checked; returns the effects of the check."""
    before = len(lone.all_of(effects.FinishSnapshot))
    while len(lone.all_of(effects.FinishSnapshot)) == before:
        serve(lone, data, chunk, **leader)
    return lone.finish_snapshot()


def half_way(**config: Any) -> tuple[Lone, bytes]:
    """Seven bytes have come, and the next part is asked for."""
    lone, data = behind(**config), file_of()
    sent_to(lone)
    serve(lone, data, 7)
    assert part_asked_for(lone) == (SNAPSHOT, 7)
    return lone, data


def next_part(lone: Lone) -> tuple[OffsetAndEpoch, int]:
    """Let others answer that they do not lead, until a part is requested again."""
    for _ in range(20):
        if lone.last_request.message.NAME == "FetchSnapshotRequest":
            return part_asked_for(lone)
        if lone.last_request.destination.id != LEADER:
            lone.fetch_gets(fetched(LEADER, EPOCH, error=6))
        lone.wait(20)
    raise AssertionError("no part is requested")


def checking(**config: Any) -> Lone:
    """All bytes have come, and the file is being checked."""
    lone, data = behind(**config), file_of()
    sent_to(lone)
    serve(lone, data, len(data))
    assert lone.all_of(effects.FinishSnapshot) == [effects.FinishSnapshot(SNAPSHOT)]
    return lone


def notes(found: list[effects.Effect]) -> list[str]:
    """The keys of the lines for the log."""
    return [one.key for one in found if isinstance(one, effects.Note)]


def kinds(found: list[effects.Effect]) -> list[str]:
    """The names of the effects that concern snapshot and log."""
    names = [type(one).__name__ for one in found]
    return [one for one in names if "Snapshot" in one or "Log" in one]


def names_asked(lone: Lone, since: int = 0) -> list[str]:
    """The requests since the one of that number."""
    return [one.message.NAME.removesuffix("Request") for one in lone.requests[since:]]
