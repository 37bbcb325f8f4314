"""Marks say which tests are fast, and which run where; a mistyped folder would mark nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.suite.marks import LONG_CASES, MARKS, has_only_slow, marks_of
from tests.tidy.sources import ROOT, python_files


def test_the_folders_and_files_are_there() -> None:
    """None was renamed without its marks."""
    gone = [prefix for prefix in MARKS if not [*(ROOT / "tests").glob(f"{prefix}*")]]
    assert not gone


def test_the_tests_left_to_full_counts_are_there() -> None:
    """None was renamed, and each has a short case beside it that `make test` runs."""
    for file, names in LONG_CASES.items():
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        tests = set(re.findall(r"^def (test_\w+)", text, re.MULTILINE))
        assert {name.partition("[")[0] for name in names} <= tests, file
        assert tests - set(names), f"{file}: every test is left out"
        assert all("full" in marks_of(f"{file}::{name}") for name in names)


def test_every_test_has_a_folder_that_says_how_fast_it_is() -> None:
    """A new folder would otherwise be part of `make quick` by accident."""
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in _test_files()}
    known = {prefix.partition("/")[0] for prefix in MARKS}
    assert folders <= known, f"not in tests/support/suite/marks.py: {sorted(folders - known)}"


def test_every_mark_is_described(pytestconfig: pytest.Config) -> None:
    """pytest refuses marks that pyproject.toml does not describe, but only where they are used."""
    described = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert {"full", *(mark for marks in MARKS.values() for mark in marks)} <= described


def test_the_longest_prefix_counts() -> None:
    """A slow file of a fast folder, fast files of a slow folder, a folder that need not be read."""
    assert marks_of("tidy/test_wheel.py") == ("slow",)
    assert marks_of("tidy/test_sizes.py") == ()
    assert "slow" in marks_of("spark/stages/test_lag.py")
    assert "slow" not in marks_of("spark/tables/test_typed_tables.py")
    assert has_only_slow("interop")
    assert has_only_slow("spark/stages")
    assert has_only_slow("tidy/test_wheel.py")
    assert not has_only_slow("unit")
    assert not has_only_slow("spark")
    assert not has_only_slow("spark/test_paths.py")


def _test_files() -> list[Path]:
    return [path for path in python_files("tests") if path.name.startswith("test_")]
