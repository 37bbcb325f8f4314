"""Who votes: voter sets of the log, requests to change them, and snapshots that newcomers fetch.

Source: KIP-853 (dynamic quorums), KIP-630 (snapshots).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.decode.render.raft.model import Event, VoterSet
from kraftwire.decode.render.raft.nodes import Nodes
from kraftwire.decode.render.raft.sighting import NodeId, Sighting
from kraftwire.decode.render.text import duration_text, listed, size_text, words
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.protocol.error_codes import error_name

__all__ = ["Members"]


@dataclass(slots=True)
class _Download:
    """A snapshot on its way to a replica."""

    start: float
    end: float
    source: NodeId
    size: int = -1
    received: int = 0
    slices: int = 0
    error: int = 0


@dataclass(slots=True)
class _Change:
    """A request to change the voters; without answer while `end` is None."""

    start: float
    kind: str
    voter: int
    text: str
    leader: NodeId
    end: float | None = None
    error: int = 0


class Members:
    """Voter sets and what changed them."""

    def __init__(self, nodes: Nodes) -> None:
        self.voter_sets: list[VoterSet] = []
        self._nodes = nodes
        self._changes: dict[tuple[str, int], _Change] = {}
        self._done: list[_Change] = []
        # (replica, end offset, epoch) -> download.
        self._downloads: dict[tuple[NodeId, int, int], _Download] = {}

    @property
    def voters(self) -> frozenset[int]:
        """The voters that were told last."""
        return frozenset(self.voter_sets[-1].voters) if self.voter_sets else frozenset()

    def voters_at(self, time: float) -> frozenset[int]:
        """The voters at a time; before the first set is known, those of the first."""
        found = self.voter_sets[:1]
        found += [each for each in self.voter_sets if each.time <= time]
        return frozenset(found[-1].voters) if found else frozenset()

    # -- voter sets ----------------------------------------------------------------------------

    def note_record(self, record: VotersRecord, *, offset: int, time: float) -> None:
        """Note a voter set of the log."""
        endpoints = [(v.voter_id, e.host, e.port) for v in record.voters for e in v.endpoints]
        self._nodes.learn_endpoints(endpoints)
        places = {node: f"{host}:{port}" for node, host, port in reversed(endpoints)}
        voters = {each.voter_id: places.get(each.voter_id, "") for each in record.voters}
        self.voter_sets.append(VoterSet(time, offset, voters))

    def note_described(self, voters: Iterable[int], time: float) -> None:
        """Note the voters of a DescribeQuorum answer, if they are news."""
        ids = frozenset(voters)
        if ids != self.voters:
            self.voter_sets.append(VoterSet(time, None, dict.fromkeys(sorted(ids), "")))

    # -- requests ------------------------------------------------------------------------------

    def see_request(
        self,
        seen: Sighting,
        body: AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest,
    ) -> None:
        """Somebody asks the leader to change the voters."""
        kind = body.NAME.removesuffix("Request")
        text = kind
        if not isinstance(body, RemoveRaftVoterRequest) and body.listeners:
            text += f" at {listed(f'{e.host}:{e.port}' for e in body.listeners)}"
        change = _Change(seen.time, kind, body.voter_id, text, self._nodes.server(seen))
        self._changes[seen.connection, seen.correlation_id] = change
        self._done.append(change)

    def see_response(self, seen: Sighting, error: int) -> None:
        """The answer to such a request."""
        change = self._changes.pop((seen.connection, seen.correlation_id), None)
        if change is not None:
            change.end, change.error = seen.time, error
            change.leader = self._nodes.server(seen)

    # -- snapshots -----------------------------------------------------------------------------

    def see_fetch_snapshot(self, seen: Sighting, body: FetchSnapshotRequest) -> None:
        """A replica asks for a slice of a snapshot."""
        self._nodes.learn_client(seen, body.replica_id)
        for partition in (p for topic in body.topics for p in topic.partitions):
            id = partition.snapshot_id
            key = (body.replica_id, id.end_offset, id.epoch)
            if key not in self._downloads:
                source = self._nodes.server(seen)
                self._downloads[key] = _Download(seen.time, seen.time, source)

    def see_snapshot_slice(self, seen: Sighting, body: FetchSnapshotResponse) -> None:
        """A leader answers with a slice, or refuses."""
        request = seen.request
        if not isinstance(request, FetchSnapshotRequest):
            return
        for partition in (p for topic in body.topics for p in topic.partitions):
            id = partition.snapshot_id
            download = self._downloads.get((request.replica_id, id.end_offset, id.epoch))
            if download is None:
                continue
            download.end = seen.time
            download.error = body.error_code or partition.error_code
            download.size = partition.size
            download.slices += 1
            data = partition.unaligned_records
            download.received = max(download.received, partition.position + len(data or b""))

    # -- events --------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Voter sets, requests to change them, snapshots."""
        before: frozenset[int] | None = None
        for each in self.voter_sets:
            yield _voters_event(each, before)
            before = frozenset(each.voters)
        for change in self._done:
            yield _change_event(change)
        for (replica, end_offset, epoch), download in self._downloads.items():
            yield _download_event(replica, (end_offset, epoch), download)


def _voters_event(each: VoterSet, before: frozenset[int] | None) -> Event:
    now = frozenset(each.voters)
    text = f"voters are {listed(sorted(now))}"
    remarks = []
    if before is not None:
        remarks += [f"{node} joined" for node in sorted(now - before)]
        remarks += [f"{node} left" for node in sorted(before - now)]
    remarks.append(
        "DescribeQuorum" if each.offset is None else f"VotersRecord at offset {each.offset}"
    )
    details = {"voters": sorted(now), "offset": each.offset}
    return Event(each.time, "voters", words(text, remarks), None, None, details)


def _change_event(change: _Change) -> Event:
    details: dict[str, Any] = {"leader": change.leader, "error": None, "latencyMs": None}
    if change.end is None:
        outcome = "no answer"
    else:
        took = change.end - change.start
        details |= {"error": error_name(change.error), "latencyMs": took * 1000}
        outcome = error_name(change.error) if change.error else "done"
        outcome += f" after {duration_text(took)}"
    text = f"{change.text}, asked of {change.leader}: {outcome}"
    kind = {"AddRaftVoter": "add-voter", "RemoveRaftVoter": "remove-voter"}
    return Event(
        change.start, kind.get(change.kind, "update-voter"), text, None, change.voter, details
    )


def _download_event(replica: NodeId, id: tuple[int, int], download: _Download) -> Event:
    name = f"{id[0]}-{id[1]}"
    parts = [f"{size_text(download.received)} in {download.slices} slices"]
    if download.slices == 1:
        parts = [f"{size_text(download.received)} at once"]
    if download.error:
        parts.append(error_name(download.error))
    elif download.received < download.size:
        parts.append(f"of {size_text(download.size)}")
    parts.append(duration_text(download.end - download.start))
    text = words(f"fetches snapshot {name} from {download.source}", parts)
    details = {
        "endOffset": id[0],
        "snapshotEpoch": id[1],
        "size": download.size,
        "received": download.received,
        "slices": download.slices,
        "error": error_name(download.error),
    }
    return Event(download.start, "snapshot", text, None, replica, details)
