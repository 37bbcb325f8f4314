"""The leader of each epoch, and how the epoch ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.recorded import Recordings, TimeSpan
from kraftwire.decode.text import duration_text, listed, with_remarks
from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.story.raft.coverage import LogSilence, Span
from kraftwire.story.raft.elections import Elections
from kraftwire.story.raft.model import (
    Answer,
    LeaderOfEpoch,
    NodeId,
    RaftEvent,
    Round,
    Silence,
    partitions,
)
from kraftwire.story.raft.nodes import Nodes
from kraftwire.story.raft.replica_files import BATCHES, Evidence
from kraftwire.wire.message import Message

# Where the first record of an epoch is if the log does not have it.
BEFORE_LOG, IN_MISSING = "before the log", "in missing offsets"
# How an epoch ended, and how the next one began, if that was not recorded.
TO_RECORDED_END, NOT_RECORDED = "leads to the end of the recording", "not recorded"

# Evidence of an epoch's first moment.
_BEGINNINGS = ("BeginQuorumEpoch", "LeaderChange")
_FELL_SILENT, _RESIGNED = "fell silent", "resigned"
# A leader announces itself again in this time at the latest, so an earlier pause can hide its
# election.
_ANNOUNCED_S = 2.0
# Where nobody's packets were recorded so soon after a leader's last one, it may have gone on.
_AT_ONCE_S = 0.5

# A leader that announces itself again after this long is checking on a silent voter.
_REMINDER_S = 0.9


class Leaders:
    """Gathers the leader of every epoch in a capture or log."""

    def __init__(self, nodes: Nodes, elections: Elections) -> None:
        self.by_epoch: dict[int, LeaderOfEpoch] = {}
        self._nodes = nodes
        self._elections = elections
        self._events: list[RaftEvent] = []
        self._conflicts: set[tuple[int, NodeId]] = set()
        # (former leader, epoch) -> the voters notified, and their answers.
        self._resignations: dict[tuple[int, int], tuple[float, dict[NodeId, Answer]]] = {}

    def note_leader(self, epoch: int, leader: NodeId, time: float, seen_in: str) -> LeaderOfEpoch:
        """Note that a node leads an epoch."""
        known = self.by_epoch.get(epoch)
        if known is None:
            known = self.by_epoch[epoch] = LeaderOfEpoch(epoch, leader, time, seen_in)
        _add_source(known, seen_in)
        if known.leader == leader and seen_in != "LeaderChange":
            known.last_seen = max(time, known.last_seen or time)
        if known.leader != leader and (epoch, leader) not in self._conflicts:
            self._conflicts.add((epoch, leader))
            text = f"also called the leader of epoch {epoch}, like {known.leader}: two leaders"
            details = {"other": known.leader, "seenIn": seen_in}
            self._events.append(RaftEvent(time, "conflict", text, epoch, leader, details))
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
        known = self.note_leader(epoch, message.leader_id, time, "LeaderChange")
        if known.leader != message.leader_id:
            return
        known.start_offset = offset
        known.voters = [each.voter_id for each in message.voters]
        known.granting = [each.voter_id for each in message.granting_voters]

    # -- files ---------------------------------------------------------------------------------

    def note_evidence(self, evidence: Evidence) -> str | None:
        """Add the evidence of a file about an epoch; return a contradiction, if it makes one.

        Order: after all frames and batches.
        """
        epoch, leader = evidence.epoch, evidence.leader
        known = self.by_epoch.get(epoch)
        if known is None:
            known = self.by_epoch[epoch] = LeaderOfEpoch(epoch, leader, None, evidence.source)
        elif known.leader is None and leader is not None:
            known.leader, known.seen_in = leader, evidence.source
        _add_source(known, evidence.source)
        if known.start_offset is None:
            known.start_offset = evidence.start
        if evidence.vote is not None:
            voter, known.votes[voter] = evidence.vote[0], evidence.vote[1]
        if leader in (None, known.leader) or evidence.source == known.seen_in:
            return None  # two files of a kind are compared elsewhere
        return (
            f"{evidence.source} says that {leader} leads epoch {epoch}, and {known.seen_in} says "
            f"{known.leader}"
        )

    def note_spans(self, spans: Sequence[Span]) -> None:
        """Add the epochs of the batches of a log. Order: after `note_evidence`."""
        before: Span | None = None
        for span in spans:
            is_start = span.base == 0 if before is None else before.end == span.base
            self.note_evidence(Evidence(span.epoch, BATCHES, start=span.base if is_start else None))
            known = self.by_epoch[span.epoch]
            if known.time is None:
                known.time = span.first_time
                if known.start_offset != span.base:
                    known.begins = BEFORE_LOG if before is None else IN_MISSING
            before = span
        if before is not None:
            last = self.by_epoch[before.epoch]
            last.end_offset, last.ending = before.end, "the log ends"

    def note_snapshot_time(self, epoch: int, time: float) -> None:
        """Add when the last record in a snapshot was written. Order: after `note_spans`."""
        known = self.by_epoch.get(epoch)
        if known is not None and known.time is None:
            known.time, known.begins, known.ending = time, BEFORE_LOG, "the snapshot ends"

    def beginnings(self) -> list[tuple[float, NodeId]]:
        """Return the leaders so far, each with the time from which it is known to lead."""
        return [
            (each.time, each.leader)
            for each in self.by_epoch.values()
            if each.time is not None and each.leader is not None
        ]

    def last_voters(self) -> list[int]:
        """Return the voters that the last LeaderChange record names."""
        named = [each for each in self.by_epoch.values() if each.voters]
        return max(named, key=lambda each: each.epoch).voters if named else []

    # -- BeginQuorumEpoch ----------------------------------------------------------------------

    def on_begin(self, frame: RawFrame, body: BeginQuorumEpochRequest) -> None:
        """Add a BeginQuorumEpoch request, by which a leader announces itself to a voter."""
        self._nodes.learn_server(frame.server, body.voter_id)
        voter = self._nodes.server(frame)
        for partition in partitions(body):
            leader, epoch = partition.leader_id, partition.leader_epoch
            self._nodes.learn_client(frame, leader)
            self._nodes.learn_endpoints((leader, e.host, e.port) for e in body.leader_endpoints)
            known = self.note_leader(epoch, leader, frame.time, "BeginQuorumEpoch")
            if voter not in known.announced:
                known.announced[voter] = Answer(frame.time)
            if known.time is not None and frame.time - known.time > _REMINDER_S:
                text = f"reminds voter {voter}, which has been silent, of its leader"
                event = RaftEvent(frame.time, "reminder", text, epoch, leader, {"voter": voter})
                self._events.append(event)

    def on_begin_answer(
        self, frame: RawFrame, body: BeginQuorumEpochResponse, request: Message | None
    ) -> None:
        """Add a voter's answer: it accepts the leader, or knows a newer one."""
        if not isinstance(request, BeginQuorumEpochRequest):
            return
        voter = self._nodes.server(frame)
        requested = partitions(request)
        answered = partitions(body)
        for partition in requested:
            known = self.by_epoch.get(partition.leader_epoch)
            answer = known.announced.get(voter) if known else None
            if answer is not None and answer.time is None:
                answer.complete(frame.time, body.error_code, answered)

    # -- EndQuorumEpoch ------------------------------------------------------------------------

    def on_end(self, frame: RawFrame, body: EndQuorumEpochRequest) -> None:
        """Add an EndQuorumEpoch request, which announces to a voter the end of an epoch."""
        receiver = self._nodes.server(frame)
        for partition in partitions(body):
            leader, epoch = partition.leader_id, partition.leader_epoch
            self._nodes.learn_client(frame, leader)
            self._elections.note_end_epoch(receiver, leader, frame.time)
            key = (leader, epoch)
            time, answers = self._resignations.setdefault(key, (frame.time, {}))
            answers[receiver] = Answer(frame.time)
            known = self.by_epoch.get(epoch)
            if known is not None and known.leader == leader and known.resigned is None:
                known.resigned = time
                known.preferred = [
                    each.candidate_id for each in partition.preferred_candidates
                ] or list(partition.preferred_successors)

    def on_end_answer(
        self, frame: RawFrame, body: EndQuorumEpochResponse, request: Message | None
    ) -> None:
        """Add a voter's answer: it accepts the end of the epoch, or knows a newer epoch."""
        if not isinstance(request, EndQuorumEpochRequest):
            return
        receiver = self._nodes.server(frame)
        answered = partitions(body)
        for partition in partitions(request):
            _, answers = self._resignations.get(
                (partition.leader_id, partition.leader_epoch), (0, {})
            )
            answer = answers.get(receiver)
            if answer is not None:
                answer.complete(frame.time, body.error_code, answered)

    # -- the end -------------------------------------------------------------------------------

    def finish(
        self,
        silences: Sequence[Silence],
        log_silences: Sequence[LogSilence],
        recorded: Recordings,
        end: float,
    ) -> None:
        """Determine how each epoch ended, by what captures and the log recorded until an end.

        Order: after all frames and files.
        """
        last = {each.epoch: each for each in log_silences if each.next_epoch != each.epoch}
        order = [self.by_epoch[epoch] for epoch in sorted(self.by_epoch)]
        for known, successor in _with_successors(order):
            limit = None if successor is None else successor.time
            if known.end_offset is None:
                known.end_offset = _end_offset(known, order)
            silence = _silence_of(known, limit, silences)
            stop = end if limit is None else limit
            if silence is not None:
                known.end, known.ending = silence.start, _FELL_SILENT
            elif known.resigned is not None and (limit is None or known.resigned <= limit):
                known.end, known.ending = known.resigned, _RESIGNED
            elif known.epoch in last:
                known.end, known.ending = last[known.epoch].start, _FELL_SILENT
                known.leaderless = None if limit is None else (known.end, limit)
            elif known.last_seen is not None and (
                until := recorded.until(known.last_seen, stop)
            ) < stop:
                known.end, known.ending = until, TO_RECORDED_END
            elif successor is not None:
                known.end = _end_time(known, successor)
                known.ending = _ending(known, successor)
            self._note_gap(known, successor, recorded, end)

    def _note_gap(
        self,
        known: LeaderOfEpoch,
        successor: LeaderOfEpoch | None,
        recorded: Recordings,
        end: float,
    ) -> None:
        """Determine until when nobody led after an epoch, and whether the next one's begin is seen.
        """
        time = None if successor is None else successor.time
        holes = recorded.holes(known.end or 0.0, time) if time and known.end else []
        is_seen = successor is not None and self._is_begin_seen(successor)
        if successor is not None and holes and not is_seen:
            successor.begins, successor.not_before = NOT_RECORDED, holes[-1][0]
        if known.end is None or known.ending not in (_FELL_SILENT, _RESIGNED):
            return
        if known.leaderless is not None:
            return
        until = recorded.until(known.end, end) if time is None else time
        pauses = self._nodes.recordings.pauses(known.end, until)
        if time is not None and (holes or not is_seen):
            until = pauses[0][0] if pauses else known.end
        start = pauses[0][1] if _may_have_led(known.end, pauses) else known.end
        if until > start:
            known.leaderless = start, until

    def _is_begin_seen(self, known: LeaderOfEpoch) -> bool:
        """Return whether the election of an epoch's leader is seen, or a record has its time."""
        if known.time is None or known.begins:
            return False
        votes = [
            each.time
            for each in self._elections.rounds
            if (each.epoch, each.candidate) == (known.epoch, known.leader) and not each.is_pre_vote
        ]
        if not votes and known.seen_in not in _BEGINNINGS:
            return False
        if known.last_seen is None:
            return True  # no frame names the leader
        since = max(votes, default=known.time - _ANNOUNCED_S)
        return not self._nodes.recordings.pauses(since, known.time)

    def events(self) -> Iterator[RaftEvent]:
        """Yield elections, resignations and other events of leaders."""
        votes = {(r.epoch, r.candidate): r for r in self._elections.rounds if not r.is_pre_vote}
        before: LeaderOfEpoch | None = None
        for epoch in sorted(self.by_epoch):
            known = self.by_epoch[epoch]
            if known.time is not None and known.leader is not None:
                votes_of = votes.get((epoch, known.leader))
                yield self._elected(known, known.time, known.leader, votes_of, before)
            elif known.time is not None and BATCHES in known.sources:
                since = [f"from {known.begins} begins" if known.begins == BEFORE_LOG else (
                    f"begins {known.begins}"
                )] if known.begins else []
                text = with_remarks("is in the log; nothing names its leader", since)
                details = {"startOffset": known.start_offset, "sources": known.sources}
                yield RaftEvent(known.time, "epoch", text, epoch, None, details)
            before = known
        for (leader, epoch), (time, answers) in self._resignations.items():
            yield self._resignation(leader, epoch, time, answers)
        yield from self._events

    def _elected(
        self,
        known: LeaderOfEpoch,
        time: float,
        leader: NodeId,
        votes: Round | None,
        before: LeaderOfEpoch | None,
    ) -> RaftEvent:
        granting: list[NodeId] = list(known.granting)
        if not granting and votes is not None:
            granting = [leader, *votes.granted]
        remarks = []
        if granting:
            remarks.append(f"votes of {listed(sorted(granting, key=str))}")
        if known.announced:
            remarks.append(f"announced to {listed(sorted(known.announced, key=str))}")
        if known.start_offset is not None and "LeaderChange" in known.sources:
            remarks.append(f"LeaderChange at offset {known.start_offset}")
        if before is not None and before.leaderless and before.leaderless[1] == time:
            start = before.leaderless[0] if before.end is None else before.end
            most = "up to " if start < before.leaderless[0] else ""
            remarks.append(f"no leader for {most}{duration_text(time - start)}")
        if known.begins == NOT_RECORDED:
            not_before = time if known.not_before is None else known.not_before
            took = duration_text(time - not_before)
            remarks.append(f"elected within the {took} before, which are not recorded")
        elif known.begins:
            remarks.append(f"since {known.begins}")
        is_election = known.seen_in in _BEGINNINGS and not known.begins
        text = "is elected leader" if is_election else f"is the leader, as {known.seen_in} says"
        details = {
            "granting": granting,
            "announcedTo": list(known.announced),
            "startOffset": known.start_offset,
            "seenIn": known.seen_in,
        }
        text = with_remarks(text, remarks)
        return RaftEvent(time, "leader", text, known.epoch, leader, details)

    def _resignation(
        self, leader: int, epoch: int, time: float, answers: dict[NodeId, Answer]
    ) -> RaftEvent:
        known = self.by_epoch.get(epoch)
        fenced = {n: a for n, a in answers.items() if a.error == ErrorCode.FENCED_LEADER_EPOCH}
        details: dict[str, Any] = {
            "told": list(answers),
            "preferred": known.preferred if known else [],
            "refusedBy": list(fenced),
        }
        names = listed(sorted(answers, key=str))
        if fenced:
            answer = next(iter(fenced.values()))
            newer = f"epoch {answer.epoch}, leader {answer.leader}"
            text = f"is back and ends its epoch, but {names} know {newer}: FENCED_LEADER_EPOCH"
            return RaftEvent(time, "fenced", text, epoch, leader, details)
        text = f"resigns: EndQuorumEpoch to {names}"
        if known and known.preferred:
            text += f", preferred successors {listed(known.preferred)}"
        return RaftEvent(time, "resign", text, epoch, leader, details)


