"""A leader counts a fetch although the logs diverge there (KAFKA-13141)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.protocol.versions import fetching_replica
from kraftwire.raft import serving
from kraftwire.raft.voters import ReplicaKey

FOUND_BY = {"S9"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Count first, look afterwards."""
    answer = serving._answer

    def hasty(state: Any, event: Any, **options: Any) -> None:
        partition = event.message.topics[0].partitions[0]
        leader = state.leader
        replica = ReplicaKey(fetching_replica(event.message), partition.replica_directory_id)
        is_current = partition.current_leader_epoch == state.role.epoch
        if leader is not None and is_current and replica.id != state.config.key.id:
            offset = min(partition.fetch_offset, state.log.end_offset)
            serving._count(state, leader, replica, state.log.batch_base(offset))
        answer(state, event, **options)

    patch.setattr(serving, "_answer", hasty)
