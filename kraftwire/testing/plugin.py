"""The pytest plugin: two fixtures, which load nothing until they are used.

Whoever wants other nodes overrides the fixture of their options.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kraftwire.testing.cluster.controlled import Cluster
    from kraftwire.testing.nodes import Quorum


@pytest.fixture
def kraftwire_quorum_options() -> dict[str, Any]:
    """The arguments of `quorum` for `kraftwire_quorum`, none unless a test overrides this."""
    return {}


@pytest.fixture
def kraftwire_quorum(
    tmp_path_factory: pytest.TempPathFactory, kraftwire_quorum_options: dict[str, Any]
) -> Iterator[Quorum]:
    """Three kraftwire nodes that form a quorum, for this test alone:
    help(kraftwire.testing.Quorum)."""
    from kraftwire.testing.nodes import quorum

    folder = tmp_path_factory.mktemp("kraftwire-quorum")
    with quorum(**{"folder": folder, **kraftwire_quorum_options}) as nodes:
        yield nodes


@pytest.fixture
def kraftwire_cluster_options() -> dict[str, Any]:
    """The arguments of `kafka_cluster` for `kraftwire_cluster`, none unless a test overrides
    this."""
    return {}


@pytest.fixture
def kraftwire_cluster(
    tmp_path_factory: pytest.TempPathFactory, kraftwire_cluster_options: dict[str, Any]
) -> Iterator[Cluster]:
    """Two brokers of Kafka on three kraftwire controllers, for this test alone, which is skipped
    where Java is missing: help(kraftwire.testing.Cluster)."""
    from kraftwire.testing.cluster.controlled import kafka_cluster
    from kraftwire.testing.cluster.kafka import JavaMissingError

    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("kraftwire-cluster")
        try:
            options = {"folder": folder, **kraftwire_cluster_options}
            cluster = stack.enter_context(kafka_cluster(**options))
        except JavaMissingError as error:
            pytest.skip(f"kraftwire_cluster: {error}")
        yield cluster
