"""Quorums behind a proxy of the test: `proxied=True`, also in front of secured nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftwire.client import Admin
from kraftwire.errors import UsageError
from kraftwire.testing import Quorum, quorum
from tests.support.nodes.secured import secured_client, secured_properties


@pytest.fixture
def kraftwire_quorum_options() -> dict[str, Any]:
    """One node, and a proxy."""
    return {"nodes": 1, "proxied": True}


def test_clients_of_a_proxied_quorum_meet_its_rules(kraftwire_quorum: Quorum) -> None:
    """And see the node at an address of the proxy; controllers are reached without it."""
    through = Admin(bootstrap_servers=kraftwire_quorum.bootstrap_servers)
    with kraftwire_quorum.proxy.refuse("DescribeCluster", "NOT_CONTROLLER", times=1) as rule:
        (here,) = through.describe_cluster().nodes
    assert rule.count == 1
    (own,) = kraftwire_quorum.admin().describe_cluster().nodes
    assert here.id == own.id
    assert here.port != own.port
    assert "kraftwire-admin: " in kraftwire_quorum.proxy.summary()


def test_without_a_proxy_there_are_no_rules(tmp_path: Path) -> None:
    """The error says what is missing."""
    with pytest.raises(UsageError, match="without proxied=True"):
        assert quorum(1, folder=tmp_path).proxy


def test_the_proxy_connects_as_the_clients_of_the_quorum_do(tmp_path: Path) -> None:
    """With TLS and their login; whoever reaches it needs neither."""
    with quorum(
        1,
        folder=tmp_path / "quorum",
        properties=secured_properties(tmp_path),
        security=secured_client(tmp_path),
        proxied=True,
    ) as nodes:
        through = Admin(bootstrap_servers=nodes.bootstrap_servers)
        assert through.describe_cluster().cluster_id == nodes.cluster_id
