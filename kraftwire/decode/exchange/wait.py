"""How much of a Fetch's latency was waiting for records, and how much the server's work.

A Fetch that finds no records is parked until there are some or maxWaitMs are over. What a capture
shows of that:

- An answer with an error, or to a request with maxWaitMs 0, was not parked.
- An answer without records and error was parked all the time, up to maxWaitMs.
- An answer with records was parked until they were there. Their batch says when it was made; if
  that was after the request was sent, the request has waited until then, else not at all. This
  trusts the producer's clock (or the broker's with LogAppendTime) as far as the capture's, and
  takes linger for service.

Source: Kafka's `DelayedFetch`; KIP-595 for the Fetch of KRaft, which parks in the same way.
"""

from __future__ import annotations

from typing import Any

from kraftwire.records.header import HEADER_SIZE, MAGIC_FIELD

__all__ = ["FETCH_APIS", "is_held_for_members", "wait_ms"]

# Fetch and ShareFetch.
FETCH_APIS = frozenset({1, 78})

_JOIN_GROUP, _SYNC_GROUP = 11, 14

_MAX_TIMESTAMP = slice(35, 43)
_MAGIC = 2


def wait_ms(
    request: Any, response: Any, *, asked_ms: float, latency_ms: float
) -> tuple[float, bool]:
    """How long an answered Fetch was parked, and whether the rest is known to be service.

    Units: milliseconds; `asked_ms` since the epoch. `request` and `response` are the bodies.
    """
    limit = min(latency_ms, float(request.max_wait_ms))
    if response.error_code or limit <= 0:
        return 0.0, True
    made: int | None = None
    has_error = False
    for topic in response.responses:
        for partition in topic.partitions:
            has_error = has_error or partition.error_code != 0
            records = partition.records
            if records:
                time = _made(records)
                made = time if made is None else min(made, time)
    if made is not None:
        return min(max(made - asked_ms, 0.0), limit), True
    return (0.0, True) if has_error else (limit, False)


def is_held_for_members(api_key: int | None, request: Any) -> bool:
    """Whether a coordinator answers a request only after other members of its group sent theirs.

    This is so for JoinGroup, and for the SyncGroup of a member that does not bring the
    assignments itself. A request that is refused is answered at once.
    """
    return api_key == _JOIN_GROUP or (api_key == _SYNC_GROUP and not request.assignments)


def _made(records: memoryview) -> int:
    """When the first batch was made; 0 if it does not say so in its current place."""
    if len(records) < HEADER_SIZE or records[MAGIC_FIELD] != _MAGIC:
        return 0
    return int.from_bytes(records[_MAX_TIMESTAMP], "big", signed=True)
