"""A lone controller of ours and a broker start at every pair of versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.starts import RELEASES, start_pair


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["kraft.version 0", "kraft.version 1"])
def test_a_broker_starts_on_a_controller_of_ours(
    tmp_path: Path, release: str, is_dynamic: bool
) -> None:
    """Neither logs an error, and neither takes long even on a busy machine."""
    seconds = start_pair(tmp_path, release, is_dynamic=is_dynamic)
    assert seconds.controller < 20
    assert seconds.broker < 60
