"""The searches end in time, whatever one of them does."""

from __future__ import annotations

import json

import pytest

from tools import proof

pytestmark = pytest.mark.slow

# One that does not end, and one that ends at once.
ENDLESS = proof.Part("endless", 0.5, ("timeit", "-n", "1", "import time; time.sleep(600)"))
SHORT = proof.Part("short", 0.5, ("timeit", "-n", "1", "pass"))


def run(capfd: pytest.CaptureFixture[str], seconds: str) -> tuple[int, dict[str, object]]:
    """The exit code and the last line."""
    code = proof.main(["--seconds", seconds])
    last: dict[str, object] = json.loads(capfd.readouterr().out.splitlines()[-1])
    return code, last


def test_a_part_without_an_end_has_failed_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is ended with what it started."""
    monkeypatch.setattr(proof, "PARTS", (ENDLESS, SHORT))
    monkeypatch.setattr(proof, "_OVERTIME_PART", 0.5)
    code, last = run(capfd, "0.1")
    assert (code, last["failed"], last["left_out"]) == (1, ["endless"], [])
    assert set(last["proof"]) == {"endless", "short"}  # type: ignore[call-overload]


def test_parts_without_time_are_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was not searched is neither a success nor a failure."""
    monkeypatch.setattr(proof, "PARTS", (SHORT, SHORT))
    monkeypatch.setattr(proof, "_OVERTIME", -1.0)
    code, last = run(capfd, "0.1")
    assert (code, last["failed"], last["left_out"]) == (0, [], ["short", "short"])
