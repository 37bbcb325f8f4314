"""Kills leaders at the worst moments: just elected, just appended, after one follower has fetched,
just committed.

Uniformly random crashes hardly ever hit these critical moments of replication.
"""

from __future__ import annotations

from random import Random
from typing import Protocol

from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.voters import is_member
from kraftwire.sim.clock import MS, EventQueue
from kraftwire.sim.coverage import Coverage
from kraftwire.sim.network import Call
from kraftwire.sim.plan import HUNT_STAGES, Fault, Plan


class _Process(Protocol):
    """The run of a node; the power fails after `effects_to_crash` more effects."""

    effects_to_crash: int | None


class Victim(Protocol):
    """A machine that the leader_killer may crash."""

    id: int
    run: int
    down_until: int

    @property
    def process(self) -> _Process | None:
        """The current run of its node."""

    def kill(self) -> None:
        """End the process."""

    def lose_power(self) -> None:
        """Stop the machine."""

    def start_later(self, delay_ms: int) -> None:
        """Start the node after a delay."""


class LeaderKiller:
    """Waits for the moment of the fault that armed it."""

    def __init__(
        self, plan: Plan, queue: EventQueue, checkers: Checkers, coverage: Coverage
    ) -> None:
        self._queue = queue
        self._checkers = checkers
        self._coverage = coverage
        self._stages = HUNT_STAGES if plan.has_changes else HUNT_STAGES[:-1]
        self._stage = ""
        self._until = 0
        self._down_ms = 0
        self._random = Random(f"hunter {plan.seed}")
        self._appended: int | None = None

    def arm(self, fault: Fault) -> None:
        """Hunt until the fault ends."""
        self._stage = self._stages[fault.salt % len(self._stages)]
        self._until = self._queue.now + fault.length_ms * MS
        self._down_ms = 100 + fault.salt // 7 % (2 * fault.length_ms)
        self._appended = None

    def disarm(self) -> None:
        """Stop hunting."""
        self._stage = ""

    def elected(self, machine: Victim) -> None:
        """A leader was elected."""
        if self._stage == "elected":
            self._strike(machine)

    def appended(self, machine: Victim, *, has_changed: bool) -> None:
        """A leader wrote to its log; `has_changed` is True if that changed the voters."""
        if self._stage == "append" or (self._stage == "change" and has_changed):
            self._strike(machine)
        elif self._stage == "fetch":
            self._appended = machine.id

    def served(self, machine: Victim, call: Call) -> None:
        """A leader sent records to a follower."""
        if self._stage == "fetch" and self._appended == machine.id:
            models = self._checkers.models
            if is_member(models[machine.id].voters, models[call.sender.id].key):
                self._strike(machine)

    def committed(self, machine: Victim) -> None:
        """A leader's high watermark advanced."""
        if self._stage == "commit":
            self._strike(machine)

    def _strike(self, machine: Victim) -> None:
        cluster, self._stage = self._stage, ""
        if self._queue.now > self._until:
            return
        self._coverage.hit(f"hunted: {cluster}")
        # Some of the remaining effects of this step may still be carried out.
        process = machine.process
        if process is not None and self._random.random() < 0.5:
            process.effects_to_crash = self._random.randrange(4)
        delay = 0 if cluster != "fetch" else int(self._random.random() * 3 * MS)
        self._queue.after(delay, self._kill, machine, machine.run)

    def _kill(self, machine: Victim, run: int) -> None:
        if machine.run != run:
            return
        machine.down_until = -1
        if self._random.random() < 0.5:
            machine.kill()
        else:
            machine.lose_power()
        machine.start_later(self._down_ms)
