"""The messages in flight of a searched cluster, and whether they may be forgotten."""

from __future__ import annotations

from typing import NamedTuple

from kraftwire.sim.exhaust.replica import NOBODY
from kraftwire.sim.exhaust.steps import Local, Numbers, Step, Steps
from kraftwire.wire.message import Message

# Requests that arrive even if nobody waits for the answer; all others are lost then.
_LATE = ("VoteRequest", "BeginQuorumEpochRequest")

# Answers without any news unless they report an error: these are lost.
_ACKNOWLEDGEMENTS = ("BeginQuorumEpochResponse", "EndQuorumEpochResponse")

_LABELS = 1_000
_LOST = -1


def asker(replica: int, label: int) -> int:
    """Return one number for a replica and the label of its request; 0 if nobody waits."""
    return replica * _LABELS + label if label != NOBODY else 0


class Packet(NamedTuple):
    """A message in flight: a request of `asker`, or the answer to it.

    Nobody waits for the answer if `label` is `NOBODY`.
    """

    is_answer: bool
    asker: int
    target: int
    label: int
    message: int


class ReplicaAction(NamedTuple):
    """An event that may happen to replica `at`, counted from 0.

    `packet` arrives, -1 for none, and stays in flight if `stays`; `spends` is the place of the
    bound that it uses up, -1 for none.
    """

    at: int
    event: int
    packet: int = -1
    stays: bool = False
    spends: int = -1


class Packets:
    """All packets of the search, by number.

    `late` are requests for whose answers nobody waits; `pre_votes` has the replicas that ask for
    pre-votes; `waiting` those that wait for the answer to a packet, as `asker` has it.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._numbers: Numbers[Packet] = Numbers()
        self.values = self._numbers.values
        self.late: set[int] = set()
        self.waiting: list[int] = []
        self.pre_votes: dict[int, int] = {}
        self._arrivals: list[ReplicaAction] = []
        self._firsts: dict[int, bool] = {}
        self._nothings: dict[tuple[int, int], bool] = {}

    def _number(self, packet: Packet) -> int:
        number = self._numbers.of(packet)
        if number == len(self.waiting):
            self.waiting.append(0 if packet.is_answer else asker(packet.asker, packet.label))
            if packet.label == NOBODY:
                self.late.add(number)
            if not packet.is_answer and self._asks_first(packet.message):
                self.pre_votes[number] = packet.asker
            what = ("answer", packet.label) if packet.is_answer else ("request",)
            event = self._steps.events.of((*what, packet.message))
            to = packet.asker if packet.is_answer else packet.target
            self._arrivals.append(ReplicaAction(to - 1, event, number))
        return number

    def arrival(self, packet: int) -> ReplicaAction:
        """Return the arrival of a packet."""
        return self._arrivals[packet]

    def sent(self, sender: int, step: Step) -> tuple[int, ...]:
        """Return the requests that a step sends and that are not lost."""
        if step.sent is None:
            found = (self._request(sender, *one) for one in step.sends)
            step.sent = tuple([one for one in found if one != _LOST])
        return step.sent

    def _request(self, sender: int, target: int, label: int, message: int) -> int:
        name = self._steps.messages.values[message].NAME
        if label == NOBODY and (name not in _LATE or self._asks_first(message)):
            return _LOST
        return self._number(Packet(False, sender, target, label, message))

    def answer(self, waiting: int, target: int, message: int, request: int) -> int | None:
        """Return the packet of an answer; None if it is lost.

        `request` is the packet that just arrived, -1 if the request arrived earlier.
        """
        if not waiting or self._is_nothing(message, request):
            return None
        by, label = divmod(waiting, _LABELS)
        return self._number(Packet(True, by, target, label, message))

    def relabelled(self, packets: tuple[int, ...], sender: int, step: Step) -> tuple[int, ...]:
        """Return the packets after their sender waits for other answers; some are lost then."""
        again = step.again
        found = []
        for packet in packets:
            new = again.get(packet)
            if new is None:
                new = again[packet] = self._again(packet, sender, step.moved)
            if new != _LOST:
                found.append(new)
        found.sort()
        return tuple(found)

    def _again(self, packet: int, sender: int, moved: dict[int, int]) -> int:
        one = self.values[packet]
        if one.asker != sender or one.label not in moved:
            return packet
        label = moved[one.label]
        if label != NOBODY:
            return self._number(one._replace(label=label))
        if one.is_answer:
            return _LOST
        return self._request(one.asker, one.target, NOBODY, one.message)

    def is_dead(self, packet: int, local: Local) -> bool:
        """Whether a request for whose answer nobody waits can never change a replica.

        It never will if it changes nothing now: it is of no later epoch, in that epoch the replica
        has voted or knows who leads or has a newer log, and no epoch comes back.
        """
        event = self._arrivals[packet].event
        step = local.steps.get(event) or self._steps.step(local, event)
        return step.local is not None and step.local.form == local.form and not step.sends

    def _is_nothing(self, message: int, request: int) -> bool:
        """Whether an answer has nothing that its receiver needs."""
        before = self.values[request].message if request >= 0 else -1
        found = self._nothings.get((message, before))
        if found is None:
            values = self._steps.messages.values
            found = _is_acknowledgement(values[message]) or (
                before >= 0 and _is_refusal(values[message], values[before])
            )
            self._nothings[message, before] = found
        return found

    def _asks_first(self, message: int) -> bool:
        found = self._firsts.get(message)
        if found is None:
            found = _is_pre_vote(self._steps.messages.values[message])
            self._firsts[message] = found
        return found


def _is_pre_vote(message: Message) -> bool:
    return message.NAME == "VoteRequest" and bool(message.topics[0].partitions[0].pre_vote)  # type: ignore[attr-defined]


def _is_acknowledgement(message: Message) -> bool:
    if message.NAME not in _ACKNOWLEDGEMENTS:
        return False
    topics = message.topics  # type: ignore[attr-defined]
    return bool(topics) and not topics[0].partitions[0].error_code


def _is_refusal(message: Message, request: Message) -> bool:
    """Whether an answer only refuses a vote.

    A replica that still waits for pre-votes need not learn of the leader that it has given up.
    """
    if message.NAME != "VoteResponse":
        return False
    answer = message.topics[0].partitions[0] if message.topics else None  # type: ignore[attr-defined]
    epoch = request.topics[0].partitions[0].replica_epoch  # type: ignore[attr-defined]
    return (
        answer is not None
        and (answer.error_code, answer.vote_granted) == (0, False)
        and answer.leader_epoch == epoch
        and (answer.leader_id < 0 or _is_pre_vote(request))
    )
