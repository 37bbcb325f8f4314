"""Voter sets and levels of kraft.version in the log, and requests to change them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.text import count_text, duration_text, listed, with_remarks
from kraftwire.limits import RAFT_EVENT_COUNT_MAX, RAFT_PENDING_COUNT_MAX
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.describe_quorum_response import ReplicaState
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.update_features_request import UpdateFeaturesRequest
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.voters_record import Voter, VotersRecord
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.endpoint import address_text
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.raft.model import NodeId, RaftEvent, VoterSet
from kraftwire.story.raft.nodes import Nodes
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

# A majority confirms a record much faster.
_COMMITTED_S = 1.0


@dataclass(slots=True)
class _Version:
    """A level of kraft.version in the log."""

    time: float
    offset: int
    level: int
    committed: float | None = None
    is_undone: bool = False


class Voters:
    """Gathers voter sets, levels of kraft.version, and the requests that changed them."""

    def __init__(self, nodes: Nodes) -> None:
        self.voter_sets: list[VoterSet] = []
        self.changes = VoterChanges(nodes)
        self._nodes = nodes
        self._versions: list[_Version] = []
        # Records at or above the high watermark, which are not committed.
        self._pending: list[VoterSet | _Version] = []
        self._high_watermark = -1
        self._undone: list[RaftEvent] = []

    @property
    def voters(self) -> frozenset[int]:
        """The latest known voters."""
        latest = self.latest()
        return frozenset(latest.voters) if latest else frozenset()

    def voters_at(self, time: float) -> frozenset[int]:
        """Return the voters at a time; before the first known set, the voters of that set."""
        found = self.voter_sets[:1]
        found += [each for each in self.voter_sets if each.time <= time]
        return frozenset(found[-1].voters) if found else frozenset()

    def latest(self) -> VoterSet | None:
        """Return the newest set that was not undone."""
        in_force = [each for each in self.voter_sets if not each.is_undone]
        return in_force[-1] if in_force else None

    # -- the log -------------------------------------------------------------------------------

    def note_record(self, record: VotersRecord, *, offset: int, time: float) -> None:
        """Add a voter set from the log."""
        endpoints = [(v.voter_id, e.host, e.port) for v in record.voters for e in v.endpoints]
        self._nodes.learn_endpoints(endpoints)
        if len(self.voter_sets) >= RAFT_EVENT_COUNT_MAX:
            return
        found = VoterSet(
            time,
            offset,
            {each.voter_id: _place(each) for each in record.voters},
            directories_of(record),
        )
        self.voter_sets.append(found)
        # A record that was fetched long after it was written was committed long before.
        if offset >= self._high_watermark:
            self._pending.append(found)

    def note_described(self, voters: Iterable[ReplicaState], time: float) -> None:
        """Add the voters of a DescribeQuorum answer, if they differ from the known ones."""
        directories = {
            each.replica_id: _directory_text(each.replica_directory_id) for each in voters
        }
        latest = self.latest()
        is_news = latest is None or _changes(
            latest, VoterSet(time, None, dict(directories), directories)
        )
        if is_news and len(self.voter_sets) < RAFT_EVENT_COUNT_MAX:
            places = dict.fromkeys(sorted(directories), "")
            self.voter_sets.append(VoterSet(time, None, places, directories))

    def note_version(self, level: int, *, offset: int, time: float) -> None:
        """Add a KRaftVersionRecord from the log."""
        if len(self._versions) >= RAFT_EVENT_COUNT_MAX:
            return
        found = _Version(time, offset, level)
        self._versions.append(found)
        if offset >= self._high_watermark:
            self._pending.append(found)

    def note_high_watermark(self, high_watermark: int, time: float) -> None:
        """Note that the records below a high watermark are committed."""
        if high_watermark <= self._high_watermark:
            return
        self._high_watermark = high_watermark
        pending, self._pending = self._pending, []
        for each in pending:
            if each.offset is not None and each.offset < high_watermark:
                each.committed = time
            else:
                self._pending.append(each)

    def note_truncation(self, offset: int, epoch: int, time: float) -> None:
        """Note that a newer epoch overwrote the log from an offset on."""
        undone = [
            each for each in self._pending if each.offset is not None and each.offset >= offset
        ]
        self._pending = [each for each in self._pending if each not in undone]
        for each in undone:
            each.is_undone = True
        sets = [each for each in undone if isinstance(each, VoterSet)]
        if sets and len(self._undone) < RAFT_EVENT_COUNT_MAX:
            text = f"voters are {listed(sorted(self.voters))} again"
            remarks = [f"the VotersRecord at offset {sets[0].offset} was taken back"]
            details = {"voters": sorted(self.voters), "offset": sets[0].offset}
            text = with_remarks(text, remarks)
            event = RaftEvent(time, "voters-undone", text, epoch, None, details)
            self._undone.append(event)

    # -- events --------------------------------------------------------------------------------

    def events(self) -> Iterator[RaftEvent]:
        """Yield the events of voter sets, levels of kraft.version, and requests to change them."""
        before: VoterSet | None = None
        for version in self._versions:
            yield self._version_event(version)
        for each in self.voter_sets:
            yield self._voters_event(each, before)
            if not each.is_undone:
                before = each
        yield from self._undone
        yield from self.changes.events()

    def _voters_event(self, each: VoterSet, before: VoterSet | None) -> RaftEvent:
        now = sorted(each.voters)
        remarks = [] if before is None else _changes(before, each)
        if each.offset is None:
            remarks.append("DescribeQuorum")
        else:
            remarks.append(f"VotersRecord at offset {each.offset}")
        remarks += self._fate(each)
        details: dict[str, Any] = {
            "voters": now,
            "offset": each.offset,
            "committed": each.committed,
            "isUndone": each.is_undone,
        }
        text = with_remarks(f"voters are {listed(now)}", remarks)
        return RaftEvent(each.time, "voters", text, None, None, details)

    def _version_event(self, each: _Version) -> RaftEvent:
        remarks = [f"KRaftVersionRecord at offset {each.offset}", *self._fate(each)]
        details = {
            "level": each.level,
            "offset": each.offset,
            "committed": each.committed,
            "isUndone": each.is_undone,
        }
        text = with_remarks(f"kraft.version is {each.level}", remarks)
        return RaftEvent(each.time, "kraft-version", text, None, None, details)

    def _fate(self, each: VoterSet | _Version) -> Iterator[str]:
        """Say whether and when a record was committed or undone."""
        if each.is_undone:
            yield "taken back"
        elif each.committed is not None:
            yield f"committed after {duration_text(max(0.0, each.committed - each.time))}"
        elif each.offset is not None and 0 <= self._high_watermark <= each.offset:
            until = self._nodes.recordings.until(each.time, each.time + _COMMITTED_S)
            is_recorded = until - each.time >= _COMMITTED_S
            yield "not committed" if is_recorded else "commit not recorded"


def _place(voter: Voter) -> str:
    return next((address_text((each.host, each.port)) for each in voter.endpoints), "")


def directories_of(record: VotersRecord) -> dict[int, str]:
    """Return the directory ids of the voters in a record, empty for none."""
    return {each.voter_id: _directory_text(each.voter_directory_id) for each in record.voters}


def _directory_text(id: bytes) -> str:
    return "" if id == ZERO_UUID else uuid_to_text(id)


def _changes(before: VoterSet, now: VoterSet) -> list[str]:
    """Describe the differences between two voter sets."""
    old, new = before.voters.keys(), now.voters.keys()
    found = [f"{node} joined" for node in sorted(new - old)]
    found += [f"{node} left" for node in sorted(old - new)]
    for node in sorted(old & new):
        directories = before.directories.get(node, ""), now.directories.get(node, "")
        places = before.voters[node], now.voters[node]
        if all(directories) and directories[0] != directories[1]:
            found.append(f"{node} has another directory")
        if now.offset is not None and all(places) and places[0] != places[1]:
            found.append(f"{node} moved to {places[1]}")
    return found


_KINDS = {
    "AddRaftVoter": "add-voter",
    "RemoveRaftVoter": "remove-voter",
    "UpdateFeatures": "upgrade",
    "UpdateRaftVoter": "update-voter",
}
CHANGES = frozenset(_KINDS)
_KRAFT_VERSION = "kraft.version"

# An admin client waits for request.timeout.ms, 30 s.
_ANSWERED_S = 30.0

ChangeRequest = (
    AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest | UpdateFeaturesRequest
)


@dataclass(slots=True)
class _VoterChange:
    """A request; `end` is None until it is answered.

    Without an answer, `is_missing` is whether one would have been recorded. `leader` is the node
    that received it, `passed_to` the node to which a broker passed it on; `count` requests in a row
    had the same outcome, the last one at `end`.
    """

    start: float
    kind: str
    voter: int | None
    text: str
    leader: NodeId
    is_own: bool = False
    is_waiting: bool = True
    passed_to: NodeId | None = None
    end: float | None = None
    error: int = 0
    message: str = ""
    count: int = 1
    last_start: float = 0.0
    is_missing: bool = True


class VoterChanges:
    """Gathers requests for changes and their answers."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._open: dict[tuple[str, int | None], _VoterChange] = {}
        self._all: list[_VoterChange] = []

    def on_request(self, frame: RawFrame, body: ChangeRequest) -> None:
        """Add a request for a change."""
        kind = body.NAME.removesuffix("Request")
        if isinstance(body, UpdateFeaturesRequest):
            levels = [
                each.max_version_level
                for each in body.feature_updates
                if each.feature == _KRAFT_VERSION
            ]
            if not levels:
                return
            voter, text = None, f"UpdateFeatures {_KRAFT_VERSION}={levels[-1]}"
            text += " to try it" * body.validate_only
        else:
            voter, text = body.voter_id, kind
            if not isinstance(body, RemoveRaftVoterRequest) and body.listeners:
                text += f" at {listed(f'{e.host}:{e.port}' for e in body.listeners)}"
        server = self._nodes.server(frame)
        if frame.api_key == ApiKey.ENVELOPE and self._pass_on(kind, voter, server):
            return
        change = _VoterChange(frame.time, kind, voter, text, server, last_start=frame.time)
        change.is_own = voter is not None and self._nodes.client(frame) == voter
        if isinstance(body, AddRaftVoterRequest):
            change.is_waiting = body.ack_when_committed
        if len(self._open) < RAFT_PENDING_COUNT_MAX:
            self._open[frame.connection, frame.correlation_id] = change
        if len(self._all) < RAFT_EVENT_COUNT_MAX:
            self._all.append(change)

    def on_response(self, frame: RawFrame, body: Any, _request: Message | None) -> None:
        """Add the answer to a request for a change."""
        change = self._open.pop((frame.connection, frame.correlation_id), None)
        if change is None:
            return
        change.end, change.error = frame.time, body.error_code
        change.message = getattr(body, "error_message", None) or ""
        for result in getattr(body, "results", ()):
            if result.feature == _KRAFT_VERSION and not change.error:
                change.error = result.error_code
                change.message = result.error_message or ""
        change.leader = self._nodes.server(frame)

    def _pass_on(self, kind: str, voter: int | None, server: NodeId) -> bool:
        """Note that the leader receives a request that was seen before; return whether it was."""
        for change in self._open.values():
            if (change.kind, change.voter) == (kind, voter):
                change.passed_to = server
                return True
        return False

    def events(self) -> Iterator[RaftEvent]:
        """Yield an event for each request; repeated requests with the same outcome share one."""
        latest: dict[tuple[str, int | None], _VoterChange] = {}
        folded: list[_VoterChange] = []
        for change in self._all:
            before = latest.get((change.kind, change.voter))
            if before is not None and change.error and _is_like(before, change):
                before.count += 1
                before.end, before.last_start = change.end, change.start
                continue
            latest[change.kind, change.voter] = change
            folded.append(change)
        for change in folded:
            if change.end is None:
                start = change.last_start
                until = self._nodes.recordings.until(start, start + _ANSWERED_S)
                change.is_missing = until - start >= _ANSWERED_S
            yield _event(change)


