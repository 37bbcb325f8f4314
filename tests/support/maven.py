"""Jars of released Kafka versions, fetched by Maven once and kept in the project's cache folder.

Owns the folder `.cache/kafka-<release>/`: which artifacts belong in it, how it is filled, and what
happens on a machine that cannot fill it. Nothing here starts Kafka; see `java` and
`kafka_process`.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"

_FETCH_SECONDS_MAX = 900


@dataclass(frozen=True, slots=True)
class Release:
    """The artifacts of one Kafka release that tests run, as Maven coordinates.

    `part` says which part of the release they are, if not all that a node needs.
    """

    version: str
    artifacts: tuple[str, ...]
    part: str = ""

    @property
    def name(self) -> str:
        """Release and part, as in the names of cache folders."""
        return f"kafka-{self.version}" + (f"-{self.part}" if self.part else "")

    @property
    def directory(self) -> Path:
        """Where the jars are once `kafka_classpath` has returned."""
        return CACHE / self.name

    @property
    def pom(self) -> str:
        """A Maven project that depends on the artifacts and on nothing else."""
        dependencies = "".join(
            "  <dependency><groupId>{}</groupId><artifactId>{}</artifactId>"
            "<version>{}</version></dependency>\n".format(*artifact.split(":"))
            for artifact in self.artifacts
        )
        return (
            '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
            "<modelVersion>4.0.0</modelVersion>\n"
            "<groupId>kraftwire</groupId><artifactId>jars</artifactId><version>1</version>\n"
            f"<dependencies>\n{dependencies}</dependencies>\n</project>\n"
        )


# Kafka logs through slf4j 1.7 and leaves the binding to the distribution; without one a node
# prints nothing. The binding's version is that of the log4j the release depends on.
KAFKA = Release(
    "4.3.1",
    (
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.apache.kafka:kafka-tools:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    ),
)

# Older releases whose nodes meet ours in one quorum. 4.1 is the first whose controllers join by
# themselves; 3.9 the first with voters in the log, and it still logs through log4j 1.
KAFKA_4_1 = Release(
    "4.1.2",
    (
        "org.apache.kafka:kafka_2.13:4.1.2",
        "org.apache.kafka:kafka-tools:4.1.2",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3",
    ),
)
KAFKA_3_9 = Release(
    "3.9.2",
    (
        "org.apache.kafka:kafka_2.13:3.9.2",
        "org.apache.kafka:kafka-tools:3.9.2",
        "org.slf4j:slf4j-reload4j:1.7.36",
    ),
)

# The last release that still had the oldest request and response versions. Its JSON converters
# need Jackson, which kafka-clients does not bring.
OLD_CLIENTS = Release(
    "3.9.2",
    (
        "org.apache.kafka:kafka-clients:3.9.2",
        "com.fasterxml.jackson.core:jackson-databind:2.21.2",
        "org.slf4j:slf4j-nop:1.7.36",
    ),
    part="clients",
)


def requires_java() -> None:
    """Skip the calling test where Java or Maven is missing; with CI=true fail it instead."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            unavailable(f"tests against Kafka need the program {program}, which is not installed")


def unavailable(reason: str) -> NoReturn:
    """End the calling test: failed with CI=true, where everything has to run, otherwise skipped."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (a failure because CI=true)", pytrace=False)
    pytest.skip(reason)


@functools.cache
def kafka_classpath(release: Release = KAFKA) -> str:
    """The class path of a release; fetches its jars on first use.

    Raises: skips or fails the test as `requires_java` does if they cannot be fetched.
    """
    requires_java()
    with exclusive(release.name):
        if not _is_complete(release):
            _fetch(release)
    return str(release.directory / "*")


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Let one process at a time work on a part of the cache (parallel test runs share it)."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _marker(release: Release) -> Path:
    # Named by the pom's digest, so that a changed list of artifacts is fetched again.
    return release.directory / f"complete-{hashlib.sha256(release.pom.encode()).hexdigest()[:12]}"


def _is_complete(release: Release) -> bool:
    return _marker(release).exists()


def _fetch(release: Release) -> None:
    """Fill a separate folder and rename it, so that an incomplete download never counts as jars."""
    folder = Path(tempfile.mkdtemp(prefix=f"{release.name}-", dir=CACHE))
    try:
        (folder / "pom.xml").write_text(release.pom)
        problem = _copy_dependencies(folder)
        if problem:
            unavailable(f"Maven could not fetch Kafka {release.version}: {problem}")
        (folder / _marker(release).name).touch()
        shutil.rmtree(release.directory, ignore_errors=True)
        folder.chmod(0o755)
        folder.rename(release.directory)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_dependencies(folder: Path) -> str:
    """Let Maven put the jars into the folder; returns what went wrong, if anything did."""
    command = ["mvn", "-B", "-q", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
    try:
        result = subprocess.run(
            [*command, f"-DoutputDirectory={folder}"],
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {_FETCH_SECONDS_MAX} s"
    if result.returncode == 0:
        return ""
    errors = [line for line in (result.stdout + result.stderr).splitlines() if "ERROR" in line]
    return errors[0] if errors else f"exit code {result.returncode}"
