"""``python -m tools.record_groups FILE``: record groups of every kind on a real Kafka."""

from __future__ import annotations

import lzma
import subprocess
import tempfile
from pathlib import Path

import click

from tests.support.kafka.java import JVM_OPTIONS
from tests.support.kafka.maven import KAFKA, Release, kafka_classpath
from tools.capture.kafka import recorded_kafka

_STREAMS = Release(
    KAFKA.version, (f"org.apache.kafka:kafka-streams:{KAFKA.version}",), part="streams"
)
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
        with recorded_kafka(capture, Path(folder), _PROPERTIES) as server:
            _load(server, Path(folder))
        path.write_bytes(lzma.compress(capture.read_bytes(), preset=9))
    click.echo(f"{path}: {path.stat().st_size:,} bytes")


def _load(server: str, folder: Path) -> None:
    """Compile and run the clients."""
    jars = kafka_classpath(_STREAMS)
    classes = folder / "classes"
    subprocess.run(["javac", "-cp", jars, "-d", classes, _SOURCE], check=True)
    java = ["java", *JVM_OPTIONS, "-cp", f"{classes}:{jars}", "kraftwire.Groups"]
    subprocess.run([*java, server, str(folder)], check=True, timeout=_LOAD_SECONDS_MAX)


if __name__ == "__main__":
    main()
