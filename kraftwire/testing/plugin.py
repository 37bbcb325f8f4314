"""The pytest plugin: two fixtures, which load nothing until they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kraftwire.testing.cluster.controlled import Cluster
    from kraftwire.testing.nodes import Quorum


@pytest.fixture
def kraftwire_quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Three kraftwire nodes that form a quorum, for this test alone; see kraftwire.testing."""
    from kraftwire.testing.nodes import quorum

    with quorum(folder=tmp_path_factory.mktemp("kraftwire-quorum")) as nodes:
        yield nodes


@pytest.fixture
def kraftwire_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers of Kafka on three kraftwire controllers, for this test alone, which is skipped
    where Java is missing; see kraftwire.testing."""
    from kraftwire.testing.cluster.controlled import kafka_cluster
    from kraftwire.testing.cluster.kafka import JavaMissingError

    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("kraftwire-cluster")
        try:
            cluster = stack.enter_context(kafka_cluster(folder=folder))
        except JavaMissingError as error:
            pytest.skip(f"kraftwire_cluster: {error}")
        yield cluster
