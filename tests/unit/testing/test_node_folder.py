"""The folder of a test's nodes: whether it is there after the block."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from kraftwire.testing.files import node_folder


def _fail_in(given: Path | None) -> None:
    with node_folder(given, "quorum") as folder:
        (folder / "node.log").write_text("started")
        raise OSError(str(folder))


def test_a_temporary_folder_is_removed_after_the_block() -> None:
    """Tests that pass leave nothing behind."""
    with node_folder(None, "quorum") as folder:
        (folder / "node.log").write_text("started")
    assert not folder.exists()


def test_a_temporary_folder_is_kept_and_named_if_the_block_fails() -> None:
    """The logs in it say why."""
    with pytest.raises(OSError, match="kraftwire-quorum-") as caught:
        _fail_in(None)
    folder = Path(str(caught.value))
    assert caught.value.__notes__ == [f"logs and data of the quorum's nodes are in {folder}"]
    assert (folder / "node.log").exists()
    shutil.rmtree(folder)


def test_a_given_folder_is_made_and_kept(tmp_path: Path) -> None:
    """Whoever names a folder wants what is in it, but not that others read passwords in it."""
    given = tmp_path / "new" / "folder"
    with node_folder(given, "quorum") as folder:
        (folder / "node.log").write_text("started")
    assert (given / "node.log").exists()
    assert stat.S_IMODE(given.stat().st_mode) == 0o700
