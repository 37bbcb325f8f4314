"""One node of Kafka whose clients go through a proxy that records them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kraftwire.testing.ports import free_ports
from tests.support.kafka.process import KafkaCluster, KafkaNode

_HOST = "127.0.0.1"


@contextmanager
def recorded_kafka(capture: Path, folder: Path, properties: Mapping[str, object]) -> Iterator[str]:
    """Run Kafka in a folder; yields its bootstrap server, whose traffic goes into the capture.

    Raises: RuntimeError if the proxy does not start.
    """
    node_port, controller_port, proxy_port = free_ports(3)
    listeners = {"PLAINTEXT": node_port, "CONTROLLER": controller_port}
    advertised = ",".join(
        f"{name}://{_HOST}:{port}" for name, port in {**listeners, "PLAINTEXT": proxy_port}.items()
    )
    more = {**properties, "advertised.listeners": advertised}
    node = KafkaNode(1, folder / "node", listeners, more)
    with (
        _recording(f"{_HOST}:{proxy_port}={_HOST}:{node_port}", capture),
        KafkaCluster([node], is_dynamic=True),
    ):
        yield f"{_HOST}:{proxy_port}"


@contextmanager
def _recording(target: str, capture: Path) -> Iterator[None]:
    """Run a proxy that records the traffic between two ports."""
    command = [sys.executable, "-m", "tools.capture", target, "--out", str(capture)]
    proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert proxy.stdout is not None
        if not proxy.stdout.readline():
            raise RuntimeError("the proxy does not start")
        yield
    finally:
        proxy.terminate()
        proxy.communicate()
