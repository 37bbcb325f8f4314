"""What clients do on real brokers: with our controllers, and with Kafka's own.

Owns the steps of the traffic programs. A cell is what a client reports of a step; it has to be the
same with either kind of controllers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.interop.clients.matrix import Client, Outcome, run_client
from tests.support.kafka.mixed_quorum import JAVA, MixedQuorum

__all__ = ["STEPS", "brokers_on", "differences", "use"]

STEPS = (
    "cluster",
    "quorum",
    "features",
    "topics",
    "configs",
    "produce",
    "idempotent",
    "classic",
    "consumer",
    "groups",
    "transactions",
    "rest",
    "delete",
)

_CONTROLLERS = (1, 2, 3)
_BROKERS = (101, 102)

# Internal topics of one partition are made sooner, and groups need not wait for more members.
_PROPERTIES: Mapping[str, object] = {
    "num.partitions": 3,
    "default.replication.factor": len(_BROKERS),
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": len(_BROKERS),
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": len(_BROKERS),
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}


@contextmanager
def brokers_on(kind: str, folder: Path) -> Iterator[str]:
    """Two brokers on three controllers of a kind; yields the brokers' addresses."""
    brokers = dict.fromkeys(_BROKERS, JAVA)
    controllers = dict.fromkeys(_CONTROLLERS, kind)
    with MixedQuorum(folder, controllers, _PROPERTIES, brokers=brokers) as quorum:
        quorum.start(*controllers)
        members = [quorum.members[broker_id] for broker_id in _BROKERS]
        for member in members:
            member.start()
        for member in members:
            member.wait_ready()
        yield ",".join(f"127.0.0.1:{member.port}" for member in members)


def use(client: Client, servers: str) -> Outcome:
    """Run a client's traffic against brokers."""
    return run_client(client.traffic(), servers, STEPS)


def differences(ours: Outcome, theirs: Outcome) -> list[str]:
    """What a client cannot do on our controllers, or sees otherwise, though it can on Java's."""
    found = []
    for step, expected in theirs.steps.items():
        seen = ours.steps.get(step)
        if expected.is_ok and seen != expected:
            shown = seen.detail if seen is not None else "not reported"
            found.append(f"{step}: {shown}; on Kafka's controllers: {expected.detail}")
    return found
