"""Names of files and folders that were not made for reading (SEC-PATH)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import kraftwire.decode
from kraftwire.decode.files.folders import walk
from kraftwire.errors import KraftwireError
from tests.support.commands.memory import CLI, decode, run

_DEPTH = 1500
_CALLS: tuple[Callable[[str], object], ...] = (
    kraftwire.decode.open,
    lambda name: next(kraftwire.decode.batches(name)),
    lambda name: next(kraftwire.decode.records(name)),
    lambda name: next(kraftwire.decode.exchanges(name)),
)


def _deep(folder: Path, name: str) -> None:
    """Nested folders; a full name may be longer than the system accepts."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(_DEPTH):
        os.mkdir(name, dir_fd=here)
        deeper = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)


def _remove(folder: Path, name: str) -> None:
    """What `_deep` has made, which pytest could not remove."""
    top = folder
    while (inner := top / name).exists() and (inner / name).exists():
        (inner / name).rename(folder / "next")
        inner.rmdir()
        (folder / "next").rename(top / name)


@pytest.mark.parametrize("name", ["d", "four"])
def test_a_deep_folder_is_walked(tmp_path: Path, name: str) -> None:
    """It ended in a traceback."""
    _deep(tmp_path, name)
    try:
        errors: list[KraftwireError] = []
        assert list(walk([tmp_path], errors.append)) == []
        assert len(errors) == (name == "four")
        assert all("File name too long" in str(error) for error in errors)
        assert all(len(str(error)) < 500 for error in errors)
        assert decode(tmp_path).code == 1
    finally:
        _remove(tmp_path, name)


def test_an_empty_name_is_not_the_current_folder() -> None:
    """`decode ""` read all files of the current folder."""
    for options in ((), ("--follow",), ("--input", "hex")):
        found = run(CLI, "decode", *options, "")
        assert found.code == 2
        assert "an empty name is not a file" in found.errors


@pytest.mark.parametrize("name", ["", "a" * 5000, "a\0b", "bad\udcff\udcfe.log"])
def test_impossible_names_raise_our_errors(name: str) -> None:
    """This holds in Python as well."""
    for call in _CALLS:
        with pytest.raises(KraftwireError):
            call(name)


def test_names_that_are_not_text_are_read(tmp_path: Path) -> None:
    """They are shown with their bytes escaped."""
    (tmp_path / "bad\udcff\x1b.log").write_bytes(b"x")
    found = decode(tmp_path)
    assert "unknown-file" in found.errors
    assert found.code in (1, 3)
