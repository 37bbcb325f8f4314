"""The leader of each epoch: announcements, resignations, and how each epoch ended.

Source: KIP-595 (BeginQuorumEpoch, EndQuorumEpoch); Kafka's `LeaderState` and `ResignedState`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kraftwire.decode.text import duration_text, listed, words
from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.story.raft.elections import Elections
from kraftwire.story.raft.model import Answer, Event, LeaderOfEpoch, Round, Silence
from kraftwire.story.raft.nodes import Nodes
from kraftwire.story.raft.observation import NodeId, Sighting

__all__ = ["Leaders"]

# A leader that announces itself again after this long is checking on a silent voter.
_REMINDER_S = 0.9


class Leaders:
    """Gathers the leader of every epoch in a capture or log."""

    def __init__(self, nodes: Nodes, elections: Elections) -> None:
        self.by_epoch: dict[int, LeaderOfEpoch] = {}
        self._nodes = nodes
        self._elections = elections
        self._events: list[Event] = []
        self._conflicts: set[tuple[int, NodeId]] = set()
        # (former leader, epoch) -> the voters that it told, and their answers.
        self._goodbyes: dict[tuple[int, int], tuple[float, dict[NodeId, Answer]]] = {}

    def note(self, epoch: int, leader: NodeId, time: float, seen_in: str) -> LeaderOfEpoch:
        """Note that a node leads an epoch."""
        known = self.by_epoch.get(epoch)
        if known is None:
            known = self.by_epoch[epoch] = LeaderOfEpoch(epoch, leader, time, seen_in)
        elif known.leader != leader and (epoch, leader) not in self._conflicts:
            self._conflicts.add((epoch, leader))
            text = f"also called the leader of epoch {epoch}, like {known.leader}: two leaders"
            details = {"other": known.leader, "seenIn": seen_in}
            self._events.append(Event(time, "conflict", text, epoch, leader, details))
        return known

    def note_high_watermark(self, epoch: int, high_watermark: int) -> None:
        """Note a high watermark that the leader of an epoch has sent."""
        known = self.by_epoch.get(epoch)
        if known is None or high_watermark < 0:
            return
        if known.first_high_watermark is None:
            known.first_high_watermark = high_watermark
        known.high_watermark = max(high_watermark, known.high_watermark or 0)

    def note_change(
        self, message: LeaderChangeMessage, *, epoch: int, offset: int, time: float
    ) -> None:
        """Note a LeaderChange record of the log."""
        known = self.note(epoch, message.leader_id, time, "LeaderChange")
        known.start_offset = offset
        known.voters = [each.voter_id for each in message.voters]
        known.granting = [each.voter_id for each in message.granting_voters]

    # -- BeginQuorumEpoch ----------------------------------------------------------------------

    def see_begin(self, seen: Sighting, body: BeginQuorumEpochRequest) -> None:
        """Add a BeginQuorumEpoch request, by which a leader announces itself to a voter."""
        self._nodes.learn_server(seen.server, body.voter_id)
        voter = self._nodes.server(seen)
        for partition in (p for topic in body.topics for p in topic.partitions):
            leader, epoch = partition.leader_id, partition.leader_epoch
            self._nodes.learn_client(seen, leader)
            self._nodes.learn_endpoints((leader, e.host, e.port) for e in body.leader_endpoints)
            known = self.note(epoch, leader, seen.time, "BeginQuorumEpoch")
            if voter not in known.announced:
                known.announced[voter] = Answer(seen.time)
            if seen.time - known.time > _REMINDER_S:
                text = f"reminds voter {voter}, which has been silent, of its leader"
                event = Event(seen.time, "reminder", text, epoch, leader, {"voter": voter})
                self._events.append(event)

    def see_begin_answer(self, seen: Sighting, body: BeginQuorumEpochResponse) -> None:
        """Add a voter's answer: it accepts the leader, or knows a newer one."""
        if not isinstance(seen.request, BeginQuorumEpochRequest):
            return
        voter = self._nodes.server(seen)
        asked = [p for topic in seen.request.topics for p in topic.partitions]
        told = [p for topic in body.topics for p in topic.partitions]
        for partition in asked:
            known = self.by_epoch.get(partition.leader_epoch)
            answer = known.announced.get(voter) if known else None
            if answer is not None and answer.time is None:
                _fill(answer, seen.time, body.error_code, told)

    # -- EndQuorumEpoch ------------------------------------------------------------------------

    def see_end(self, seen: Sighting, body: EndQuorumEpochRequest) -> None:
        """Add an EndQuorumEpoch request, by which a leader tells a voter that its epoch ends."""
        receiver = self._nodes.server(seen)
        for partition in (p for topic in body.topics for p in topic.partitions):
            leader, epoch = partition.leader_id, partition.leader_epoch
            self._nodes.learn_client(seen, leader)
            self._elections.note_end_epoch(receiver, leader, seen.time)
            key = (leader, epoch)
            time, told = self._goodbyes.setdefault(key, (seen.time, {}))
            told[receiver] = Answer(seen.time)
            known = self.by_epoch.get(epoch)
            if known is not None and known.leader == leader and known.resigned is None:
                known.resigned = time
                known.preferred = [
                    each.candidate_id for each in partition.preferred_candidates
                ] or list(partition.preferred_successors)

    def see_end_answer(self, seen: Sighting, body: EndQuorumEpochResponse) -> None:
        """Add a voter's answer: it accepts the end of the epoch, or knows a newer epoch."""
        if not isinstance(seen.request, EndQuorumEpochRequest):
            return
        receiver = self._nodes.server(seen)
        told = [p for topic in body.topics for p in topic.partitions]
        for partition in (p for topic in seen.request.topics for p in topic.partitions):
            _, answers = self._goodbyes.get((partition.leader_id, partition.leader_epoch), (0, {}))
            answer = answers.get(receiver)
            if answer is not None:
                _fill(answer, seen.time, body.error_code, told)

    # -- the end -------------------------------------------------------------------------------

    def finish(self, silences: Sequence[Silence]) -> None:
        """Determine how each epoch ended.

        Order: after all frames.
        """
        order = [self.by_epoch[epoch] for epoch in sorted(self.by_epoch)]
        for index, known in enumerate(order):
            successor = order[index + 1] if index + 1 < len(order) else None
            limit = None if successor is None else successor.time
            silence = _silence_of(known, limit, silences)
            if silence is not None:
                known.end, known.ending = silence.start, "fell silent"
            elif known.resigned is not None and (limit is None or known.resigned <= limit):
                known.end, known.ending = known.resigned, "resigned"
            elif successor is not None:
                known.end, known.ending = successor.time, f"{successor.leader} took over"

    def events(self, rounds: Iterable[Round]) -> Iterator[Event]:
        """Yield elections, resignations and other events of leaders."""
        votes = {(r.epoch, r.candidate): r for r in rounds if not r.is_pre_vote}
        before: LeaderOfEpoch | None = None
        for epoch in sorted(self.by_epoch):
            known = self.by_epoch[epoch]
            yield self._elected(known, votes.get((epoch, known.leader)), before)
            before = known
        for (leader, epoch), (time, told) in self._goodbyes.items():
            yield self._goodbye(leader, epoch, time, told)
        yield from self._events

    def _elected(
        self, known: LeaderOfEpoch, votes: Round | None, before: LeaderOfEpoch | None
    ) -> Event:
        granting: list[NodeId] = list(known.granting)
        if not granting and votes is not None:
            granting = [known.leader, *votes.granted]
        remarks = []
        if granting:
            remarks.append(f"votes of {listed(sorted(granting, key=str))}")
        if known.announced:
            remarks.append(f"announced to {listed(sorted(known.announced, key=str))}")
        if known.start_offset is not None:
            remarks.append(f"LeaderChange at offset {known.start_offset}")
        if before is not None and before.end is not None and known.time > before.end:
            remarks.append(f"no leader for {duration_text(known.time - before.end)}")
        is_election = known.seen_in in ("BeginQuorumEpoch", "LeaderChange")
        text = "is elected leader" if is_election else f"is the leader, as {known.seen_in} says"
        details = {
            "granting": granting,
            "announcedTo": list(known.announced),
            "startOffset": known.start_offset,
            "seenIn": known.seen_in,
        }
        text = words(text, remarks)
        return Event(known.time, "leader", text, known.epoch, known.leader, details)

    def _goodbye(
        self, leader: int, epoch: int, time: float, told: dict[NodeId, Answer]
    ) -> Event:
        known = self.by_epoch.get(epoch)
        fenced = {n: a for n, a in told.items() if a.error == ErrorCode.FENCED_LEADER_EPOCH}
        details: dict[str, Any] = {
            "told": list(told),
            "preferred": known.preferred if known else [],
            "refusedBy": list(fenced),
        }
        names = listed(sorted(told, key=str))
        if fenced:
            answer = next(iter(fenced.values()))
            newer = f"epoch {answer.epoch}, leader {answer.leader}"
            text = f"is back and ends its epoch, but {names} know {newer}: FENCED_LEADER_EPOCH"
            return Event(time, "fenced", text, epoch, leader, details)
        text = f"resigns: EndQuorumEpoch to {names}"
        if known and known.preferred:
            text += f", preferred successors {listed(known.preferred)}"
        return Event(time, "resign", text, epoch, leader, details)


def _silence_of(
    known: LeaderOfEpoch, limit: float | None, silences: Sequence[Silence]
) -> Silence | None:
    """Return a leader's silence in which its successor was elected, or which never ended."""
    for silence in silences:
        if silence.node != known.leader or silence.start < known.time:
            continue
        if limit is None:
            if silence.end is None:
                return silence
        elif silence.start < limit and (silence.end is None or silence.end > limit):
            return silence
    return None


def _fill(answer: Answer, time: float, error: int, partitions: Sequence[Any]) -> None:
    answer.time = time
    answer.error = error
    for partition in partitions:
        answer.error = error or partition.error_code
        answer.epoch, answer.leader = partition.leader_epoch, partition.leader_id
