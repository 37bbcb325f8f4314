"""What fails, one after the other, in a cluster of three controllers and three brokers.

Two producers send all the time: to a topic of replication factor 2 and to one of 3. The next thing
fails only once all replicas are in sync again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.failures.senders import Sender, contents
from tests.support.kafka.mixed_quorum import JAVA, MixedQuorum, wait_until

CONTROLLERS, BROKERS = (1, 2, 3), (101, 102, 103)
FACTORS = {"twice": 2, "thrice": 3}
SESSION_SECONDS = 6.0
WORST_SEND_SECONDS = 10.0
CONTROLLER_KILLED = "active controller killed"

_PARTITIONS = 3
# Kafka's topics of its own are not what is tried.
_PROPERTIES: Mapping[str, object] = {
    "broker.session.timeout.ms": int(SESSION_SECONDS * 1000),
    "broker.heartbeat.interval.ms": 1000,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 3,
}


@dataclass(slots=True)
class Step:
    """A failure: the seconds until it was over, and those of the longest send meanwhile."""

    name: str
    seconds: float
    worst_send: float


@dataclass(slots=True)
class Outcome:
    """What came of a run. `lost` were acknowledged and are not there, `doubled` are there twice.

    `registrations` and `fencings` are those of brokers while controllers failed.
    """

    steps: list[Step] = field(default_factory=list)
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    registrations: int = 0
    fencings: int = 0

    def problems(self) -> list[str]:
        """Return what must not be, one line each."""
        found = [f"lost: {each}" for each in self.lost]
        found += [f"doubled: {each}" for each in self.doubled]
        found += [f"given up: {each}" for each in self.failures]
        for step in self.steps:
            if step.worst_send >= WORST_SEND_SECONDS:
                found.append(f"{step.name}: a send took {step.worst_send:.1f} s")
            if step.name == KILLED and step.seconds > SESSION_SECONDS + 1:
                found.append(f"a killed broker was fenced after {step.seconds:.1f} s")
        if self.registrations:
            found.append(f"{self.registrations} registrations while controllers failed")
        if self.fencings:
            found.append(f"{self.fencings} changes of brokers while controllers failed")
        return found


class Cluster:
    """A running cluster with its topics, and what can be done to it.

    Each method waits until the failure is over for clients.
    """

    def __init__(self, quorum: MixedQuorum) -> None:
        self.quorum = quorum
        self.servers = quorum.bootstrap_servers
        self._killed = 0
        self._admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        topics = [
            NewTopic(name, num_partitions=_PARTITIONS, replication_factor=factor)
            for name, factor in FACTORS.items()
        ]
        for future in self._admin.create_topics(topics).values():
            future.result(60)
        self._wait_in_sync()

    def kill_broker(self, broker_id: int) -> None:
        """Kill -9; over once the other brokers know that it is fenced."""
        self.quorum.members[broker_id].kill()
        wait_until(lambda: broker_id not in self._metadata().brokers, "a fenced broker")

    def stop_broker(self, broker_id: int) -> None:
        """A controlled shutdown, over once the process has ended."""
        self.quorum.members[broker_id].stop()

    def start_broker(self, broker_id: int) -> None:
        """Start a broker; over once all replicas are in sync."""
        member = self.quorum.members[broker_id]
        member.start()
        member.wait_ready()
        self._wait_in_sync()

    def restart_killed(self, broker_id: int) -> None:
        """Kill -9 and start at once, before the session ends."""
        self.quorum.members[broker_id].kill()
        self.start_broker(broker_id)

    def lose_disk(self, broker_id: int) -> None:
        """Kill -9, then start with an empty disk."""
        self.quorum.members[broker_id].kill()
        self.quorum.reformat(broker_id)
        self.start_broker(broker_id)

    def kill_controller(self) -> None:
        """Kill -9 of the active controller, over once another one leads."""
        self._killed = self.quorum.leader()
        self.quorum.members[self._killed].kill()
        self.quorum.leader(among=set(CONTROLLERS) - {self._killed})

    def return_controller(self) -> None:
        """Start the controller that was killed, and wait until it has what is committed."""
        self.quorum.start(self._killed)
        self.quorum.wait_commit(self.quorum.status().high_watermark)

    def registered(self) -> tuple[int, int]:
        """Return how many registrations of brokers are in the log, and how many changes of them."""
        counts = self.quorum.members[self.quorum.leader()].image().counts
        return counts["RegisterBrokerRecord"], counts["BrokerRegistrationChangeRecord"]

    def _metadata(self) -> Any:
        return self._admin.list_topics(timeout=30)

    def _wait_in_sync(self) -> None:
        def look() -> bool:
            topics = self._metadata().topics
            return all(
                name in topics
                and [len(one.isrs) for one in topics[name].partitions.values()]
                == [factor] * _PARTITIONS
                for name, factor in FACTORS.items()
            )

        wait_until(look, "replicas in sync", self.quorum.last_lines)


BrokerStep = tuple[str, Callable[[Cluster, int], None], int]

KILLED, WITHOUT_DISK = "broker killed: fenced", "started without its disk: in sync"

# What happens to brokers, in this order, and to which; a dead one is started by the next step.
BROKER_STEPS: tuple[BrokerStep, ...] = (
    (KILLED, Cluster.kill_broker, 101),
    ("started after that: in sync", Cluster.start_broker, 101),
    ("broker stopped: ended", Cluster.stop_broker, 102),
    ("started after that: in sync", Cluster.start_broker, 102),
    ("killed and started at once: in sync", Cluster.restart_killed, 103),
    (WITHOUT_DISK, Cluster.lose_disk, 101),
)


def run_script(
    folder: Path,
    kind: str,
    *,
    kills: int,
    broker_steps: Iterable[BrokerStep] = BROKER_STEPS,
) -> Outcome:
    """Let brokers fail, then kill the active controller so many times, on controllers of a kind.

    Raises: AssertionError if something does not end, or if the controllers' logs differ.
    """
    outcome = Outcome()
    kinds, brokers = dict.fromkeys(CONTROLLERS, kind), dict.fromkeys(BROKERS, JAVA)
    with MixedQuorum(folder, kinds, _PROPERTIES, brokers=brokers) as quorum:
        quorum.start()
        cluster = Cluster(quorum)
        with ExitStack() as stack:
            senders = [
                stack.enter_context(Sender(cluster.servers, topic)) for topic in FACTORS
            ]
            for name, act, broker_id in broker_steps:
                outcome.steps.append(_step(name, partial(act, cluster, broker_id), senders))
            _fail_controllers(cluster, senders, kills, outcome)
        quorum.check_logs_agree()
        for sender in senders:
            _count(sender, cluster.servers, outcome)
    return outcome


def _step(name: str, act: Callable[[], object], senders: list[Sender]) -> Step:
    for sender in senders:
        sender.wait_flow()
    began = time.monotonic()
    act()
    seconds = time.monotonic() - began
    for sender in senders:
        sender.wait_flow()
    return Step(name, seconds, max(sender.worst(began) for sender in senders))


def _fail_controllers(
    cluster: Cluster, senders: list[Sender], kills: int, outcome: Outcome
) -> None:
    before = cluster.registered()
    for _ in range(kills):
        outcome.steps.append(_step(CONTROLLER_KILLED, cluster.kill_controller, senders))
        cluster.return_controller()
    after = cluster.registered()
    outcome.registrations, outcome.fencings = after[0] - before[0], after[1] - before[1]


def _count(sender: Sender, servers: str, outcome: Outcome) -> None:
    found = contents(servers, sender.topic)
    outcome.acknowledged += len(sender.acknowledged)
    lost = [number for number in sender.acknowledged if not found[number]]
    doubled = [number for number, count in found.items() if count > 1]
    outcome.lost += [f"{sender.topic} {number}" for number in lost]
    outcome.doubled += [f"{sender.topic} {number}" for number in doubled]
    outcome.failures += [f"{sender.topic} {failure}" for failure in sender.failures]
