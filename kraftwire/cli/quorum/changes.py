"""Changes between two samples of a quorum: leaders, voters, snapshots.

Owns their wording. A change that is reversed before the next sample is missed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.client import LogInfo, QuorumInfo, ReplicaInfo
from kraftwire.client.results import NO_DIRECTORY_ID

_View = tuple[QuorumInfo, LogInfo | None]


def changes(before: _View, now: _View) -> list[str]:
    """Return one line for each change from one sample to the next."""
    return [
        *_leader_changes(before[0], now[0]),
        *_voter_changes(before[0], now[0]),
        *_log_changes(before, now),
        *_loaded_changes(before, now),
    ]


def _leader_changes(before: QuorumInfo, now: QuorumInfo) -> Iterator[str]:
    if now.leader_epoch == before.leader_epoch:
        return
    text = f"node {now.leader_id} leads epoch {now.leader_epoch}"
    if now.leader_id == before.leader_id:
        yield f"{text} and led epoch {before.leader_epoch}"
    else:
        yield f"{text}, after {before.leader_id} led epoch {before.leader_epoch}"


def _voter_changes(before: QuorumInfo, now: QuorumInfo) -> Iterator[str]:
    old, new = _by_id(before.voters), _by_id(now.voters)
    for id in sorted(new.keys() - old.keys()):
        yield f"{id} has become a voter: voters are {_ids(new)}"
    for id in sorted(old.keys() - new.keys()):
        yield f"{id} is no longer a voter: voters are {_ids(new)}"
    for id in sorted(old.keys() & new.keys()):
        was, is_ = old[id].directory_id, new[id].directory_id
        if was != is_ and is_ != NO_DIRECTORY_ID:
            yield f"voter {id} has a new directory: {is_}; it was {was}"
        places = before.endpoints.get(id, ()), now.endpoints.get(id, ())
        if all(places) and places[0] != places[1]:
            moved = ", ".join(f"{e.listener}://{e.host}:{e.port}" for e in places[1])
            yield f"voter {id} has moved to {moved}"
    known = {(each.id, each.directory_id) for each in (*before.voters, *before.observers)}
    for each in now.observers:
        if (each.id, each.directory_id) not in known:
            yield f"{each.id} has begun to fetch as an observer, at offset {each.log_end_offset}"


def _log_changes(before: _View, now: _View) -> Iterator[str]:
    """Return changes of the leader's snapshot and log start; every leader has its own."""
    was, is_ = before[1], now[1]
    if was is None or is_ is None or before[0].leader_id != now[0].leader_id:
        return
    if is_.snapshot is not None and is_.snapshot != was.snapshot:
        id = f"{is_.snapshot.offset}-{is_.snapshot.epoch}"
        yield f"leader {now[0].leader_id} has written snapshot {id}"
    if is_.start_offset > was.start_offset:
        leader = now[0].leader_id
        yield f"leader {leader} has dropped its log before offset {is_.start_offset}"


def _loaded_changes(before: _View, now: _View) -> Iterator[str]:
    """Return the replicas that needed records before the leader's log start, and now have them."""
    log = now[1]
    if log is None or log.snapshot is None:
        return
    old = {(each.id, each.directory_id): each for each in (*before[0].voters, *before[0].observers)}
    for each in (*now[0].voters, *now[0].observers):
        was = old.get((each.id, each.directory_id))
        if was is None or each.log_end_offset < log.snapshot.offset:
            continue
        # For offset 0 a leader names its snapshot even if it has the records.
        if was.log_end_offset <= 0 or was.log_end_offset < log.start_offset:
            id = f"{log.snapshot.offset}-{log.snapshot.epoch}"
            since = max(0, was.log_end_offset)
            yield f"{each.id} was at offset {since} and is past snapshot {id}: it has loaded it"


def _by_id(replicas: tuple[ReplicaInfo, ...]) -> dict[int, ReplicaInfo]:
    return {each.id: each for each in replicas}


def _ids(replicas: dict[int, ReplicaInfo]) -> str:
    return ", ".join(map(str, sorted(replicas)))
