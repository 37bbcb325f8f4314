"""``python -m tools.record_groups FILE``: record groups of every kind on a real Kafka."""

from __future__ import annotations

import lzma
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from kraftwire.testing.ports import free_ports
from tests.support.java import JVM_OPTIONS
from tests.support.kafka_process import KafkaCluster, KafkaNode
from tests.support.maven import Release, kafka_classpath

__all__ = ["main"]

_STREAMS = Release("4.3.1", ("org.apache.kafka:kafka-streams:4.3.1",), part="streams")
_SOURCE = Path(__file__).with_name("Groups.java")
_LOAD_SECONDS_MAX = 300

# Members time out after three seconds: recording the default of 45 would take too long.
_PROPERTIES: dict[str, object] = {
    "group.min.session.timeout.ms": 1000,
    "auto.create.topics.enable": "false",
    **{
        f"group.{kind}.{name}": value
        for kind in ("consumer", "share", "streams")
        for name, value in (
            ("min.session.timeout.ms", 3000),
            ("session.timeout.ms", 3000),
            ("min.heartbeat.interval.ms", 1000),
            ("heartbeat.interval.ms", 1000),
        )
    },
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
def main(path: Path) -> None:
    """Record into FILE, a pcapng file packed with xz."""
    with tempfile.TemporaryDirectory(prefix="kraftwire-groups-") as folder:
        capture = Path(folder, "groups.pcapng")
        _record(capture, Path(folder))
        path.write_bytes(lzma.compress(capture.read_bytes(), preset=9))
    click.echo(f"{path}: {path.stat().st_size:,} bytes")


def _record(capture: Path, folder: Path) -> None:
    node_port, controller_port, proxy_port = free_ports(3)
    listeners = {"PLAINTEXT": node_port, "CONTROLLER": controller_port}
    places = {"PLAINTEXT": proxy_port, "CONTROLLER": controller_port}
    advertised = ",".join(f"{name}://127.0.0.1:{port}" for name, port in places.items())
    properties = {**_PROPERTIES, "advertised.listeners": advertised}
    node = KafkaNode(1, folder / "node", listeners, properties)
    with (
        _recording(proxy_port, node_port, capture),
        KafkaCluster([node], is_dynamic=True),
    ):
        _load(f"127.0.0.1:{proxy_port}", folder)


@contextmanager
def _recording(port: int, target: int, capture: Path) -> Iterator[None]:
    """Run a proxy that records the traffic between two ports."""
    command = [sys.executable, "-m", "tools.capture", f"127.0.0.1:{port}=127.0.0.1:{target}"]
    proxy = subprocess.Popen(
        [*command, "--out", str(capture)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert proxy.stdout is not None
        if not proxy.stdout.readline():
            raise click.ClickException("the proxy does not start")
        yield
    finally:
        proxy.terminate()
        proxy.communicate()


def _load(server: str, folder: Path) -> None:
    """Compile and run the clients."""
    jars = kafka_classpath(_STREAMS)
    classes = folder / "classes"
    subprocess.run(["javac", "-cp", jars, "-d", classes, _SOURCE], check=True)
    java = ["java", *JVM_OPTIONS, "-cp", f"{classes}:{jars}", "kraftwire.Groups"]
    subprocess.run([*java, server, str(folder)], check=True, timeout=_LOAD_SECONDS_MAX)


if __name__ == "__main__":
    main()
