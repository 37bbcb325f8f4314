"""Checks liveness once the faults have ended: a leader, progress, and no busy loop.

Invariants L1-L10. Units: virtual milliseconds; bounds allow for clock drift.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from kraftwire.raft.voters import ReplicaKey
from kraftwire.sim.checks.voters import Voters
from kraftwire.sim.clients import Step
from kraftwire.sim.clock import MS
from kraftwire.sim.cluster import Cluster
from kraftwire.sim.invariants import Violation
from kraftwire.sim.machine import Machine
from kraftwire.sim.plan import Weather

_STEP_MS = 20
_CATCH_UP_MS = 5_000
_IDLE_MS = 3_000
_CHANGE_MS = 6_000
_TIMERS_PER_SECOND_MAX = 20
_DRIFT = 1.3

# Each split vote costs an epoch; more than this many in a row are not bad luck.
_EPOCHS_PER_LOSS_MAX = 6


def check_liveness(cluster: Cluster) -> bool:
    """Heal a cluster and check that it recovers, makes progress, and copes with further losses.

    Returns: False if the cluster needs an operator.

    Operators may have replaced the disks of a majority by mistake, and a voter that does not know
    of its removal may stand for election in epochs after the leader's forever: then nothing more is
    checked.
    """
    try:
        _check(_Phase(cluster))
    except _LostError as lost:
        cluster.coverage.hit(str(lost))
        return False
    return True


def _check(phase: _Phase) -> None:
    phase.heal()
    phase.finish_changes()
    phase.elect("after the faults", phase.residue_ms + phase.election_ms)
    phase.catch_up()
    phase.idle()
    trials = [phase.lose_follower, phase.lose_leader] if phase.can_lose_one() else []
    if phase.can_change():
        trials.append(phase.change)
    if trials:
        Random(f"trial {phase.cluster.plan.seed}").choice(trials)()
        phase.catch_up()


class _LostError(Exception):
    """The cluster needs an operator. The text is the situation."""


class _Phase:
    """The heal phase of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        timers = cluster.timers
        round_trip = 3 * cluster.plan.weather.latency_ms + 4 * cluster.plan.weather.flush_ms
        # From the loss of a leader to the next one: the fetch timeout and three elections.
        self.election_ms = int(
            _DRIFT * (timers.fetch_timeout_ms + 6 * timers.election_timeout_ms)
            + timers.request_timeout_ms * _DRIFT
            + 6 * round_trip
        )
        # A fetch brings one batch at least, and is flushed before the next one.
        self.fetch_cost_ms = 2.6 * cluster.plan.weather.latency_ms
        self.fetch_cost_ms += 2 * cluster.plan.weather.flush_ms
        # Messages in flight when the faults ended, and requests that still wait for their time-out.
        self.residue_ms = int(cluster.plan.weather.tail_ms + 2 * timers.request_timeout_ms)
        self.fetch_ms = timers.fetch_timeout_ms
        self._quiet_at = 0
        plan = cluster.plan
        self._has_listeners = plan.with_listener or plan.snapshots is not None

    def heal(self) -> None:
        """End all faults."""
        cluster = self.cluster
        cluster.note("all is repaired")
        cluster.is_quiet = True
        cluster.nemesis.end()
        cluster.leader_killer.disarm()
        cluster.workload.end()
        weather = cluster.plan.weather
        if weather.tail or weather.duplicate:
            self._quiet_at = cluster.queue.now + weather.tail_ms * MS
        quiet = Weather(latency_ms=weather.latency_ms, flush_ms=weather.flush_ms)
        cluster.network.heal(replace(quiet, tail_ms=weather.tail_ms))
        for machine in cluster.machines.values():
            machine.files.mend()
            if machine.process is not None:
                machine.process.effects_to_crash = None
            machine.resume()
            if not machine.is_up:
                machine.start_later(0)

    def finish_changes(self) -> None:
        """Wait until all voter changes that operators want are made. L4."""
        operators = self.cluster.operators
        operators.insist()
        step_ms = self.election_ms + _CHANGE_MS + int(self._backlog() * self.fetch_cost_ms)
        limit = self.residue_ms + (1 + operators.left) * step_ms
        if not operators.is_idle:
            self.cluster.coverage.hit("changes finished in peace")
        self._wait("L4", "some change of the voters is not made", limit, lambda: operators.is_idle)

    def elect(self, when: str, limit_ms: int) -> Machine:
        """Wait for a leader that all follow. L1."""
        self._wait("L1", f"no leader that all follow {when}", limit_ms, self._is_united)
        return self.cluster.leaders()[-1]

    def catch_up(self) -> None:
        """Append once more and wait until all have everything, state machines too. L2, L3."""
        cluster = self.cluster
        cluster.workload.append()
        limit = _CATCH_UP_MS + self._backlog() * self.fetch_cost_ms
        self._wait("L2", "some replica does not catch up", int(limit), self._is_caught_up)
        for machine in cluster.machines.values():
            process = machine.process
            if process is not None and (process.appends or process.waiting):
                raise Violation("L3", f"appends at {machine.id} are neither done nor refused")

    def idle(self) -> None:
        """Send no requests, and check that nothing happens. L1, L9, L10."""
        cluster = self.cluster
        epoch = self._epoch()
        timers, events = dict(cluster.timer_counts), cluster.events
        self._pass(_IDLE_MS)
        if self._epoch() != epoch or not cluster.leaders():
            raise Violation("L1", f"epoch {epoch} ended without a reason")
        for node in cluster.machines:
            count = cluster.timer_counts[node] - timers.get(node, 0)
            if count > _TIMERS_PER_SECOND_MAX * _IDLE_MS / 1000 * _DRIFT:
                raise Violation("L9", f"{node} woke {count} times in {_IDLE_MS} idle ms")
        busy = (cluster.events - events) / cluster.plan.nodes
        # A node of another cluster keeps sending requests, which must be answered.
        limit = 4 * _TIMERS_PER_SECOND_MAX * cluster.plan.nodes * _IDLE_MS / 1000
        if busy > limit and not cluster.strangers:
            raise Violation("L9", f"{busy:.0f} events for each idle node in {_IDLE_MS} ms")
        for machine in cluster.machines.values():
            waiting = len(machine.process.calls) if machine.process else 0
            if waiting > 4 * cluster.plan.nodes:
                raise Violation("L10", f"{machine.id} keeps {waiting} requests")

    def can_change(self) -> bool:
        """Whether the voters can change."""
        return bool(self.cluster.history.version) and self.cluster.plan.nodes > 1

    def change(self) -> None:
        """Replace a disk, and make the node a voter, whether it was one or not. L4, L5."""
        cluster = self.cluster
        random = Random(f"change {cluster.plan.seed}")
        node = random.choice(list(cluster.machines))
        machine = cluster.machines[node]
        steps = [Step("remove", key) for key in self._voters() if key[0] == node]
        if cluster.members.may_wipe(node, cluster.checkers):
            cluster.note(f"{node} gets an empty disk")
            cluster.coverage.hit("disk replaced in peace")
            machine.down_until = -1
            machine.kill()
            machine.wipe()
            machine.start_later(0)
        elif not steps or len(self._voters()) < 2:
            return
        cluster.operators.begin(*steps, Step("add", cluster.members.key(node)))
        self.finish_changes()
        self.elect(f"after {node} was replaced", self.residue_ms + self.election_ms)
        self._wait("L5", f"{node} does not become a voter", _CATCH_UP_MS, lambda: _votes(machine))

    def can_lose_one(self) -> bool:
        """Return whether the quorum can lose any one of its members."""
        cluster = self.cluster
        voters, leader = self._voters(), cluster.leaders()[-1]
        is_whole = all(cluster.members.is_alive(key) for key in voters)
        leads_as_voter = any(key[0] == leader.id for key in voters)
        return len(voters) >= 3 and is_whole and leads_as_voter and not cluster.plan.old_peers

    def _voters(self) -> Voters:
        return self.cluster.history.voters

    def lose_follower(self) -> None:
        """Disconnect one follower and reconnect it: the others must not be affected. L8."""
        cluster = self.cluster
        leader = cluster.leaders()[-1]
        epoch = self._epoch()
        node = next(v[0] for v in self._voters() if v[0] != leader.id)
        links = self._links(node)
        cluster.note(f"{node} is cut off")
        cluster.network.block(links, 1)
        self._pass(3 * self.fetch_ms)
        cluster.network.block(links, -1)
        cluster.note(f"{node} is back")
        self._pass(2 * self.fetch_ms)
        if self._epoch() != epoch or not leader.process or leader.process.role != "leader":
            raise Violation("L8", f"{node} came back and ended epoch {epoch} of {leader.id}")
        cluster.coverage.hit("follower came back")
        self.elect(f"after {node} came back", self.residue_ms + self.election_ms)

    def lose_leader(self) -> None:
        """Disconnect the leader: it resigns, the others elect another, it returns. L1, L6, L7."""
        cluster = self.cluster
        # A fetch from before the faults ended may still arrive, and counts.
        cluster.queue.run_until(max(cluster.queue.now, self._quiet_at))
        leader = cluster.leaders()[-1]
        epoch = self._epoch()
        links = self._links(leader.id)
        cluster.note(f"leader {leader.id} is cut off")
        cluster.network.block(links, 1)
        limit = int(1.5 * self.fetch_ms * _DRIFT) + 200
        what = f"isolated leader {leader.id} keeps leading"
        self._wait("L7", what, limit, lambda: not _leads(leader))
        cluster.coverage.hit("isolated leader resigned")
        self._wait("L1", "no new leader", self.election_ms, lambda: bool(cluster.leaders()))
        cluster.network.block(links, -1)
        self.elect(f"after {leader.id} came back", self.residue_ms + self.election_ms)
        burnt = self._epoch() - epoch
        if burnt > _EPOCHS_PER_LOSS_MAX:
            raise Violation("L6", f"{burnt} epochs for one lost leader")

    def _wait(self, invariant: str, problem: str, limit_ms: int, done: Callable[[], bool]) -> None:
        queue = self.cluster.queue
        end = queue.now + limit_ms * MS
        period = 2 * self.election_ms * MS
        look, seen = queue.now + period, -1
        while not done():
            is_over = queue.now >= end
            if is_over and not self.cluster.checkers.can_elect():
                raise _LostError("nobody can be elected")
            if is_over or queue.now >= look:
                # Only an operator can end what has lasted this long under one leader.
                look += period
                before, seen = seen, self._epoch_without_removed()
                if seen >= 0 and (is_over or seen == before):
                    raise _LostError("a removed voter cuts itself off")
            if is_over:
                raise Violation(invariant, f"{problem}, {limit_ms} ms")
            queue.run_until(queue.now + _STEP_MS * MS)

    def _epoch_without_removed(self) -> int:
        """Return the epoch of the leader if a removed voter cuts itself off, else -1."""
        leaders = self.cluster.leaders()
        process = leaders[-1].process if leaders else None
        if process is None or not cuts_itself_off(self.cluster):
            return -1
        return process.epoch

    def _pass(self, time_ms: int) -> None:
        queue = self.cluster.queue
        queue.run_until(queue.now + time_ms * MS)

    def _epoch(self) -> int:
        return max(model.stored.epoch for model in self.cluster.checkers.models.values())

    def _backlog(self) -> int:
        """Return how many batches the slowest replica lacks."""
        models, history = self.cluster.checkers.models.values(), self.cluster.history
        longest = max(models, key=lambda model: model.end)
        least = min(model.end for model in models)
        committed = sum(entry.end > least for entry in history.committed)
        return committed + len(longest.above(max(least, history.frontier), longest.end))

    def _links(self, node: int) -> list[tuple[int, int]]:
        others = [other for other in self.cluster.machines if other != node]
        return [link for other in others for link in ((node, other), (other, node))]

    def _is_united(self) -> bool:
        leaders = self.cluster.leaders()
        if not leaders:
            return False
        leader = leaders[-1]
        if leader.process is None or not leader.process.core.is_voter:
            return False
        epoch = leader.process.epoch
        return all(
            machine.process is not None
            and machine.process.core.leader_id == leader.id
            and machine.process.core.epoch == epoch
            and machine.process.core.role == ("leader" if machine is leader else "follower")
            for machine in self.cluster.machines.values()
        )

    def _is_caught_up(self) -> bool:
        cluster = self.cluster
        leaders = cluster.leaders()
        if not leaders or leaders[-1].process is None:
            return False
        end = leaders[-1].process.core.end_offset
        return all(
            machine.process is not None
            and not machine.process.appends
            and machine.process.core.high_watermark == end
            and machine.process.core.end_offset == end
            and (not self._has_listeners or machine.process.state.applied == end)
            for machine in cluster.machines.values()
        )


def cuts_itself_off(cluster: Cluster) -> bool:
    """Return whether a voter without pre-votes that missed its removal is in an epoch after the
    leader's.

    It does not know of its removal, or not that it is committed. It or a peer in its outdated set
    does not support pre-votes, so it stands at once, epoch after epoch (R-VOTE-10). No voter
    follows it there, and the leader refuses its fetches.
    """
    leaders = cluster.leaders()
    if not leaders or leaders[-1].process is None:
        return False
    leader = leaders[-1].process
    running = [one.process for one in cluster.machines.values() if one.process is not None]
    late = [one for one in running if one.core.epoch > leader.core.epoch]
    is_voter = leader.core.voters.is_voter
    return not any(is_voter(ReplicaKey(*cluster.members.key(one.id))) for one in late) and any(
        node in cluster.plan.old_peers for one in late for node in (one.id, *one.core.voters.voters)
    )


def _votes(machine: Machine) -> bool:
    return machine.process is not None and machine.process.core.is_voter


def _leads(machine: Machine) -> bool:
    return machine.process is not None and machine.process.role == "leader"
