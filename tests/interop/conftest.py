"""Fixtures of the tests against real Kafka: its serializers, and the seed of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kafka.java import JavaPeer
from tests.support.kafka.java_cases import Judge, cases, only_in
from tests.support.kafka.maven import KAFKA, OLD_CLIENTS, Release
from tests.support.messages.random_messages import SEED_VARIABLE, fresh_seed


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of all random values of this run, printed whether or not a test fails."""
    value = fresh_seed()
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"{SEED_VARIABLE}={value}")
    return value


@pytest.fixture(scope="session")
def kafka() -> Iterator[JavaPeer]:
    """The serializers of the release that kraftwire follows."""
    yield from _running(KAFKA)


@pytest.fixture(scope="session")
def old_kafka() -> Iterator[JavaPeer]:
    """The serializers of the last release that had the oldest versions."""
    yield from _running(OLD_CLIENTS)


@pytest.fixture(params=[KAFKA.version, OLD_CLIENTS.version])
def judge(request: pytest.FixtureRequest, seed: int, kafka: JavaPeer) -> Judge:
    """A release's serializers, and the message-versions that they judge in random cases.

    The older release judges only what the newer one no longer has.
    """
    if request.param == KAFKA.version:
        return kafka, cases(kafka.message_versions(), seed)
    old_kafka = request.getfixturevalue("old_kafka")
    return old_kafka, cases(only_in(old_kafka, kafka), seed)


def _running(release: Release) -> Iterator[JavaPeer]:
    with JavaPeer(release) as peer:
        yield peer
