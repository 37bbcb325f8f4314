"""Elections: the rounds of votes and pre-votes."""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.recorded import host_pair
from kraftwire.decode.text import with_remarks
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.vote_request import PartitionData as VoteRequestPartition
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.raft.model import Answer, NodeId, RaftEvent, Round, partitions
from kraftwire.story.raft.nodes import Nodes
from kraftwire.wire.message import Message

# After an EndQuorumEpoch, the first preferred successor starts a pre-vote at once, the others
# within controller.quorum.election.backoff.max.ms (1 s).
_HANDED_OVER_S = 1.5

# A voter that answers does so within controller.quorum.request.timeout.ms.
_ANSWERED_S = 2.0

_NO_ANSWER = "no answer of a leader is recorded before"


class Elections:
    """Gathers the rounds of a capture, and what each node knew when it began one."""

    def __init__(self, nodes: Nodes) -> None:
        self.rounds: list[Round] = []
        self._nodes = nodes
        self._latest: dict[tuple[NodeId, int, bool], Round] = {}
        self._last_answers: dict[NodeId, tuple[float, NodeId]] = {}
        self._last_ends: dict[NodeId, tuple[float, int]] = {}

    def note_fetched(self, replica: NodeId, leader: NodeId, time: float) -> None:
        """Note that a leader answered a replica's Fetch."""
        self._last_answers[replica] = (time, leader)

    def note_end_epoch(self, receiver: NodeId, leader: int, time: float) -> None:
        """Note that a node received EndQuorumEpoch from a leader."""
        self._last_ends[receiver] = (time, leader)

    def on_request(self, frame: RawFrame, body: VoteRequest) -> None:
        """Add a candidate's request to a voter."""
        self._nodes.learn_server(frame.server, body.voter_id)
        voter = self._nodes.server(frame)
        for partition in partitions(body):
            self._nodes.learn_client(frame, partition.replica_id)
            current = self._round(frame.time, voter, partition)
            current.answers[voter] = Answer(frame.time, pair=host_pair(frame.connection))

    def on_response(
        self, frame: RawFrame, body: VoteResponse, request: Message | None
    ) -> None:
        """Add a voter's answer."""
        if not isinstance(request, VoteRequest):
            return
        voter = self._nodes.server(frame)
        answers = {each.partition_index: each for each in partitions(body)}
        for partition in partitions(request):
            key = (partition.replica_id, partition.replica_epoch, partition.pre_vote)
            current = self._latest.get(key)
            answer = current.answers.get(voter) if current else None
            found = answers.get(partition.partition_index)
            if answer is None:
                continue
            answer.complete(frame.time, body.error_code, [found] if found else [])
            answer.is_granted = bool(found and found.vote_granted)

    def _round(self, time: float, voter: NodeId, partition: VoteRequestPartition) -> Round:
        """Return the round that a request belongs to: a new one for a second request."""
        key = (partition.replica_id, partition.replica_epoch, partition.pre_vote)
        current = self._latest.get(key)
        if current is None or voter in current.answers:
            current = Round(
                time,
                partition.replica_id,
                partition.replica_epoch,
                partition.pre_vote,
                partition.last_offset,
                partition.last_offset_epoch,
                self._reason(partition.replica_id, partition.replica_epoch, time)
                if partition.pre_vote else "",
            )
            self._latest[key] = current
            if len(self.rounds) < RAFT_EVENT_COUNT_MAX:
                self.rounds.append(current)
        return current

    def _reason(self, candidate: int, epoch: int, time: float) -> str:
        """Say why a node gave up on the leader, judging by the last frames that it received."""
        ended = self._last_ends.get(candidate)
        if ended and time - ended[0] < _HANDED_OVER_S:
            return f"leader {ended[1]} ended its epoch"
        fetched = self._last_answers.get(candidate)
        if fetched is None:
            # Only in epoch 0 there cannot have been one before the recording.
            return _NO_ANSWER if epoch else "no leader known"
        is_whole = not self._nodes.recordings.pauses(fetched[0], time)
        last = "the last answer" if is_whole else "the last recorded answer"
        return f"{time - fetched[0]:.1f} s after {last} of leader {fetched[1]}"

    def finish(self) -> None:
        """Determine which answers are missing: those that would have been recorded."""
        for answer in (a for each in self.rounds for a in each.answers.values()):
            start = answer.request_time
            if answer.time is None:
                pauses = self._nodes.recordings.pauses(start, start + _ANSWERED_S, answer.pair)
                answer.is_missing = not pauses

    def events(self) -> Iterator[RaftEvent]:
        """Yield an event for each round."""
        for each in self.rounds:
            yield RaftEvent(
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


def _text(each: Round) -> str:
    text = "asks for pre-votes" if each.is_pre_vote else "asks for votes"
    if each.reason:
        text += f", {each.reason}"
    refused = [
        with_remarks(str(voter), _refusal(answer))
        for voter, answer in each.answers.items()
        if answer.time is not None and not answer.is_granted
    ]
    without = [each for each in each.answers.items() if each[1].time is None]
    missing = [str(voter) for voter, answer in without if answer.is_missing]
    not_recorded = [str(voter) for voter, answer in without if not answer.is_missing]
    outcomes = [
        f"{outcome} {', '.join(sorted(map(str, nodes)))}"
        for outcome, nodes in (
            ("granted by", each.granted),
            ("refused by", refused),
            ("no answer of", missing),
            ("answer not recorded:", not_recorded),
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
        "isRecorded": answer.time is not None or answer.is_missing,
        "epoch": answer.epoch if answer.epoch >= 0 else None,
        "leader": answer.leader if answer.leader >= 0 else None,
        "latencyMs": None if answer.time is None else (answer.time - answer.request_time) * 1000,
    }
