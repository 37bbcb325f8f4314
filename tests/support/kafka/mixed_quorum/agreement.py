"""Whether the logs of several directories hold the same bytes at the same offsets."""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.records.batch import RecordBatch
from tests.support.kafka.mixed_quorum.member import Member


def check_logs(members: Iterable[Member], mark: int) -> int:
    """Compare logs byte for byte below the high watermark; returns how many batches there are.

    Logs may begin at different offsets. Those of running members have to reach the mark. The log
    of a killed member may end earlier, and in batches of an older epoch that were never
    committed. Raises: AssertionError with the node and the offset of the first difference.
    """
    known: dict[int, tuple[int, RecordBatch]] = {}
    for member in sorted(members, key=lambda member: not member.is_running):
        end = _check_one(member, known, mark)
        is_short = member.is_running and end < mark
        assert not is_short, f"node {member.node_id} ends at {end}, {mark} is committed"
    return len(known)


def _check_one(member: Member, known: dict[int, tuple[int, RecordBatch]], mark: int) -> int:
    """Compare one log with what the others have; returns where it ends."""
    end = member.folder.start_offset
    for batch in member.batches():
        offset = batch.base_offset
        if batch.last_offset >= mark:
            break
        assert offset == end, f"node {member.node_id}: after offset {end - 1} comes {offset}"
        other, same = known.setdefault(offset, (member.node_id, batch))
        if bytes(same.raw) != bytes(batch.raw):
            was_left = not member.is_running and _epoch(batch) < _epoch(same)
            assert was_left, f"nodes {other} and {member.node_id} differ at offset {offset}"
            break
        end = batch.last_offset + 1
    return end


def _epoch(batch: RecordBatch) -> int:
    return batch.partition_leader_epoch
