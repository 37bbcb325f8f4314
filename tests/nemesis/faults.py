"""Carries a plan out on real processes and the links between them."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable

from kraftwire.protocol.error_codes import ErrorCode
from tests.nemesis.plan import REPLACE, Plan, Step
from tests.nemesis.replacement import Replacement
from tests.support.kafka.mixed_quorum import OURS, Member, MixedQuorum
from tests.support.nodes.links import Links

_Undo = Callable[[], None]


class Faults:
    """Breaks nodes and links of a quorum, and repairs them."""

    def __init__(self, quorum: MixedQuorum, links: Links, report: Callable[[str], None]) -> None:
        """`report` gets a line for each fault when it begins and when it ends."""
        self.done: Counter[str] = Counter()
        self._quorum = quorum
        self._links = links
        self._report = report
        self._start = time.monotonic()
        self._spared = frozenset(quorum.observers)
        # Nodes that are down, paused or cut off now; a second fault hits another node.
        self._hit: set[int] = set()
        self._replacement: Replacement | None = None

    def run(self, plan: Plan) -> None:
        """Return when the last fault of the plan is over."""
        self._start = time.monotonic()
        order = itertools.count()
        due: list[tuple[float, int, Callable[[], tuple[float, _Undo] | None]]] = []
        for step in plan.steps:
            heapq.heappush(due, (step.at, next(order), self._begin(step)))
        pause = threading.Event()
        while due:
            at, _, act = heapq.heappop(due)
            pause.wait(max(0.0, at - self._now()))
            if (follow := act()) is not None:
                after, undo = follow
                heapq.heappush(due, (self._now() + after, next(order), undo))
        if self._replacement is not None:
            self._replacement.finish()

    def _now(self) -> float:
        return time.monotonic() - self._start

    def _begin(self, step: Step) -> Callable[[], tuple[float, _Undo] | None]:
        def begin() -> tuple[float, _Undo] | None:
            member = self._victim(step)
            if member is None or (step.action == REPLACE and not self._may_replace()):
                return None
            self.done[step.action] += 1
            self._say(f"{step.action} {step.victim}: node {member.node_id} ({member.kind})")
            self._hit.add(member.node_id)
            mend = getattr(self, f"_{step.action}")(member, step)

            def undo() -> None:
                self._say(f"{step.action} of node {member.node_id} is over")
                mend()
                if step.action != REPLACE:
                    self._hit.discard(member.node_id)

            return step.lasts, undo

        return begin

    def _say(self, line: str) -> None:
        self._report(f"{self._now():6.2f} s  {line}")

    # Whom to hit

    def _victim(self, step: Step) -> Member | None:
        """The member that a step hits: of the wanted role if one of those is free."""
        voters = [one for one in self._quorum.controllers if one.node_id not in self._spared]
        free = [one for one in voters if one.node_id not in self._hit]
        if not free:
            return None
        wanted = {
            "ours": [one for one in free if one.kind == OURS],
            "java": [one for one in free if one.kind != OURS],
            "any": free,
        }
        chosen = wanted[step.victim] if step.victim in wanted else self._by_role(step, free)
        chosen = chosen or free
        return chosen[int(step.pick * len(chosen))]

    def _by_role(self, step: Step, free: list[Member]) -> list[Member]:
        leaders = [one for one in free if _leads(one)]
        if step.victim == "leader":
            return leaders
        return [one for one in free if one not in leaders]

    # What to do; each returns a function that ends the fault

    def _kill(self, member: Member, _: Step) -> _Undo:
        member.kill()
        return member.start

    def _stop(self, member: Member, _: Step) -> _Undo:
        # A leader without a quorum waits for a successor; meanwhile the plan continues.
        stopper = threading.Thread(target=member.stop)
        stopper.start()

        def start_again() -> None:
            stopper.join()
            member.start()

        return start_again

    def _pause(self, member: Member, _: Step) -> _Undo:
        member.pause()
        return member.resume

    def _replace(self, member: Member, _: Step) -> _Undo:
        self._replacement = Replacement(self._quorum, member, self._hit.discard)
        self._replacement.start()
        return lambda: None

    def _may_replace(self) -> bool:
        """One disk at a time: a second one might hold the last copy of a committed record."""
        return self._replacement is None or self._replacement.is_done

    def _isolate(self, member: Member, _: Step) -> _Undo:
        return self._cut([*self._to(member), *self._from(member)])

    def _mute(self, member: Member, _: Step) -> _Undo:
        return self._cut(self._from(member))

    def _deafen(self, member: Member, _: Step) -> _Undo:
        return self._cut(self._to(member))

    def _split(self, member: Member, step: Step) -> _Undo:
        others = self._others(member)
        other = others[int(step.pick * len(others))]
        return self._cut([(member.node_id, other), (other, member.node_id)])

    def _cut(self, pairs: list[tuple[int, int]]) -> _Undo:
        self._links.cut(*pairs)
        return lambda: self._links.heal(*pairs)

    def _to(self, member: Member) -> list[tuple[int, int]]:
        return [(other, member.node_id) for other in self._others(member)]

    def _from(self, member: Member) -> list[tuple[int, int]]:
        return [(member.node_id, other) for other in self._others(member)]

    def _others(self, member: Member) -> list[int]:
        return [i for i in self._quorum.members if i != member.node_id]


def _leads(member: Member) -> bool:
    """Whether it reports that it leads; one that is slow to answer does not count."""
    described = member.describe(1.0)
    is_leader = described is not None and described.error_code == ErrorCode.NONE
    return is_leader and described is not None and described.leader_id == member.node_id
