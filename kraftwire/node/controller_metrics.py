"""The metrics of Kafka's controller, under the names that the JMX exporter gives them.

What follows from the committed records is read from the image when it is asked for, at a cost that
depends on the brokers alone; what the queue does is counted here. Rule: C-MET-1.

Source: Kafka's `QuorumControllerMetrics`, `ControllerMetadataMetrics`, `SnapshotEmitterMetrics`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kraftwire.controller.batches import QueuedStep
from kraftwire.controller.image import BrokerImage, MetadataImage
from kraftwire.controller.sessions import Sessions
from kraftwire.node.metrics import Sample

# Percentiles are those of so many events.
_EVENTS_KEPT = 1024
_QUANTILES = ("0.5", "0.75", "0.95", "0.98", "0.99", "0.999")

_CONTROLLER, _EVENTS, _STATS = "KafkaController", "ControllerEventManager", "ControllerStats"

# Values of BrokerRegistrationState.
_FENCED, _IN_SHUTDOWN, _ACTIVE = 10, 20, 30


class Times:
    """How long events took: their number, and the percentiles of the last of them."""

    def __init__(self) -> None:
        self.count = 0
        self._last: deque[int] = deque(maxlen=_EVENTS_KEPT)

    def add(self, ms: int) -> None:
        """Count an event that took so long."""
        self.count += 1
        self._last.append(ms)

    def samples(self, name: str) -> Iterator[Sample]:
        """Return the percentiles and the number, as the JMX exporter shows a histogram."""
        ordered = sorted(self._last)
        for quantile in _QUANTILES:
            position = min(int(float(quantile) * len(ordered)), len(ordered) - 1)
            value = ordered[position] if ordered else 0
            yield _sample(_EVENTS, name, value, ("quantile", quantile))
        yield _sample(_EVENTS, f"{name}_count", self.count)


@dataclass(slots=True)
class QueueMetrics:
    """Counters of a controller's queue since the node started. Units: milliseconds.

    `idle_since_ms` is since when the queue has been empty, None while it works; `idle_ms` how long
    it was before, since `measured_ms`.
    """

    started: int = 0
    timed_out: int = 0
    heartbeats_timed_out: int = 0
    leader_changes: int = 0
    faults: int = 0
    waited: Times = field(default_factory=Times)
    took: Times = field(default_factory=Times)
    idle_since_ms: int | None = None
    idle_ms: int = 0
    measured_ms: int | None = None

    def count_started(self, steps: Iterable[QueuedStep], now_ms: int) -> None:
        """Count steps whose turn has come."""
        for step in steps:
            self.started += 1
            self.waited.add(now_ms - step.queued_ms)
            self.timed_out += step.deadline_ms is not None and now_ms >= step.deadline_ms

    def count_done(self, count: int, ms: int) -> None:
        """Count steps that are decided and committed."""
        for _ in range(count):
            self.took.add(ms)

    def begin_idle(self, now_ms: int) -> None:
        """Start measuring the time without work."""
        self.idle_since_ms = now_ms

    def end_idle(self, now_ms: int) -> None:
        """Add the time without work to the sum."""
        if self.idle_since_ms is not None:
            self.idle_ms += now_ms - self.idle_since_ms
            self.idle_since_ms = None

    def idle_ratio(self, now_ms: int) -> float:
        """Return the share of the time since the last call in which there was nothing to do."""
        is_idle = self.idle_since_ms is not None
        self.end_idle(now_ms)
        if is_idle:
            self.begin_idle(now_ms)
        passed = 0 if self.measured_ms is None else now_ms - self.measured_ms
        ratio = self.idle_ms / passed if passed else 1.0
        self.measured_ms, self.idle_ms = now_ms, 0
        return min(ratio, 1.0)

    def samples(self, now_ms: int) -> Iterator[Sample]:
        """Return the metrics of the queue."""
        counted = {
            "EventQueueOperationsStartedCount": self.started,
            "EventQueueOperationsTimedOutCount": self.timed_out,
            "TimedOutBrokerHeartbeatCount": self.heartbeats_timed_out,
            "NewActiveControllersCount": self.leader_changes,
        }
        for name, value in counted.items():
            yield _sample(_CONTROLLER, name, value)
        yield from self.waited.samples("EventQueueTimeMs")
        yield from self.took.samples("EventQueueProcessingTimeMs")
        yield _sample(_EVENTS, "AvgIdleRatio", self.idle_ratio(now_ms))


def image_samples(image: MetadataImage, wall_ms: int, faults: int) -> Iterator[Sample]:
    """Return the metrics of the committed state; `faults` are those of the controller."""
    topics, brokers = image.topics, image.brokers.values()
    leaving = sum(broker.in_controlled_shutdown for broker in brokers)
    values = {
        "FencedBrokerCount": len(brokers) - len(image.alive_brokers),
        "ActiveBrokerCount": len(image.alive_brokers),
        "ControlledShutdownBrokerCount": leaving,
        "GlobalTopicCount": len(topics.names),
        "GlobalPartitionCount": topics.partition_count,
        "OfflinePartitionsCount": len(topics.without_leader),
        "PreferredReplicaImbalanceCount": len(topics.away),
        "MetadataErrorCount": image.problem_count + faults,
        # A decision waits until it is committed and applied, so that both are the same.
        "LastAppliedRecordOffset": image.highest_offset,
        "LastCommittedRecordOffset": image.highest_offset,
        "LastAppliedRecordTimestamp": image.timestamp,
        "LastAppliedRecordLagMs": max(wall_ms - image.timestamp, 0),
    }
    for name, value in values.items():
        yield _sample(_CONTROLLER, name, value)
    for broker in brokers:
        label = "broker", str(broker.id)
        yield _sample(_CONTROLLER, "BrokerRegistrationState", _state(broker), label)
    for name, count in (
        ("UncleanLeaderElections", topics.unclean_elections),
        ("ElectionFromEligibleLeaderReplicas", topics.elr_elections),
    ):
        yield _sample(_STATS, name, count, kind="counter")


def leader_samples(
    image: MetadataImage, sessions: Sessions | None, now_ms: int
) -> Iterator[Sample]:
    """Return the metrics of the active controller; `sessions` is None on other nodes."""
    yield _sample(_CONTROLLER, "ActiveControllerCount", int(sessions is not None))
    if sessions is None:
        return
    for (broker_id, epoch), last_ms in sessions.last_ms.items():
        broker = image.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            continue
        since_ms = min(now_ms - last_ms, sessions.timeout_ms)
        label = "broker", str(broker_id)
        yield _sample(_CONTROLLER, "TimeSinceLastHeartbeatReceivedMs", since_ms, label)


def ignored_voters_sample(are_ignored: bool) -> Sample:
    """Return whether the voters of the properties file are ignored, as the log has its own."""
    return _sample(_CONTROLLER, "IgnoredStaticVoters", int(are_ignored))


def snapshot_samples(written: tuple[int, int] | None, now_ms: int) -> Iterator[Sample]:
    """Return size and age of the last snapshot that this node wrote, as (bytes, time)."""
    size, at_ms = written or (0, 0)
    for name, value in (
        ("LatestSnapshotGeneratedBytes", size),
        ("LatestSnapshotGeneratedAgeMs", now_ms - at_ms),
    ):
        about = f"{name} of Kafka's SnapshotEmitter"
        yield Sample(f"kafka_server_snapshotemitter_{name.lower()}", "gauge", about, value)


def _state(broker: BrokerImage) -> int:
    if broker.is_fenced:
        return _FENCED
    return _IN_SHUTDOWN if broker.in_controlled_shutdown else _ACTIVE


def _sample(
    group: str, name: str, value: float, *labels: tuple[str, str], kind: str = "gauge"
) -> Sample:
    full = f"kafka_controller_{group}_{name}".lower()
    return Sample(full, kind, f"{name} of Kafka's {group}", value, labels)
