"""Injects the accidents of a plan, and repairs the damage when they end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

from kraftwire.sim.checks.voters import Key
from kraftwire.sim.clients import Operators, VoterChange
from kraftwire.sim.clock import MS
from kraftwire.sim.environment import Environment
from kraftwire.sim.machine import Machine, leading
from kraftwire.sim.plan import LEADER, Fault

_Links = list[tuple[int, int]]


class Nemesis:
    """The accidents of a cluster. `counts` has those that happened, by kind."""

    def __init__(
        self, cluster: Environment, machines: Mapping[int, Machine], operators: Operators
    ) -> None:
        self._cluster = cluster
        self._machines = machines
        self._operators = operators
        self.counts: Counter[str] = Counter()
        self._is_over = False
        self._kinds: dict[str, Callable[[Fault, Machine], None]] = {
            "kill": self._kill,
            "power": self._power,
            "effect": self._effect,
            "cut": self._cut,
            "stop": self._stop,
            "storm": self._storm,
            "isolate": self._isolate,
            "deaf": self._deaf,
            "mute": self._mute,
            "split": self._split,
            "bridge": self._bridge,
            "oneway": self._oneway,
            "reset": self._reset,
            "pause": self._pause,
            "full": self._full,
            "broken": self._broken,
            "hunt": self._hunt,
            "wipe": self._wipe,
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "twice": self._twice,
            "upgrade": self._upgrade,
        }

    def plan(self) -> None:
        """Schedule the accidents."""
        for fault in self._cluster.plan.faults:
            self._cluster.queue.at(fault.at_ms * MS, self.strike, fault)

    def end(self) -> None:
        """Let no more accidents happen."""
        self._is_over = True

    def strike(self, fault: Fault) -> None:
        """Let an accident happen."""
        cluster = self._cluster
        node = fault.node
        if node == LEADER:
            leaders = leading(self._machines)
            node = leaders[-1].id if leaders else 1 + fault.salt % cluster.plan.nodes
        if self._is_over or node > cluster.plan.nodes:
            return
        self.counts[fault.kind] += 1
        cluster.note(f"fault {fault.kind} of {node} for {fault.length_ms} ms {fault.others or ''}")
        self._kinds[fault.kind](fault, self._machines[node])

    def _after(self, fault: Fault, action: Callable[..., None], *arguments: object) -> None:
        self._cluster.queue.after(fault.length_ms * MS, action, *arguments)

    # Processes and machines

    def _kill(self, fault: Fault, machine: Machine) -> None:
        if machine.is_up:
            machine.down_until = -1
            machine.kill()
            machine.start_later(fault.length_ms)

    def _power(self, fault: Fault, machine: Machine) -> None:
        machine.down_until = -1
        machine.lose_power()
        machine.start_later(fault.length_ms)

    def _effect(self, fault: Fault, machine: Machine) -> None:
        if machine.process is not None:
            machine.process.effects_to_crash = fault.salt % 8

    def _cut(self, fault: Fault, machine: Machine) -> None:
        machine.files.plan_cut(1 + fault.salt % 12)

    def _stop(self, _fault: Fault, machine: Machine) -> None:
        machine.stop()

    def _storm(self, fault: Fault, _machine: Machine) -> None:
        for each in self._machines.values():
            self._power(fault, each)

    def _pause(self, fault: Fault, machine: Machine) -> None:
        machine.pause()
        self._after(fault, machine.resume)

    def _hunt(self, fault: Fault, _machine: Machine) -> None:
        self._cluster.leader_killer.arm(fault)

    def _wipe(self, fault: Fault, machine: Machine) -> None:
        cluster = self._cluster
        is_safe = cluster.members.may_wipe(machine.id, cluster.checkers)
        operators = self._operators
        if not is_safe or operators.is_removing or operators.concerns(machine.id):
            return
        is_voter = cluster.checkers.models[machine.id].is_voter()
        cluster.coverage.hit("wiped: a voter" if is_voter else "wiped: an observer")
        machine.down_until = -1
        machine.lose_power()
        machine.wipe()
        machine.start_later(fault.length_ms)

    # Voters

    def _key(self, node: int) -> Key:
        return self._cluster.members.key(node)

    def _voters(self) -> list[Key]:
        """The voters, with their directory ids also where the log does not name these yet."""
        voters = self._cluster.history.voters
        return [key if any(key[1]) else self._key(key[0]) for key in voters]

    def _begin(self, *steps: VoterChange) -> None:
        self._operators.begin(*steps)

    def _add(self, fault: Fault, machine: Machine) -> None:
        """Add a node that is not a voter: this one, or else another."""
        ids = [voter[0] for voter in self._voters()]
        others = [node for node in self._machines if node not in ids]
        if others:
            node = machine.id if machine.id in others else others[fault.salt % len(others)]
            self._begin(VoterChange("add", self._key(node), is_awaited=bool(fault.salt % 3)))

    def _remove(self, fault: Fault, machine: Machine) -> None:
        """Remove a voter, this one or else another; in half of the cases add it again."""
        keys = self._voters()
        key = next((one for one in keys if one[0] == machine.id), keys[fault.salt % len(keys)])
        steps = [VoterChange("remove", key)]
        if fault.salt % 2:
            steps.append(VoterChange("add", self._key(key[0])))
        self._begin(*steps)

    def _replace(self, fault: Fault, machine: Machine) -> None:
        """Give a voter an empty disk; operators then add its new replica and remove its old one, in
        either order."""
        old = self._key(machine.id)
        if old not in self._voters():
            return
        self._wipe(fault, machine)
        new = self._key(machine.id)
        if new == old:
            return
        steps = [VoterChange("remove", old), VoterChange("add", new)]
        if fault.salt % 2:
            steps.insert(0, VoterChange("add", new))
        self._begin(*steps)

    def _twice(self, fault: Fault, machine: Machine) -> None:
        """Two operators change something at the same moment."""
        kinds = (self._add, self._remove)
        kinds[fault.salt % 2](fault, machine)
        other = self._machines[fault.others[0]]
        kinds[fault.salt // 2 % 2](fault, other)

    def _upgrade(self, _fault: Fault, machine: Machine) -> None:
        self._begin(VoterChange("upgrade", self._key(machine.id)))

    # Disks

    def _full(self, fault: Fault, machine: Machine) -> None:
        machine.files.fill(True, Random(fault.salt))
        self._after(fault, machine.files.fill, False)

    def _broken(self, _fault: Fault, machine: Machine) -> None:
        machine.files.break_next_sync()

    # Links

    def _sever(self, fault: Fault, links: _Links) -> None:
        network = self._cluster.network
        network.block(links, 1)
        self._after(fault, self._mend, links)

    def _mend(self, links: _Links) -> None:
        if not self._is_over:
            self._cluster.network.block(links, -1)

    def _others(self, node: int) -> list[int]:
        return [other for other in self._machines if other != node]

    def _isolate(self, fault: Fault, machine: Machine) -> None:
        self._deaf(fault, machine)
        self._mute(fault, machine)

    def _deaf(self, fault: Fault, machine: Machine) -> None:
        self._sever(fault, [(other, machine.id) for other in self._others(machine.id)])

    def _mute(self, fault: Fault, machine: Machine) -> None:
        self._sever(fault, [(machine.id, other) for other in self._others(machine.id)])

    def _split(self, fault: Fault, _machine: Machine) -> None:
        self._sever(fault, self._between(fault.others, set()))

    def _bridge(self, fault: Fault, machine: Machine) -> None:
        self._sever(fault, self._between(fault.others, {machine.id}))

    def _between(self, side: tuple[int, ...], spared: set[int]) -> _Links:
        """Return all links, in both directions, between the nodes of one side and the others."""
        inside = set(side) - spared
        outside = set(self._machines) - inside - spared
        return [
            link for a in sorted(inside) for b in sorted(outside) for link in ((a, b), (b, a))
        ]

    def _oneway(self, fault: Fault, machine: Machine) -> None:
        for other in fault.others:
            if other != machine.id:
                self._sever(fault, [(machine.id, other)])

    def _reset(self, _fault: Fault, machine: Machine) -> None:
        process = machine.process
        if process is None:
            return
        for call in [*process.requests.values(), *process.sent]:
            self._cluster.network.drop_connections(call)
