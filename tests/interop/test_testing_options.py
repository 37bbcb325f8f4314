"""The fixture `kraftwire_quorum` with options of the test: a quorum over SASL_SSL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftwire.client import Admin
from kraftwire.errors import SecurityError
from kraftwire.testing import Quorum
from tests.support.nodes.secured import secured_client, secured_properties


@pytest.fixture
def kraftwire_quorum_options(tmp_path: Path) -> dict[str, Any]:
    """One node, and how its clients log in."""
    properties = secured_properties(tmp_path)
    return {"nodes": 1, "properties": properties, "security": secured_client(tmp_path)}


def test_a_quorum_is_secured_by_its_options(kraftwire_quorum: Quorum) -> None:
    """Its own client gets in, and one without them does not."""
    assert kraftwire_quorum.node_ids == (1,)
    assert kraftwire_quorum.leader() == 1
    stranger = Admin(bootstrap_controllers=kraftwire_quorum.bootstrap_controllers)
    with pytest.raises(SecurityError, match="speaks SASL_SSL"):
        stranger.describe_quorum()
