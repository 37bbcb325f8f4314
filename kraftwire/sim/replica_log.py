"""One replica's log as checkers see it.

A batch is the same object in all logs that hold it, and refers to the batch before it. So two logs
agree up to a position if they hold the same object there, and then the same voters are in force in
both.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from kraftwire.records.header import CONTROL, LOG_OVERHEAD, fields
from kraftwire.sim.voters import InForce, Key

_HEAD = fields("base_offset", "batch_length", "partition_leader_epoch", "last_offset_delta")
_ATTRIBUTES = fields("attributes")


@dataclass(slots=True, eq=False)
class Batch:
    """A batch, the same object in every log.

    `end` is the offset after it; `in_force` is the voter set and version that count once it is in a
    log.
    """

    base: int
    end: int
    epoch: int
    data: bytes
    previous: Batch | None
    in_force: InForce

    @staticmethod
    def read(
        where: tuple[int, int, int], data: bytes, previous: Batch | None, initial: InForce
    ) -> Batch:
        """A batch with this base offset, end offset and epoch; `initial` is in force before the
        first batch of a log."""
        in_force = previous.in_force if previous is not None else initial
        if _ATTRIBUTES.unpack_from(data)[0] & CONTROL:
            in_force = in_force.follow(data)
        return Batch(*where, data, previous, in_force)


@dataclass(slots=True)
class ReplicaLog:
    """A replica's log, with the batches up to which it is durable and known to be committed.

    `initial` is in force while there are no batches. `high_watermark` is the largest of this run,
    `verified` the number of batches that are known to be the committed ones. Below `start` the
    replica has only a snapshot.
    """

    key: Key
    initial: InForce
    batches: list[Batch] = field(default_factory=list)
    durable: int = 0
    verified: int = 0
    start: int = 0
    high_watermark: int = -1

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.batches[-1].end if self.batches else 0

    @property
    def durable_end(self) -> int:
        """The offset below which the log is durable."""
        return self.batches[self.durable - 1].end if self.durable else 0

    @property
    def last(self) -> tuple[int, int]:
        """Epoch of the last batch and log end offset, which votes compare."""
        return (self.batches[-1].epoch, self.batches[-1].end) if self.batches else (0, 0)

    @property
    def in_force(self) -> InForce:
        """What is in effect: the latest in the log, committed or not; until the log has voters, the
        initial ones of this replica."""
        in_force = self.batches[-1].in_force if self.batches else self.initial
        return in_force if in_force.version else self.initial

    @property
    def may_stand(self) -> bool:
        """Whether this replica may stand for election: it is a voter, or its removal is in its log
        but not known to be committed."""
        in_force = self.in_force
        if in_force.has(self.key):
            return True
        is_open = in_force.offset >= self.high_watermark
        return is_open and in_force.before is not None and in_force.before.has(self.key)


def digest(before: bytes, data: bytes) -> bytes:
    """Return the digest of a state machine after applying a batch."""
    return hashlib.blake2b(before + data, digest_size=16).digest()


def split(data: bytes | memoryview) -> list[tuple[int, int, int, bytes]]:
    """Yield (base offset, end offset, leader epoch, bytes) of consecutive whole batches."""
    base, length, epoch, delta = _HEAD.unpack_from(data)
    if length + LOG_OVERHEAD == len(data):
        return [(base, base + delta + 1, epoch, bytes(data))]
    found = []
    position = 0
    while position < len(data):
        base, length, epoch, delta = _HEAD.unpack_from(data, position)
        end = position + length + LOG_OVERHEAD
        found.append((base, base + delta + 1, epoch, bytes(data[position:end])))
        position = end
    return found
