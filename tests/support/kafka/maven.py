"""Jars of released Kafka versions, fetched by Maven once and kept in the project's cache folder.

Owns the folder `.cache/kafka-<release>/`: which artifacts belong in it, and what happens on a
machine that cannot fill it. Nothing here starts Kafka; see `java` and `kafka_process`.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from kraftwire.errors import KraftwireError
from kraftwire.testing.cluster import kafka
from kraftwire.testing.cluster.kafka import KAFKA, Release, release_of_nodes

__all__ = [
    "CACHE",
    "KAFKA",
    "KAFKA_3_9",
    "KAFKA_4_1",
    "KAFKA_4_3",
    "OLDER",
    "OLD_CLIENTS",
    "ROOT",
    "Release",
    "directory_of",
    "exclusive",
    "kafka_classpath",
    "requires_java",
    "unavailable",
]

ROOT = Path(__file__).resolve().parents[3]
# Without links: a JVM uses a class-data archive only with the very paths that it was made with.
CACHE = (ROOT / ".cache").resolve()

# Older releases whose nodes meet ours. 4.1 is the first whose controllers join a quorum by
# themselves; 3.9 the first with voters in the log, and it still logs through log4j 1.
KAFKA_4_3 = release_of_nodes("4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")
KAFKA_4_1 = release_of_nodes("4.1.2", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3")
KAFKA_3_9 = release_of_nodes("3.9.2", "org.slf4j:slf4j-reload4j:1.7.36")
OLDER = (KAFKA_4_3, KAFKA_4_1, KAFKA_3_9)

# The last release that still had the oldest request and response versions. Its JSON converters
# need Jackson, which kafka-clients does not bring.
OLD_CLIENTS = Release(
    KAFKA_3_9.version,
    (
        f"org.apache.kafka:kafka-clients:{KAFKA_3_9.version}",
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


def directory_of(release: Release) -> Path:
    """Where the jars of a release are once `kafka_classpath` has returned."""
    return CACHE / release.name


@functools.cache
def kafka_classpath(release: Release = KAFKA) -> str:
    """The class path of a release; fetches its jars on first use.

    Raises: skips or fails the test as `requires_java` does if they cannot be fetched.
    """
    requires_java()
    try:
        return str(kafka.fetch(release, CACHE) / "*")
    except KraftwireError as error:
        unavailable(str(error))


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Let one process at a time work on a part of the cache (parallel test runs share it)."""
    with kafka.exclusive(CACHE, name):
        yield
