"""Ends the faults of a cluster in virtual time, and shows it to the checks of liveness."""

from __future__ import annotations

from dataclasses import replace

from kraftwire.sim.checks.liveness import DRIFT, HealedCluster, Link
from kraftwire.sim.checks.voters import Key
from kraftwire.sim.clients import VoterChange
from kraftwire.sim.clock import MS
from kraftwire.sim.cluster import Cluster
from kraftwire.sim.plan import Weather
from kraftwire.sim.process import Process


class RecoveredCluster(HealedCluster):
    """A cluster in virtual time after its faults."""

    def __init__(self, cluster: Cluster) -> None:
        """End all faults."""
        self._cluster = cluster
        plan, timers, weather = cluster.plan, cluster.timers, cluster.plan.weather
        self.checkers, self.timers, self.seed = cluster.checkers, timers, plan.seed
        self.nodes = self.bootstrap = cluster.machines.keys()
        self.cover = cluster.coverage.hit
        self.has_pre_votes = not plan.old_peers
        round_trip = 3 * weather.latency_ms + 4 * weather.flush_ms
        # The fetch timeout and three elections.
        self.election_ms = int(
            DRIFT * (timers.fetch_timeout_ms + 6 * timers.election_timeout_ms)
            + timers.request_timeout_ms * DRIFT
            + 6 * round_trip
        )
        # A fetch brings one batch at least, and is flushed before the next one.
        self.fetch_cost_ms = 2.6 * weather.latency_ms + 2 * weather.flush_ms
        # Messages in flight when the faults ended, and requests that still wait for their time-out.
        self.residue_ms = int(weather.tail_ms + 2 * timers.request_timeout_ms)
        self._cut: list[Link] = []
        self._heal(weather)

    def _heal(self, weather: Weather) -> None:
        cluster = self._cluster
        cluster.note("all is repaired")
        cluster.is_quiet = True
        cluster.nemesis.end()
        cluster.leader_killer.disarm()
        cluster.workload.end()
        cluster.operators.insist()
        quiet = Weather(latency_ms=weather.latency_ms, flush_ms=weather.flush_ms)
        cluster.network.heal(replace(quiet, tail_ms=weather.tail_ms))
        for machine in cluster.machines.values():
            machine.files.mend()
            if machine.process is not None:
                machine.process.effects_to_crash = None
            machine.resume()
            if not machine.is_up:
                machine.start_later(0)

    def running(self) -> dict[int, Process]:
        """Return the running replicas, by id."""
        machines = self._cluster.machines.items()
        return {node: one.process for node, one in machines if one.process is not None}

    def pass_time(self, length_ms: int) -> None:
        """Let time pass."""
        queue = self._cluster.queue
        queue.run_until(queue.now + length_ms * MS)

    def cut(self, links: list[Link]) -> None:
        """Cut links, each in one direction."""
        pairs = ", ".join(f"{sender} to {target}" for sender, target in links)
        self._cluster.note(f"no messages from {pairs}")
        self._cluster.network.block(links, 1)
        self._cut = links

    def restore(self) -> None:
        """Restore the links that were cut."""
        self._cluster.note("all messages pass again")
        self._cluster.network.block(self._cut, -1)

    def append(self, leader: int) -> None:  # noqa: ARG002
        """Let a client append at the newest leader."""
        self._cluster.workload.append()

    def applied(self, node: int) -> int | None:
        """Return the end of what a node's state machine has, None without one."""
        plan = self._cluster.plan
        has_one = plan.with_listener or plan.snapshots is not None
        return self.running()[node].state.applied if has_one else None

    def wakeups(self, node: int) -> int:
        """Return how often a timer of a node has been due."""
        return self._cluster.timer_counts[node]

    def events(self) -> int:
        """Return how many events there were; 0 if a node of another cluster sends requests."""
        return 0 if self._cluster.strangers else self._cluster.events

    def replace_disk(self, node: int) -> bool:
        """Give a node an empty disk, if the quorum can do without its old one."""
        cluster, machine = self._cluster, self._cluster.machines[node]
        if not cluster.members.may_wipe(node, cluster.checkers):
            return False
        cluster.note(f"{node} gets an empty disk")
        machine.down_until = -1
        machine.kill()
        machine.wipe()
        machine.start_later(0)
        return True

    def begin_changes(self, *changes: tuple[str, Key]) -> None:
        """Let an operator add or remove voters, in this order, until it is done."""
        self._cluster.operators.begin(*(VoterChange(kind, key) for kind, key in changes))

    def changes_left(self) -> int:
        """Return how many changes operators still want."""
        return self._cluster.operators.left
