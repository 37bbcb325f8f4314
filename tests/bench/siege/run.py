"""The siege: one quorum, one honest client, one attack after the other, and the bars.

Before each attack there is a time without any, so that its effect can be compared with the state
right before it; all of these together are the undisturbed run.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import trio

from kraftwire.limits import CONNECTION_BYTES_MAX
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_cluster_response import DescribeClusterResponse
from kraftwire.node.admission import (
    EVICTED_BYTES_MIN,
    OPEN_CONNECTION_BYTES,
    OPEN_REQUEST_BYTES,
    TLS_CONNECTION_BYTES,
)
from tests.bench.report import Bar, console, print_bars, print_table
from tests.bench.siege import watch
from tests.bench.siege.attacks import ATTACKS
from tests.bench.siege.honest import Commits, change_voters, commit_steadily, lengthen_log, upgrade
from tests.bench.siege.logins import ALL_ATTACKS, LOGIN_ATTACKS
from tests.bench.siege.peer import ask, log_in_by
from tests.bench.siege.secured import SecuredQuorum
from tests.bench.siege.target import Target
from tests.support.kafka.process import free_ports
from tests.support.nodes.process import NodeQuorum

__all__ = ["run"]

ATTACKS_VARIABLE = "KRAFTWIRE_BENCH_ATTACKS"
SECONDS_VARIABLE = "KRAFTWIRE_BENCH_SECONDS"

DESCRIPTORS = 6000
UNDISTURBED_SECONDS = 4.0
RECOVERY_SECONDS_MAX = 12.0
CHANGE_SECONDS_MAX = 10.0

_WARM_UP_SECONDS = 5.0
# More than one Fetch response can hold, and less than triggers a snapshot.
_LOG_BYTES = 12 * 1024 * 1024
# The attackers' start-up: imports, and making the requests.
_ATTACKER_START_SECONDS = 1.5
_LOOK_SECONDS = 0.25
# This many commits in a row as fast as the undisturbed ones: then the attack's effect is over.
_CALM_COMMITS = 8
# Connections that nodes and honest clients may have opened since, each with a request.
_OTHERS = 2
_CONNECTION_BYTES = OPEN_CONNECTION_BYTES + TLS_CONNECTION_BYTES + OPEN_REQUEST_BYTES
_MEMORY_FOLDER = "/dev/shm"
_MIB = 1024 * 1024


@dataclass(slots=True)
class Outcome:
    """The effect of one attack. Units: milliseconds, seconds, bytes more than before.

    `change` is how long an honest change of the voters took, where one was made.
    """

    name: str
    commits: int
    p50: float
    p99: float
    failed: int
    elections: int
    peak: int
    left: int
    recovery: float
    change: float | None = None


def run(*, is_secured: bool = False) -> list[Bar]:
    """Measure, print, and return the bars that were missed.

    `is_secured` nodes have TLS and logins, and are attacked there too.
    """
    chosen = LOGIN_ATTACKS | ATTACKS if is_secured else ATTACKS
    names = os.environ.get(ATTACKS_VARIABLE, ",".join(chosen)).split(",")
    seconds = float(os.environ.get(SECONDS_VARIABLE, "8"))
    make = SecuredQuorum if is_secured else NodeQuorum
    with tempfile.TemporaryDirectory(dir=_folder()) as folder, make(Path(folder)) as quorum:
        siege = _Siege(quorum)
        undisturbed, outcomes = trio.run(siege.hold, names, seconds)
    base = _quantile(undisturbed, 0.99)
    rows = [("undisturbed", str(len(undisturbed)), *_times(undisturbed), "", "0", "", "", "")]
    rows += [_row(outcome, base) for outcome in outcomes]
    columns = (
        *("attack", "commits", "p50 ms", "p99 ms", "p99 x", "elections", "failed"),
        *("peak MiB", "left MiB", "recovery s"),
    )
    what = "Siege over SASL_SSL" if is_secured else "Siege"
    print_table(f"{what}: an honest client's commits, and the leader", columns, rows)
    return print_bars(f"{what}: summary", [bar for one in outcomes for bar in _bars(one, base)])


def _folder() -> str | None:
    """Where the nodes keep their logs: in memory, if the system has a place for that.

    A disk that many machines share may need a second for a flush, whoever attacks.
    """
    return _MEMORY_FOLDER if os.access(_MEMORY_FOLDER, os.W_OK) else None


def _times(values: Sequence[float]) -> tuple[str, str]:
    return f"{_quantile(values, 0.5):.0f}", f"{_quantile(values, 0.99):.0f}"


def _row(outcome: Outcome, base: float) -> tuple[str, ...]:
    return (
        outcome.name,
        str(outcome.commits),
        f"{outcome.p50:.0f}",
        f"{outcome.p99:.0f}",
        f"{outcome.p99 / base:.2f}",
        str(outcome.elections),
        str(outcome.failed),
        f"{outcome.peak / _MIB:.0f}",
        f"{outcome.left / _MIB:.0f}",
        f"{outcome.recovery:.1f}",
    )


def _bars(outcome: Outcome, base: float) -> list[Bar]:
    memory = 4 * ALL_ATTACKS[outcome.name].frame_bytes + CONNECTION_BYTES_MAX
    name = outcome.name
    bars = [
        Bar(f"{name}: p99 / undisturbed", outcome.p99 / base, 2.0, is_ceiling=True),
        Bar(f"{name}: elections", outcome.elections, 0, unit="", is_ceiling=True),
        Bar(f"{name}: memory", outcome.peak / _MIB, memory / _MIB, unit="MiB", is_ceiling=True),
        Bar(f"{name}: recovery", outcome.recovery, 10, unit="s", is_ceiling=True),
    ]
    if outcome.change is not None:
        change = f"{name}: an honest change of the voters"
        bars.append(Bar(change, outcome.change, CHANGE_SECONDS_MAX, unit="s", is_ceiling=True))
    return bars


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share does not exceed; infinite if there is none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.inf


class _Siege:
    """A quorum that is attacked. Order: `hold` once."""

    def __init__(self, quorum: NodeQuorum) -> None:
        self._quorum = quorum
        self._login: dict[str, str] = {}
        self._folder = ""
        if isinstance(quorum, SecuredQuorum):
            self._login, self._folder = quorum.login, str(quorum.stores)
        log_in_by(self._login)
        self._metrics = dict(zip(quorum.ports, free_ports(len(quorum.ports)), strict=True))
        self._commits = Commits()
        for node_id in quorum.ports:
            address = f"localhost:{self._metrics[node_id]}"
            node = quorum.start(node_id, f"kraftwire.prometheus.listener={address}")
            # Between its looks: a hundredth of the time that an interpreter takes to start.
            resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        for node in quorum.nodes.values():
            node.wait_for("^ready ")
        self._target = self._look()
        while not upgrade(self._target.leader_port):
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> Target:
        """What attackers know, once there is a leader and a cluster id."""
        ports = {str(node_id): port for node_id, port in self._quorum.ports.items()}
        while True:
            leader_id, epoch = watch.epoch_of(ports["1"])
            if leader_id >= 0:
                told = ask(ports[str(leader_id)], DescribeClusterRequest(endpoint_type=2))
                assert isinstance(told, DescribeClusterResponse)
                if told.cluster_id and told.controller_id >= 0:
                    known = (ports, leader_id, epoch, told.cluster_id, DESCRIPTORS)
                    return Target(*known, self._login, self._folder)
            time.sleep(_LOOK_SECONDS)

    async def hold(self, names: Sequence[str], seconds: float) -> tuple[list[float], list[Outcome]]:
        """Commit all the time, attack at times; returns undisturbed commits and outcomes."""
        undisturbed: list[float] = []
        outcomes: list[Outcome] = []
        async with trio.open_nursery() as nursery:
            target = self._target
            ports = sorted(target.ports.values(), key=lambda port: port != target.leader_port)
            await lengthen_log(ports, target.cluster_id, _LOG_BYTES)
            nursery.start_soon(commit_steadily, ports, target.cluster_id, self._commits)
            await trio.sleep(_WARM_UP_SECONDS)
            for name in names:
                start = trio.current_time()
                await trio.sleep(UNDISTURBED_SECONDS)
                undisturbed += self._commits.since(start, trio.current_time() - 1)
                assert undisturbed, f"nothing is committed; {self._commits.last_problem}"
                base = _quantile(undisturbed, 0.99)
                # An election may change the leader; the next attack is aimed at the new one.
                self._target = await trio.to_thread.run_sync(self._look)
                outcome = await self._attack(name, seconds, base)
                outcomes.append(outcome)
                # The table follows minutes later.
                console.print("  ".join(_row(outcome, base)), markup=False)
            nursery.cancel_scope.cancel()
        return undisturbed, outcomes

    async def _attack(self, name: str, seconds: float, base: float) -> Outcome:
        pid = self._quorum.nodes[self._target.leader_id].pid
        nodes = list(self._quorum.nodes.values())
        watch.reset_peak(pid)
        before, elected = watch.Memory.of(pid), watch.elections(nodes)
        descriptors, failed = watch.open_descriptors(pid), self._commits.failed
        held = await trio.to_thread.run_sync(watch.held_bytes, self._metrics_port)
        arguments = [name, str(seconds + _ATTACKER_START_SECONDS), json.dumps(asdict(self._target))]
        command = [sys.executable, "-m", "tests.bench.siege.attacker", *arguments]
        with ExitStack() as stack:
            attacker = subprocess.Popen(command)
            stack.callback(attacker.kill)
            await trio.sleep(_ATTACKER_START_SECONDS)
            start = trio.current_time()
            change = await self._change_voters() if ALL_ATTACKS[name].changes_voters else None
            await trio.to_thread.run_sync(attacker.wait)
        end = trio.current_time()
        recovery = await self._recover(pid, descriptors, held, 2 * base)
        took = self._commits.since(start, end)
        after = watch.Memory.of(pid)
        return Outcome(
            name=name,
            commits=len(took),
            p50=_quantile(took, 0.5),
            p99=_quantile(took, 0.99),
            failed=self._commits.failed - failed,
            elections=watch.elections(nodes) - elected,
            peak=after.peak - before.now,
            left=after.now - before.now,
            recovery=recovery,
            change=change,
        )

    async def _change_voters(self) -> float:
        """How long an honest change takes; infinite if it has not succeeded in time."""
        with trio.move_on_after(CHANGE_SECONDS_MAX):
            return await change_voters(self._target.leader_port, self._target.cluster_id)
        return math.inf

    @property
    def _metrics_port(self) -> int:
        """The port of the leader's metrics."""
        return self._metrics[self._target.leader_id]

    async def _recover(self, pid: int, descriptors: int, held: int, most_ms: float) -> float:
        """Seconds until commits are as fast as before and nothing of the attackers is left."""
        began = trio.current_time()
        while (passed := trio.current_time() - began) < RECOVERY_SECONDS_MAX:
            await trio.sleep(_LOOK_SECONDS)
            recent = [took for _, took in self._commits.times[-_CALM_COMMITS:]]
            is_calm = len(recent) == _CALM_COMMITS and max(recent) <= most_ms
            if not is_calm or watch.open_descriptors(pid) > descriptors + _OTHERS:
                continue
            # The honest client's own requests are held as well.
            now = await trio.to_thread.run_sync(watch.held_bytes, self._metrics_port)
            if now < held + EVICTED_BYTES_MIN + _OTHERS * _CONNECTION_BYTES:
                return passed
        return RECOVERY_SECONDS_MAX
