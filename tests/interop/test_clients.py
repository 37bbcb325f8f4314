"""Other people's Kafka clients on three kraftwire nodes, also as a table: `make interop`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftwire.testing import Quorum, quorum
from tests.interop.clients.matrix import CLIENTS, Client, probe
from tests.support.maven import unavailable


@pytest.fixture(scope="module")
def nodes() -> Iterator[Quorum]:
    """A quorum that all clients use one after the other; it writes captures."""
    with quorum(capture=True) as started:
        yield started


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_connects_negotiates_describes_and_reads(client: Client, nodes: Quorum) -> None:
    """What a client cannot do is left out by its probe; what it can has to work."""
    if missing := client.missing():
        reason = f"{client.name} needs {missing}"
        unavailable(reason) if client.is_required else pytest.skip(reason)
    outcome = probe(client, nodes)
    failed = {name: step.detail for name, step in outcome.steps.items() if not step.is_ok}
    assert not failed
    assert {"connect", "negotiate", "describe"} <= outcome.steps.keys()
