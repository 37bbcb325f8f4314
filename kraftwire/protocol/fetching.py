"""Which replica sent a Fetch, whichever field of the request carries its id."""

from __future__ import annotations

from kraftwire.messages.fetch_request import FetchRequest

__all__ = ["fetching_replica"]


def fetching_replica(request: FetchRequest) -> int:
    """Return the id of the replica that fetches, -1 for a consumer.

    Version 15 moved the id into a tagged struct; of the two fields, the one that a version lacks
    holds its default (KIP-903).
    """
    state = request.replica_state
    return request.replica_id if state is None else state.replica_id
