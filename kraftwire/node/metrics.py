"""Counters and gauges of a node, and the text that Prometheus reads.

The names are those of Kafka's group `raft-metrics`, as the JMX exporter writes them, and
`kraftwire_` ones for the others. prometheus-client is imported on the first `render`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraftwire.controller.check import Contradiction
from kraftwire.node.connection_end import ConnectionStats
from kraftwire.node.link import LinkStats

PREFIX = "kafka_server_raft_metrics_"


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric. `kind` is `gauge` or `counter`."""

    name: str
    kind: str
    about: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


def raft_samples(values: Mapping[str, float | int | str]) -> Iterator[Sample]:
    """Convert Kafka's raft metrics; a text becomes the label of a gauge with the value 1."""
    for name, value in values.items():
        full = PREFIX + name.replace("-", "_")
        about = f"{name} of Kafka's raft-metrics"
        if isinstance(value, str):
            label = name.rpartition("-")[2]
            yield Sample(full, "gauge", about, 1.0, ((label, value),))
        else:
            yield Sample(full, "gauge", about, float(value))


def connection_samples(stats: ConnectionStats, held_bytes: int) -> Iterator[Sample]:
    """Return the counters of accepted connections, and the bytes that they hold together."""
    yield _gauge("connections", "Connections that peers and clients have open", stats.open)
    yield counter("connections_accepted", "Connections accepted", stats.accepted)
    yield counter("connections_refused", "Connections above a limit", stats.refused)
    yield _gauge("connections_held_bytes", "Bytes that connections hold together", held_bytes)
    for name, count in stats.requests.items():
        yield counter("requests", "Requests by API", count, ("api", name))
    for cause, count in stats.closed.items():
        yield counter("connections_closed", "Connections by cause of end", count, ("cause", cause))


def link_samples(stats: LinkStats) -> Iterator[Sample]:
    """Return the counters of connections to other nodes."""
    yield counter("peer_connects", "Attempts to connect to another node", stats.connects)
    yield counter("peer_connect_failures", "Attempts that failed", stats.connect_failures)
    yield counter("peer_disconnects", "Exchanges that a lost connection ended", stats.disconnects)
    yield counter("peer_timeouts", "Requests without an answer in time", stats.timeouts)
    yield counter("peer_bad_answers", "Answers that cannot be read", stats.bad_answers)


def contradiction_sample(found: Contradiction | None) -> Sample:
    """Return where the metadata log contradicts itself, which keeps this node from leading."""
    about = "Offset of the first metadata record that contradicts those before it, -1 without one"
    return _gauge("metadata_contradiction_offset", about, -1 if found is None else found.offset)


def counter(name: str, about: str, value: float, *labels: tuple[str, str]) -> Sample:
    """Return a sample of one of kraftwire's counters."""
    return Sample(f"kraftwire_{name}", "counter", about, value, labels)


def _gauge(name: str, about: str, value: float) -> Sample:
    return Sample(f"kraftwire_{name}", "gauge", about, value)


def render(samples: Iterator[Sample]) -> bytes:
    """Return the samples in Prometheus's text format."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for sample in samples:
        family = families.get(sample.name)
        if family is None:
            labels = [label for label, _ in sample.labels]
            make = CounterMetricFamily if sample.kind == "counter" else GaugeMetricFamily
            family = families[sample.name] = make(sample.name, sample.about, labels=labels)
        family.add_metric([value for _, value in sample.labels], sample.value)

    class _Collector:
        def collect(self) -> Iterator[Metric]:
            return iter(families.values())

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector())
    return generate_latest(registry)
