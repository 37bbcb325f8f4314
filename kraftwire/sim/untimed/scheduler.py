"""Chooses what happens next in an untimed cluster, by the weights of its plan."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from itertools import accumulate
from random import Random

from kraftwire.sim.untimed.bootstrap_states import bootstrap_actions
from kraftwire.sim.untimed.plan import UntimedPlan
from kraftwire.sim.untimed.world import Action, UntimedWorld

_TRIES = 8

# How rarely a late message arrives, or a time-out passes while an answer is in flight.
_STALE = 0.95
_PATIENCE = 0.75


class Scheduler:
    """Chooses among the possible events, at random from a seed."""

    def __init__(self, plan: UntimedPlan, world: UntimedWorld) -> None:
        self._world = world
        self._nodes = list(plan.nodes)
        self._voters = plan.voters
        self._bootstrap = bootstrap_actions(plan, world)
        self._random = Random(f"choices {plan.seed}")
        makers: dict[str, Callable[[], Action | None]] = {
            "deliver": self._deliver,
            "again": self._again,
            "fail": self._fail,
            "timer": self._timer,
            "oversleep": lambda: ("oversleep", self._any()),
            "work": self._work,
            "fail_work": self._fail_work,
            "append": self._append,
            "crash": lambda: ("crash", self._any(), self._random.randrange(3)),
            "cut": self._cut,
            "start": self._start,
            "part": self._part,
            "heal": lambda: ("heal",),
            "resign": lambda: ("resign", self._leader()),
            "stop": lambda: ("stop", self._any()),
            "snapshot": lambda: ("snapshot", self._any()),
            "retain": lambda: ("retain", self._any(), self._random.randrange(3)),
            "add": lambda: ("add", self._leader(), self._any()),
            "remove": self._remove,
            "wipe": lambda: ("wipe", self._any()),
            "upgrade": lambda: ("upgrade", self._leader()),
        }
        kinds = [kind for kind in makers if plan.weights.get(kind, 0) > 0]
        self._makers = [makers[kind] for kind in kinds]
        self._sums = list(accumulate(plan.weights[kind] for kind in kinds))

    def next(self) -> Action | None:
        """Return an event that may apply now; None if none was found in a few tries.

        Those that lead to the bootstrap state come first.
        """
        first = next(self._bootstrap, None)
        if first is not None:
            return first
        for _ in range(_TRIES):
            chosen = bisect(self._sums, self._random.random() * self._sums[-1])
            what = self._makers[chosen]()
            if what is not None:
                return what
        return None

    def _any(self) -> int:
        return self._random.choice(self._nodes)

    def _leader(self) -> int:
        """Return a node that believes it leads, if there is one: mostly the newest."""
        leading = [n for n in self._world.nodes.values() if n.role == "leader"]
        if not leading or self._random.random() < 0.05:
            return self._any()
        return max(leading, key=lambda node: node.epoch).id

    def _deliver(self) -> Action | None:
        pending = self._world.calls.pending
        if not pending:
            return None
        call = self._random.choice(pending)
        # A message for which nobody waits arrives late, and rarely.
        if not call.is_awaited and self._random.random() < _STALE:
            return None
        return ("deliver", call.name) if self._world.passes(call) else None

    def _again(self) -> Action | None:
        pending = self._world.calls.pending
        requests = [one for one in pending if one.answer is None and one.is_awaited]
        return ("again", self._random.choice(requests).name) if requests else None

    def _fail(self) -> Action | None:
        awaited = self._world.calls.awaited()
        return ("fail", self._random.choice(awaited).name) if awaited else None

    def _timer(self) -> Action | None:
        at = self._any()
        node = self._world.nodes.get(at)
        if node is None or node.due is None:
            return None
        # Most messages are faster than time-outs.
        calls = self._world.calls.pending
        is_heard = any(at == call.name[0] and call.is_awaited for call in calls)
        return None if is_heard and self._random.random() < _PATIENCE else ("timer", at)

    def _work(self) -> Action | None:
        busy = [node for node in self._world.nodes.values() if node.work]
        if not busy:
            return None
        node = self._random.choice(busy)
        return "work", node.id, self._random.choice(node.work).kind

    def _fail_work(self) -> Action | None:
        what = self._work()
        is_snapshot = what is not None and what[2] in ("write", "finish")
        return ("fail_work", *what[1:]) if what is not None and is_snapshot else None

    def _append(self) -> Action | None:
        at = self._leader()
        node = self._world.nodes.get(at)
        if node is None or node.role != "leader":
            return None
        return "append", at, self._random.choice((1, 1, 1, 2, 3))

    def _cut(self) -> Action:
        return "cut", self._any(), self._random.randrange(5), self._random.randrange(3)

    def _start(self) -> Action | None:
        dead = [node for node in self._nodes if node not in self._world.nodes]
        return ("start", self._random.choice(dead)) if dead else None

    def _part(self) -> Action | None:
        """Choose a partition: two sides, one isolated node, or single links."""
        nodes, random = self._nodes, self._random
        if len(nodes) < 2:
            return None
        style = random.randrange(3)
        if style == 0:
            side = set(random.sample(nodes, random.randint(1, len(nodes) - 1)))
            links = [(a, b) for a in nodes for b in nodes if (a in side) != (b in side)]
        elif style == 1:
            lone = random.choice(nodes)
            links = [(a, b) for a in nodes for b in nodes if a != b and lone in (a, b)]
        else:
            everything = [(a, b) for a in nodes for b in nodes if a != b]
            links = sorted(random.sample(everything, random.randint(1, len(everything))))
        return "part", tuple(links)

    def _remove(self) -> Action:
        return "remove", self._leader(), self._any(), int(self._random.random() < 0.3)
