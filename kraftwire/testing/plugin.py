"""The pytest plugin: fixtures, which load nothing until they are used, and what reports get.

Whoever wants other nodes overrides the fixture of their options.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kraftwire.testing.cluster.controlled import Cluster
    from kraftwire.testing.nodes import Quorum
    from kraftwire.testing.threaded_proxy import ThreadedProxy

_PROXY = "kraftwire.testing.threaded_proxy"


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


@pytest.fixture
def kraftwire_proxy_options() -> dict[str, Any]:
    """The arguments of `proxy` for `kraftwire_proxy`, none unless a test overrides this."""
    return {}


@pytest.fixture
def kraftwire_proxy(
    kraftwire_proxy_options: dict[str, Any],
) -> Iterator[Callable[[str], ThreadedProxy]]:
    """A function from the bootstrap address of a cluster to a proxy in front of it, which ends with
    this test: help(kraftwire.testing.ThreadedProxy)."""
    from kraftwire.testing.threaded_proxy import proxy

    with ExitStack() as stack:
        yield lambda upstream: stack.enter_context(proxy(upstream, **kraftwire_proxy_options))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    """Say in the report of a failed test what the proxies that are open have done."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed and _PROXY in sys.modules:
        for each in sys.modules[_PROXY].open_proxies:
            report.sections.append((f"kraftwire proxy {each.bootstrap_servers}", each.summary()))
