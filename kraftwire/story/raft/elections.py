"""Rounds of pre-votes and votes: the candidate, its reason, and each voter's answer.

Source: KIP-595 (Vote), KIP-996 (pre-vote); Kafka's `KafkaRaftClient`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.decode.text import words
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.vote_request import PartitionData as VoteRequestPartition
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.raft.model import Answer, Event, Round
from kraftwire.story.raft.nodes import Nodes
from kraftwire.story.raft.observation import NodeId, Sighting

__all__ = ["Elections"]

# After an EndQuorumEpoch, the first preferred successor starts a pre-vote at once, the others
# within controller.quorum.election.backoff.max.ms (1 s).
_HANDED_OVER_S = 1.5


class Elections:
    """Gathers the rounds of a capture, and what each node knew when it began one."""

    def __init__(self, nodes: Nodes) -> None:
        self.rounds: list[Round] = []
        self._nodes = nodes
        self._latest: dict[tuple[NodeId, int, bool], Round] = {}
        self._answered_by: dict[NodeId, tuple[float, NodeId]] = {}
        self._told_to_end: dict[NodeId, tuple[float, int]] = {}

    def note_fetched(self, replica: NodeId, leader: NodeId, time: float) -> None:
        """Note that a leader answered a replica's Fetch."""
        self._answered_by[replica] = (time, leader)

    def note_end_epoch(self, receiver: NodeId, leader: int, time: float) -> None:
        """Note that a leader told a node that its epoch ends."""
        self._told_to_end[receiver] = (time, leader)

    def see_request(self, seen: Sighting, body: VoteRequest) -> None:
        """Add a candidate's request to a voter."""
        self._nodes.learn_server(seen.server, body.voter_id)
        voter = self._nodes.server(seen)
        for partition in _partitions(body):
            self._nodes.learn_client(seen, partition.replica_id)
            current = self._round(seen.time, voter, partition)
            current.answers[voter] = Answer(seen.time)

    def see_response(self, seen: Sighting, body: VoteResponse) -> None:
        """Add a voter's answer."""
        if not isinstance(seen.request, VoteRequest):
            return
        voter = self._nodes.server(seen)
        answers = {p.partition_index: p for t in body.topics for p in t.partitions}
        for asked in _partitions(seen.request):
            key = (asked.replica_id, asked.replica_epoch, asked.pre_vote)
            current = self._latest.get(key)
            answer = current.answers.get(voter) if current else None
            found = answers.get(asked.partition_index)
            if answer is None:
                continue
            answer.time = seen.time
            answer.error = body.error_code or (found.error_code if found else 0)
            answer.is_granted = bool(found and found.vote_granted)
            if found:
                answer.epoch, answer.leader = found.leader_epoch, found.leader_id

    def _round(self, time: float, voter: NodeId, asked: VoteRequestPartition) -> Round:
        """Return the round that a request belongs to: a new one if the voter was asked before."""
        key = (asked.replica_id, asked.replica_epoch, asked.pre_vote)
        current = self._latest.get(key)
        if current is None or voter in current.answers:
            current = Round(
                time,
                asked.replica_id,
                asked.replica_epoch,
                asked.pre_vote,
                asked.last_offset,
                asked.last_offset_epoch,
                "" if not asked.pre_vote else self._reason(asked.replica_id, time),
            )
            self._latest[key] = current
            if len(self.rounds) < RAFT_EVENT_COUNT_MAX:
                self.rounds.append(current)
        return current

    def _reason(self, candidate: int, time: float) -> str:
        """Say why a node gave up on the leader, judging by the last frames that it received."""
        told = self._told_to_end.get(candidate)
        if told and time - told[0] < _HANDED_OVER_S:
            return f"leader {told[1]} ended its epoch"
        fetched = self._answered_by.get(candidate)
        if fetched is None:
            return "no leader known"
        return f"{time - fetched[0]:.1f} s after the last answer of leader {fetched[1]}"

    def events(self) -> Iterator[Event]:
        """Yield an event for each round."""
        for each in self.rounds:
            yield Event(
                each.time,
                "pre-vote" if each.is_pre_vote else "vote",
                _text(each),
                each.epoch,
                each.candidate,
                {
                    "endOffset": each.end_offset,
                    "lastEpoch": each.last_epoch,
                    "reason": each.reason or None,
                    "answers": [_answer_json(v, answer) for v, answer in each.answers.items()],
                },
            )


def _partitions(body: VoteRequest) -> Iterator[VoteRequestPartition]:
    for topic in body.topics:
        yield from topic.partitions


def _text(each: Round) -> str:
    text = "asks for pre-votes" if each.is_pre_vote else "asks for votes"
    if each.reason:
        text += f", {each.reason}"
    refused = [
        words(str(voter), _refusal(answer))
        for voter, answer in each.answers.items()
        if answer.time is not None and not answer.is_granted
    ]
    missing = [str(voter) for voter, answer in each.answers.items() if answer.time is None]
    outcomes = [
        f"{outcome} {', '.join(sorted(map(str, nodes)))}"
        for outcome, nodes in (
            ("granted by", each.granted),
            ("refused by", refused),
            ("no answer of", missing),
        )
        if nodes
    ]
    return f"{text}: {'; '.join(outcomes)}"


def _refusal(answer: Answer) -> Iterator[str]:
    if answer.error:
        yield error_name(answer.error)
        if answer.epoch >= 0:
            yield f"epoch {answer.epoch}"
    if answer.leader >= 0:
        yield f"leader {answer.leader}"


def _answer_json(voter: NodeId, answer: Answer) -> dict[str, object]:
    return {
        "voter": voter,
        "granted": answer.is_granted,
        "error": error_name(answer.error) if answer.time is not None else None,
        "epoch": answer.epoch if answer.epoch >= 0 else None,
        "leader": answer.leader if answer.leader >= 0 else None,
        "latencyMs": None if answer.time is None else (answer.time - answer.asked) * 1000,
    }