def _end_offset(known: LeaderOfEpoch, order: Sequence[LeaderOfEpoch]) -> int | None:
    """Return the end of an epoch's records: where a later epoch begins.

    None where it is not known when the next epoch begins, or if that is before this one.
    """
    later = [each.start_offset for each in order if each.epoch > known.epoch]
    if not later or later[0] is None:
        return None
    end = min(start for start in later if start is not None)
    return end if known.start_offset is None or end >= known.start_offset else None


def _may_have_led(end: float, pauses: Sequence[TimeSpan]) -> bool:
    """Return whether a leader may have gone on after its last packet that was recorded."""
    return bool(pauses) and pauses[0][0] - end < _AT_ONCE_S


def _end_time(known: LeaderOfEpoch, successor: LeaderOfEpoch) -> float | None:
    """Return when an epoch ended; None where nothing says so, or the clocks contradict it."""
    time = None if successor.begins else successor.time
    return None if time is not None and known.time is not None and time < known.time else time


def _ending(known: LeaderOfEpoch, successor: LeaderOfEpoch) -> str:
    """Say how an epoch ended. Between it and a much later one, others may have been."""
    if successor.start_offset is None and successor.epoch > known.epoch + 1 and (
        successor.begins or successor.time is None
    ):
        return f"before epoch {successor.epoch}"
    if successor.leader is None:
        return f"epoch {successor.epoch} begins"
    return f"{successor.leader} took over"


def _with_successors(
    order: Sequence[LeaderOfEpoch],
) -> Iterator[tuple[LeaderOfEpoch, LeaderOfEpoch | None]]:
    for number, known in enumerate(order):
        yield known, order[number + 1] if number + 1 < len(order) else None


def _silence_of(
    known: LeaderOfEpoch, limit: float | None, silences: Sequence[Silence]
) -> Silence | None:
    """Return a leader's silence in which its successor was elected, or which never ended."""
    for silence in silences:
        if silence.node != known.leader or known.time is None or silence.start < known.time:
            continue
        if limit is None:
            if silence.end is None:
                return silence
        elif silence.start < limit and (silence.end is None or silence.end > limit):
            return silence
    return None


def _add_source(known: LeaderOfEpoch, source: str) -> None:
    if source not in known.sources:
        known.sources.append(source)
