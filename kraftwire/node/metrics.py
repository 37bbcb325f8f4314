"""Counters and gauges of a node, and the endpoint that Prometheus reads them from.

Owns the names: those of Kafka's group `raft-metrics`, as the JMX exporter writes them, and
`kraftwire_` ones for what is ours. prometheus-client is imported only where an endpoint is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import trio

from kraftwire.limits import HTTP_REQUEST_SIZE_MAX

__all__ = ["Sample", "raft_samples", "render", "serve_http"]

PREFIX = "kafka_server_raft_metrics_"
PATIENCE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """A value. Shape: `kind` is `gauge` or `counter`; a counter's name ends in `_total`."""

    name: str
    kind: str
    about: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


def raft_samples(values: Mapping[str, float | int | str]) -> Iterator[Sample]:
    """Kafka's raft metrics; a text becomes a label of a gauge that is 1."""
    for name, value in values.items():
        full = PREFIX + name.replace("-", "_")
        about = f"{name} of Kafka's raft-metrics"
        if isinstance(value, str):
            label = name.rpartition("-")[2]
            yield Sample(full, "gauge", about, 1.0, ((label, value),))
        else:
            yield Sample(full, "gauge", about, float(value))


def render(samples: Iterator[Sample]) -> bytes:
    """The text that Prometheus reads."""
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


async def serve_http(stream: trio.abc.Stream, content: Callable[[], bytes]) -> None:
    """Answer one HTTP request with the metrics and close; nothing else is served."""
    try:
        with trio.move_on_after(PATIENCE_SECONDS):
            head = b""
            while b"\r\n\r\n" not in head:
                data = await stream.receive_some(HTTP_REQUEST_SIZE_MAX)
                head += data
                if not data or len(head) > HTTP_REQUEST_SIZE_MAX:
                    return
            await stream.send_all(_http_answer(head, content))
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        return
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            await stream.aclose()


def _http_answer(head: bytes, content: Callable[[], bytes]) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
    if method not in (b"GET", b"HEAD"):
        return _http(b"405 Method Not Allowed", b"only GET\n", method)
    if path not in (b"/metrics", b"/"):
        return _http(b"404 Not Found", b"see /metrics\n", method)
    return _http(b"200 OK", content(), method)


def _http(status: bytes, content: bytes, method: bytes) -> bytes:
    lines = (
        b"HTTP/1.1 " + status,
        b"Content-Type: text/plain; version=0.0.4; charset=utf-8",
        b"Content-Length: %d" % len(content),
        b"Connection: close",
    )
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    return head if method == b"HEAD" else head + content
