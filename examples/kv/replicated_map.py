"""A map that every node of a quorum has: an entry that a majority has stored is never lost.

`ReplicatedMap` is the state machine; copy it and put your own state in place of the dictionary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from kraftwire.node.app import Node
from kraftwire.node.config import NodeConfig
from kraftwire.records.batch import RecordBatch
from kraftwire.replica import SnapshotReader


class ReplicatedMap:
    """One node's copy of the map, and the node that runs it."""

    def __init__(self, config: NodeConfig) -> None:
        self.node = Node(config, state_machine=self)
        self.id = config.node_id
        self.leader_id = -1
        self.epoch = 0
        self.snapshot = ""  # the one that this copy was loaded from
        self._values: dict[str, str] = {}

    async def put(self, key: str, value: str) -> None:
        """Set a value, and wait until a majority has it. Raises: ApiError if this node does not
        lead."""
        record = json.dumps([key, value]).encode()
        offset = await self.node.append([record], epoch=self.epoch)
        await self.node.committed(offset, epoch=self.epoch)

    def get(self, key: str) -> str | None:
        """Return the value in this copy; the leader's copy may be newer."""
        return self._values.get(key)

    # What the node calls: see kraftwire/replica/state_machine.py

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        """Apply committed batches."""
        for batch in batches:
            if not batch.is_control:
                self._values.update(_pairs([batch]))

    def load(self, snapshot: SnapshotReader) -> None:
        """Replace everything by a snapshot (in a worker thread)."""
        self._values, self.snapshot = dict(_pairs(snapshot)), str(snapshot.id)

    def freeze(self) -> Iterable[bytes]:
        """Return the current map for a snapshot (a worker thread iterates over it later)."""
        pairs = list(self._values.items())
        return (json.dumps(pair).encode() for pair in pairs)

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        """Record who leads; only the leader may put."""
        del end_offset  # to write at an exact offset, begin here
        self.leader_id, self.epoch = leader_id, epoch


def _pairs(batches: Iterable[RecordBatch]) -> Iterable[tuple[str, str]]:
    return (json.loads(record.value or b"") for batch in batches for record in batch.records())
