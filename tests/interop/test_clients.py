"""Other people's Kafka clients on three kraftwire nodes, also as a table: `make interop`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.messages.find_coordinator_request import FindCoordinatorRequest
from kraftwire.testing import Quorum, quorum
from tests.interop.clients.matrix import CLIENTS, Client, Outcome, probe, probe_login, run_probe
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.maven import unavailable
from tests.support.nodes.secured import secured_quorum
from tests.support.security.kafka import HOST, secured_cluster


@pytest.fixture(scope="module")
def nodes() -> Iterator[Quorum]:
    """A quorum that all clients use one after the other; it writes captures."""
    with quorum(capture=True) as started:
        yield started


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_connects_negotiates_describes_and_reads(client: Client, nodes: Quorum) -> None:
    """A probe leaves out what its client cannot do; everything else has to work."""
    _skip_missing(client)
    outcome = probe(client, nodes)
    failed = {name: step.detail for name, step in outcome.steps.items() if not step.is_ok}
    assert not failed
    assert {"connect", "negotiate", "describe"} <= outcome.steps.keys()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Quorum]]:
    """A quorum over SASL_SSL, and the folder of its stores."""
    folder = tmp_path_factory.mktemp("secured")
    with secured_quorum(folder) as started:
        yield folder, started


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_does_the_same_after_a_login(
    client: Client, secured: tuple[Path, Quorum], tmp_path: Path
) -> None:
    """By SCRAM over TLS, with a certificate that it verifies.

    A client whose SCRAM Kafka refuses as well, as that of librdkafka 2.0.2, logs in by PLAIN.
    """
    _skip_missing(client)
    folder, nodes = secured
    outcome = probe(client, nodes, probe_login(folder, "SCRAM-SHA-512"))
    if _is_refused(outcome):
        assert _is_refused(_at_kafka(client, tmp_path)), outcome
        outcome = probe(client, nodes, probe_login(folder, "PLAIN"))
    failed = {name: step.detail for name, step in outcome.steps.items() if not step.is_ok}
    assert not failed
    assert {"connect", "describe"} <= outcome.steps.keys()


def _is_refused(outcome: Outcome) -> bool:
    """Whether the first step failed because of the login."""
    step = outcome.steps["connect"]
    return not step.is_ok and "authentication" in step.detail.lower()


def _at_kafka(client: Client, folder: Path) -> Outcome:
    """What the client's probe does on a node of Kafka after the same login."""
    with secured_cluster(folder) as cluster:
        (node,) = cluster.nodes
        address = f"{HOST}:{node.listeners['LOGIN']}"
        login = probe_login(folder / "stores", "SCRAM-SHA-512")
        return run_probe(client, address, login)


def _skip_missing(client: Client) -> None:
    if missing := client.missing():
        reason = f"{client.name} needs {missing}"
        unavailable(reason) if client.is_required else pytest.skip(reason)


def test_javas_admin_asks_for_a_groups_coordinator_a_few_times(nodes: Quorum) -> None:
    """If told to retry, it asks for a coordinator tens of thousands of times within seconds."""
    before = _questions(nodes)
    outcome = run_kafka_tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", nodes.bootstrap_servers, "--describe", "--group", "g"),
        *("--timeout", 8000),
        check=False,
    )
    assert "NotCoordinatorException" in outcome.stdout + outcome.stderr
    assert 0 < _questions(nodes) - before < 10


def _questions(nodes: Quorum) -> int:
    """How many FindCoordinator requests the nodes received, by their captures."""
    frames = (frame for number in (1, 2, 3) for frame in Capture(str(nodes.capture_file(number))))
    return sum(
        frame.api_key == FindCoordinatorRequest.API_KEY and frame.is_request for frame in frames
    )
