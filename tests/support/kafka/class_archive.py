"""A class-data archive for each Kafka release, so that its JVMs start in half the time.

Owns the archives in the cache: how one is made, and when one is stale. A JVM that is given an
archive maps the classes that a node needs instead of reading and checking them again; nodes of one
release then share that memory as well.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from kraftwire.testing.ports import free_ports
from tests.support.kafka.maven import (
    CACHE,
    KAFKA,
    Release,
    directory_of,
    exclusive,
    kafka_classpath,
)

_SECONDS_MAX = 300
_READY_LINE = "Kafka Server started"

# An archive depends on the garbage collector; a JVM with another one ignores it.
_COLLECTOR = "-XX:+UseSerialGC"

# One node that is broker and controller loads nearly every class that a controller, a broker or a
# tool needs.
_CONFIG = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
"""
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%m%n
"""
_LOG4J2 = """\
Configuration:
  Appenders: {Console: {name: out, PatternLayout: {pattern: "%m%n"}}}
  Loggers: {Root: {level: INFO, AppenderRef: [{ref: out}]}}
"""


@functools.cache
def archive_options(release: Release = KAFKA) -> tuple[str, ...]:
    """The JVM options that use the archive of a release; it is made on first use.

    A JVM that cannot use the archive silently runs without it.
    """
    classpath = kafka_classpath(release)
    with exclusive(f"{release.name}-archive"):
        path = CACHE / f"{release.name}-{_digest(release)}.jsa"
        if not path.exists():
            for stale in CACHE.glob(f"{release.name}-*.jsa"):
                stale.unlink()
            _make(classpath, path)
    return (f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def _digest(release: Release) -> str:
    """What an archive depends on: the JVM, and the jars with their paths and times."""
    jars = sorted(directory_of(release).glob("*.jar"))
    facts = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
    # On standard error are options of the environment, which a test may set for a while.
    version = subprocess.run(["java", "--version"], capture_output=True, text=True, check=True)
    text = "\n".join([version.stdout, *facts])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _make(classpath: str, path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="archive-", dir=CACHE))
    try:
        config = _write_config(folder)
        java = ("java", _COLLECTOR, "-cp", classpath, *_log_options(folder))
        cluster_id = "AAAAAAAAAAAAAAAAAAAAAQ"
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", config)
        subprocess.run([*java, *tool], capture_output=True, check=True, timeout=_SECONDS_MAX)
        made = folder / "classes.jsa"
        _train([*java[:1], f"-XX:ArchiveClassesAtExit={made}", *java[1:], "kafka.Kafka", config])
        made.rename(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_config(folder: Path) -> str:
    controller, client = free_ports(2)
    config = folder / "server.properties"
    config.write_text(_CONFIG.format(controller=controller, client=client, folder=folder))
    (folder / "log4j.properties").write_text(_LOG4J)
    (folder / "log4j2.yaml").write_text(_LOG4J2)
    return str(config)


def _log_options(folder: Path) -> tuple[str, str]:
    """Options for both generations of log4j, each of which ignores the other's."""
    return (
        f"-Dlog4j2.configurationFile={folder / 'log4j2.yaml'}",
        f"-Dlog4j.configuration={(folder / 'log4j.properties').as_uri()}",
    )


def _train(command: list[str]) -> None:
    """Run a node until it has started; the JVM writes the archive when it exits."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert process.stdout is not None
    printed = []
    with process.stdout as lines:
        for line in lines:
            printed.append(line)
            if _READY_LINE in line:
                process.terminate()
    process.wait(_SECONDS_MAX)
    assert any(_READY_LINE in line for line in printed), "".join(printed[-40:])
