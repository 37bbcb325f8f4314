"""The option --within of the simulator."""

from __future__ import annotations

import json

import pytest

from kraftwire.cli.main import main


def test_a_run_stops_in_time_and_prints_how_many_clusters_fitted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The result shows how much of the range was tried."""
    assert main(["sim", "run", "--seeds", "0-5", "--within", "0", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["clusters"] == 1
    assert "1 of 6 clusters fitted" in err