def _is_like(before: _VoterChange, change: _VoterChange) -> bool:
    return (before.text, before.leader, before.error, before.message) == (
        change.text,
        change.leader,
        change.error,
        change.message,
    )


def _event(change: _VoterChange) -> RaftEvent:
    route = f"asked of {change.leader}"
    if change.is_own:
        route += " by itself"
    if change.passed_to is not None:
        route += f", which passes it on to {change.passed_to}"
    outcome, details = _outcome(change)
    details |= {
        "leader": change.passed_to if change.passed_to is not None else change.leader,
        "byItself": change.is_own,
        "count": change.count,
    }
    text = f"{change.text}, {route}: {outcome}"
    if change.count > 1:
        lasted = duration_text(change.last_start - change.start)
        text = with_remarks(text, [f"{count_text(change.count, 'time')} in {lasted}"])
    return RaftEvent(change.start, _KINDS[change.kind], text, None, change.voter, details)


def _outcome(change: _VoterChange) -> tuple[str, dict[str, Any]]:
    if change.end is None:
        text = "no answer" if change.is_missing else "answer not recorded"
        return text, {"error": None, "message": None, "latencyMs": None}
    took = change.end - change.last_start
    details: dict[str, Any] = {
        "error": error_name(change.error),
        "message": change.message or None,
        "latencyMs": took * 1000,
    }
    text = "done" if change.is_waiting else "in the log"
    if change.error:
        text = with_remarks(error_name(change.error), [change.message] if change.message else [])
    return f"{text} after {duration_text(took)}", details
