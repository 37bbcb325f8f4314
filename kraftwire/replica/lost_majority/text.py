"""The plan of a recovery in words: what survived, what may be missing, what will be written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT
from kraftwire.replica.lost_majority.plan import Recovery
from kraftwire.replica.lost_majority.survivors import Survivor

_VOTERS_KEY = "controller.quorum.voters"


def plan_lines(recovery: Recovery) -> Iterator[str]:
    """Yield the lines of a plan."""
    first = recovery.furthest
    yield f"cluster {first.cluster_id}, kraft.version {recovery.kraft_version}"
    yield ""
    yield "Survivors, the furthest log first:"
    for survivor in recovery.survivors:
        yield from _survivor(survivor)
    yield ""
    yield from _missing(recovery)
    yield ""
    yield from _steps(recovery)


def next_lines(recovery: Recovery) -> Iterator[str]:
    """Yield what the operator does after the recovery."""
    first, *others = recovery.survivors
    yield f"1. Start node {first.key.id}: {first.node.directories.source}"
    if recovery.kraft_version:
        yield "   It elects itself."
    for one in others:
        source = one.node.directories.source
        if recovery.kraft_version:
            yield f"2. Start node {one.key.id}: {source}"
            yield "   When it has caught up, make it a voter:"
            yield (
                "   kraftwire quorum add-controller --bootstrap-controller "
                f"{_address(recovery.voters.get(first.key.id))} --command-config {source}"
            )
        else:
            yield f"2. Start node {one.key.id}: {source}"
            yield "   It copies the log; until then the quorum commits nothing."
    yield "Never start a lost node again with its old directory: format an empty one."


def voters_line(voters: VoterSet) -> str:
    """Return the line of a properties file that names static voters."""
    return f"{_VOTERS_KEY}=" + ",".join(f"{v.key.id}@{_address(v)}" for v in voters)


def _survivor(survivor: Survivor) -> Iterator[str]:
    log, end, election = survivor.log, survivor.end, survivor.election
    kind = "voter" if survivor.voters.is_voter(survivor.key) else "observer"
    yield f"  node {survivor.key.id}, {kind}: {survivor.node.partition}"
    if not survivor.has_log:
        yield "    no metadata log"
        return
    offsets = f"offsets {log.start_offset} to {end.offset - 1}"
    if log.start_offset == end.offset:
        offsets = f"no record from offset {end.offset} on"
    yield f"    log       {offsets}, last epoch {end.epoch}"
    if log.newest_timestamp >= 0:
        newest = datetime.fromtimestamp(log.newest_timestamp / 1000, UTC)
        yield f"    newest    record of {newest:%Y-%m-%d %H:%M:%S} UTC"
    snapshot = survivor.snapshot
    if snapshot is None or snapshot == BOOTSTRAP_SNAPSHOT:
        yield "    snapshot  none"
    else:
        yield f"    snapshot  up to offset {snapshot.offset}, epoch {snapshot.epoch}"
    mark = "none, Kafka keeps none" if survivor.flushed is None else f"offset {survivor.flushed}"
    yield f"    flushed   {mark}"
    leader = election.leader_id if election.leader_id >= 0 else "none"
    yield f"    state     epoch {election.epoch}, leader {leader}, vote {_key(election.voted)}"
    for repair in survivor.repairs:
        yield f"    repair    {repair}"


def _missing(recovery: Recovery) -> Iterator[str]:
    end, known = recovery.end, recovery.committed_end
    if recovery.is_written:
        yield "An earlier run has already changed the furthest log."
    if recovery.lost:
        yield "Voters that are not among the survivors: " + ", ".join(map(_lost, recovery.lost))
    if recovery.is_complete:
        yield "Missing: nothing that was acknowledged. The survivors are a majority of the voters,"
        yield "so they can also start as they are."
        return
    yield f"Missing: cannot be known from offset {end.offset} on. Records that were acknowledged"
    yield "may exist only on the lost voters there."
    yield f"Known to be committed: all below offset {known}."
    if known < end.offset:
        yield (
            f"Offsets {known} to {end.offset - 1} are kept as this log has them; if the lost voters"
        )
        yield f"elected a leader after epoch {end.epoch}, they may have committed others there."


def _steps(recovery: Recovery) -> Iterator[str]:
    first = recovery.furthest
    if recovery.is_done:
        yield "Nothing is left to write."
        return
    yield "What --yes writes:"
    if not recovery.is_written:
        yield f"  node {first.key.id}: a copy of its metadata log is kept"
        if recovery.kraft_version:
            yield (
                f"  node {first.key.id}: a record of the voters ({first.key.id} alone) at offset "
                f"{first.end.offset}, epoch {recovery.epoch}"
            )
    yield f"  node {first.key.id}: quorum-state of epoch {recovery.epoch}, no leader, no vote"
    for one in recovery.set_aside:
        kind = "an observer" if recovery.kraft_version else "a voter"
        yield f"  node {one.key.id}: its metadata log is set aside; it starts empty, as {kind}"
    if recovery.unset:
        yield "First set this line, because the voters are not in the log:"
        yield f"  {voters_line(recovery.voters)}"
        for one in recovery.unset:
            yield f"  in {one.node.directories.source}"


def _lost(voter: Voter) -> str:
    return f"{voter.key.id} ({_address(voter)})" if voter.endpoints else str(voter.key.id)


def _address(voter: Voter | None) -> str:
    assert voter is not None
    endpoint = voter.endpoints[0]
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def _key(key: ReplicaKey | None) -> str:
    return str(key.id) if key is not None else "none"
