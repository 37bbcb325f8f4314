"""What `decode` says about a log directory as a whole."""

from __future__ import annotations

import pytest

from kraftwire.cli.main import main
from tests.support.captures.decoded import ROOT

_LOGS = ROOT / "tests" / "golden" / "logs"


def test_a_directory_on_which_no_node_starts_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A segment of the golden controller is missing: each file is sound, the log is not."""
    assert main(["decode", str(_LOGS / "controller")]) == 0
    assert "a node does not start on it" in capsys.readouterr().err


def test_nothing_is_said_about_other_folders(capsys: pytest.CaptureFixture[str]) -> None:
    """The partition alone is not a log directory."""
    assert main(["decode", str(_LOGS / "controller" / "__cluster_metadata-0")]) == 0
    assert "does not start" not in capsys.readouterr().err
