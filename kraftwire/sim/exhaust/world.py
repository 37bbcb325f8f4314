"""Clusters as tuples of numbers, and everything that can happen to them next.

A state holds the local state of every replica, which replicas wait for the answers to its open
requests, the messages in flight, what is left of the bounds, and the past. Equal tuples are equal
clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.exhaust.bounds import Bounds
from kraftwire.sim.exhaust.packets import Packets, ReplicaAction, asker
from kraftwire.sim.exhaust.replica import Commit, check_claims
from kraftwire.sim.exhaust.steps import Local, Log, Numbers, Step, Steps
from kraftwire.sim.untimed.members import UntimedMembers


class State(NamedTuple):
    """A cluster.

    `replicas` are numbers of local states; `askers` has, for every replica and every request open
    there, the waiting replica as a number of `packets.asker`; `left` is as in `Bounds.budget`;
    `woken` counts the replicas that have taken a step; `packets` are numbers, ascending.
    """

    replicas: tuple[int, ...]
    askers: tuple[tuple[int, ...], ...]
    left: tuple[int, ...]
    woken: int
    past: int
    packets: tuple[int, ...]


_RESTARTS, _VALUES, _CHANGES, _LOSSES, _COPIES = range(5)


class StateSpace:
    """Clusters within bounds.

    `on_step` is called with every step of a replica before it is taken. Order: actions are always
    listed in the same order.
    """

    def __init__(self, bounds: Bounds, steps: Steps) -> None:
        self.bounds = bounds
        self.steps = steps
        self.packets = Packets(steps)
        self._pasts: Numbers[ClusterHistory] = Numbers()
        self._learnt: dict[tuple[int, int], tuple[int, Commit | None]] = {}
        self._alike: set[tuple[Log, Log]] = set()
        self._menus: dict[tuple[int, tuple[int, ...], bool], list[ReplicaAction]] = {}
        self._dead: dict[tuple[int, int], bool] = {}
        self.on_step: Callable[[State, ReplicaAction], None] | None = None
        self._accidents_max = sum(bounds.budget)
        self._flush = steps.events.of(("flush",))

    def first(self) -> State:
        """Return the cluster after all replicas have started. Raises: Violation."""
        count = self.bounds.voters
        replicas = tuple(self.steps.first(at).number for at in range(1, count + 1))
        past = self._past(UntimedMembers(self.bounds.plan).history())
        return State(replicas, ((),) * count, self.bounds.budget, 0, past, ())

    def accidents(self, state: State) -> int:
        """Return how much of the bounds a state has used up."""
        locals_ = self.steps.locals
        epoch = max([locals_[number].epoch for number in state.replicas])
        return self._accidents_max - sum(state.left) + epoch

    # ---- what may happen

    def actions(self, state: State) -> Iterator[ReplicaAction]:
        """Return everything that may happen next."""
        # Replicas differ only by their names. So the first one to take a step is called 1, the next
        # one 2, and so on: other names lead to equivalent states.
        last = state.woken
        left = state.left
        known = -1
        for packet in state.packets:
            if packet == known:
                continue
            known = packet
            arrival = self.packets.arrival(packet)
            if arrival.at <= last:
                yield arrival
                if left[_COPIES] and not self.packets.values[packet].is_answer:
                    yield arrival._replace(stays=True, spends=_COPIES)
        asking = {self.packets.pre_votes.get(packet) for packet in state.packets} - {None}
        has_timer = len(asking) < self.bounds.asking
        for at, number in enumerate(state.replicas):
            if at <= last:
                yield from self._menu(at, number, left, has_timer)

    def ordered(self, state: State) -> list[ReplicaAction]:
        """Return everything that may happen next. Order: independent of the states seen before."""
        return sorted(self.actions(state), key=self._order)

    def _order(self, what: ReplicaAction) -> tuple[object, ...]:
        if what.packet < 0:
            return (1, *what[2:], what.at, *map(str, self.steps.events.values[what.event]))
        one = self.packets.values[what.packet]
        return (0, what.stays, *one[:4], repr(self.steps.messages.values[one.message]))

    def _menu(
        self, at: int, number: int, left: tuple[int, ...], has_timer: bool
    ) -> list[ReplicaAction]:
        """Return what may happen to a replica without a message."""
        key = number, left, has_timer
        found = self._menus.get(key)
        if found is None:
            found = self._menus[key] = list(self._own(at, number, left, has_timer))
        return found

    def _own(
        self, at: int, number: int, left: tuple[int, ...], has_timer: bool
    ) -> Iterator[ReplicaAction]:
        local, event = self.steps.locals[number], self.steps.events.of
        if local.has_flush:
            yield ReplicaAction(at, self._flush)
        if has_timer and local.has_timer:
            yield ReplicaAction(at, event(("timer",)))
        if local.leads and left[_VALUES]:
            value = self.bounds.values - left[_VALUES] + 1
            yield ReplicaAction(at, event(("append", value)), spends=_VALUES)
        if local.leads and left[_CHANGES]:
            for member in range(1, self.bounds.voters + 1):
                yield ReplicaAction(at, event(("remove", member)), spends=_CHANGES)
        if left[_RESTARTS]:
            for survivors in range(local.unflushed + 1):
                yield ReplicaAction(at, event(("restart", survivors)), spends=_RESTARTS)
        if left[_LOSSES]:
            for label in local.waits:
                yield ReplicaAction(at, event(("fail", label)), spends=_LOSSES)

    # ---- the result of an event

    def after(self, state: State, what: ReplicaAction) -> State | None:
        """Return the cluster after an event; None if that is out of bounds. Raises: Violation."""
        made = self._after(state, what)
        if made is not None and what.packet in self.packets.pre_votes:
            made = self._answer_at_once(made, what.packet)
        if made is not None and not made.left[_RESTARTS]:
            # No restart is left that could lose unflushed batches, so they are flushed at once.
            while made is not None and self.steps.locals[made.replicas[what.at]].has_flush:
                made = self._after(made, ReplicaAction(what.at, self._flush))
        return made

    def _answer_at_once(self, state: State, packet: int) -> State | None:
        """Let the answer to a pre-vote arrive at once: it changes only the replica that asked."""
        request = self.packets.values[packet]
        for one in state.packets:
            answer = self.packets.values[one]
            if answer.is_answer and answer[1:4] == request[1:4]:
                return self._after(state, self.packets.arrival(one))
        return state

    def _after(self, state: State, what: ReplicaAction) -> State | None:
        at, event, packet, stays, spends = what
        locals_ = self.steps.locals
        local = locals_[state.replicas[at]]
        if self.on_step is not None:
            self.on_step(state, what)
        step = local.steps.get(event) or self.steps.step(local, event)
        if step.violation is not None:
            raise step.violation
        after = step.local
        if after is None:
            return None
        packets, askers = self._messages(state, at, step, packet, stays)
        left = state.left
        if spends >= 0:
            left = (*left[:spends], left[spends] - 1, *left[spends + 1 :])
        replicas = state.replicas
        if after is not local:
            replicas = (*replicas[:at], after.number, *replicas[at + 1 :])
            if after.log != local.log:
                self._compare(replicas, after)
        past = state.past
        if step.claims:
            past = self._learn(past, step.claims, replicas)
        woken = state.woken + (at == state.woken)
        if not self.packets.late.isdisjoint(packets):
            packets = tuple([one for one in packets if not self._is_dead(one, replicas)])
        return State(replicas, askers, left, woken, past, packets)

    def _messages(
        self, state: State, at: int, step: Step, packet: int, stays: bool
    ) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """Return packets and askers after a step."""
        known, own = self.packets, at + 1
        packets, askers, waiting = state.packets, state.askers, 0
        if packet >= 0 and not stays:
            place = packets.index(packet)
            packets = packets[:place] + packets[place + 1 :]
            waiting = known.waiting[packet]
        if step.moved:
            packets = known.relabelled(packets, own, step)
            moved = {asker(own, old): asker(own, new) for old, new in step.moved.items()}
            askers = tuple([tuple([moved.get(one, one) for one in row]) for row in askers])
        new = known.sent(own, step)
        before = askers[at]
        for place, message in step.replies:
            asker_of = before[place] if place >= 0 else waiting
            answer = known.answer(asker_of, own, message, packet if place < 0 else -1)
            if answer is not None:
                new = (*new, answer)
        if new:
            packets = tuple(sorted(packets + new))
        if step.opened or before:
            opened = tuple([before[place] if place >= 0 else waiting for place in step.opened])
            askers = (*askers[:at], opened, *askers[own:])
        return packets, askers

    def _is_dead(self, packet: int, replicas: tuple[int, ...]) -> bool:
        if packet not in self.packets.late:
            return False
        number = replicas[self.packets.values[packet].target - 1]
        found = self._dead.get((packet, number))
        if found is None:
            local = self.steps.locals[number]
            found = self._dead[packet, number] = self.packets.is_dead(packet, local)
        return found

    # ---- checks of the whole cluster

    def history(self, state: State) -> ClusterHistory:
        """Return what the replicas of a cluster have made known."""
        return self._pasts.values[state.past]

    def _past(self, history: ClusterHistory) -> int:
        return self._pasts.of(history, history.key())

    def _learn(self, past: int, claimed: int, replicas: tuple[int, ...]) -> int:
        """Return the past after a step. Raises: Violation."""
        found = self._learnt.get((past, claimed))
        if found is None:
            claims = self.steps.claims.values[claimed]
            history, commit = check_claims(self._pasts.values[past], claims)
            found = self._learnt[past, claimed] = self._past(history), commit
        number, commit = found
        if commit is not None:
            history = self._pasts.values[number]
            last = history.committed[-1]
            all_replicas = [self.steps.locals[one] for one in replicas]
            holding = [one.key for one in all_replicas if last in one.durable]
            history.commits_on(*commit, holding)
        return number

    def _compare(self, replicas: tuple[int, ...], after: Local) -> None:
        """Check S6 and S13 for the present logs of two replicas. Raises: Violation."""
        for number in replicas:
            other = self.steps.locals[number]
            pair = after.log, other.log
            if other is not after and pair not in self._alike:
                history = ClusterHistory((), 0)
                for one in (other, after):
                    before = 0
                    for entry in one.log:
                        history.writes(one.at, entry, before)
                        before = entry.epoch
                self._alike.add(pair)
