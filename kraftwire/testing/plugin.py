"""The pytest plugin: one fixture, which loads nothing until it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kraftwire.testing.nodes import Quorum


@pytest.fixture
def kraftwire_quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Three kraftwire nodes that form a quorum, for this test alone; see kraftwire.testing."""
    from kraftwire.testing.nodes import quorum

    with quorum(folder=tmp_path_factory.mktemp("kraftwire-quorum")) as nodes:
        yield nodes
