"""What tests do on a machine without Java: skip, but not in the pipeline that must run all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kafka.maven import requires_java


def test_a_missing_java_skips_and_names_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Contributors without Java must be able to run everything else."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="need the program java"):
        requires_java()


def test_a_missing_java_fails_when_everything_has_to_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pipeline that silently skipped these tests would prove nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="need the program java"):
        requires_java()
