"""What Prometheus reads from a node."""

from __future__ import annotations

from kraftwire.node.metrics import Sample, raft_samples, render


def test_metrics_have_kafkas_names() -> None:
    """Dashboards made for Kafka's JMX exporter find the same series."""
    values = {"current-state": "leader", "high-watermark": 12, "commit-latency-avg": 1.5}
    text = render(iter([*raft_samples(values)])).decode()
    assert 'kafka_server_raft_metrics_current_state{state="leader"} 1.0\n' in text
    assert "kafka_server_raft_metrics_high_watermark 12.0\n" in text
    assert "kafka_server_raft_metrics_commit_latency_avg 1.5\n" in text


def test_samples_of_one_name_are_one_family() -> None:
    """Prometheus refuses a page that declares a name twice."""
    samples = [
        Sample("kraftwire_requests", "counter", "Requests by API", count, (("api", api),))
        for api, count in (("Fetch", 3), ("Vote", 1))
    ]
    text = render(iter(samples)).decode()
    assert text.count("# TYPE kraftwire_requests_total counter") == 1
    assert 'kraftwire_requests_total{api="Vote"} 1.0' in text
