"""Some of the crash images in each test run, and proof that the search finds broken durability."""

from __future__ import annotations

import pytest

from kraftwire.sim.crash_model import Inode
from kraftwire.sim.disk import SimFiles
from tests.crash.outcomes import CrashPoint, contents_of
from tests.crash.script import Run
from tests.crash.search import crash, steps_of_the_script
from tests.history.putting_back import Edit, put_back

_IMAGES = 2500

_LOG = "kraftwire.log.metadata_log:MetadataLog"
_STORE = "kraftwire.log.snapshots.store:SnapshotStore"
_BROKEN = {
    "the mark is written before the log is synced": (
        Edit(
            f"{_LOG}.flush",
            "    for segment in dirty:",
            "self._mark.raise_to(self._mark_at(end_offset))\nfor segment in dirty:",
        ),
    ),
    "the mark covers what was appended beside the flush": (
        Edit(f"{_LOG}.flush", "self._mark_at(end_offset)", "self._mark_at(self.end_offset)"),
    ),
    "both copies of the mark are in one place": (
        Edit("kraftwire.log.flush_mark:FlushMark.raise_to", "self._number % 2 * COPY_BYTES", "0"),
    ),
    "a flush syncs no file of the log": (
        Edit("kraftwire.log.segment:Segment.sync", "self.file.fdatasync()", "pass"),
    ),
    "a truncation lowers the mark too late": (
        Edit(f"{_LOG}._truncate", "self._mark.set(self._mark_at(end))", "pass"),
        Edit(
            f"{_LOG}._truncate",
            "segment.cut(number)",
            "segment.cut(number)\nself._mark.set(self._mark_at(end))",
        ),
    ),
    "a truncation is not made durable": (
        Edit("kraftwire.log.segment:Segment.cut", "self.file.fdatasync()", "pass"),
    ),
    "a new segment may lose its name": (
        Edit(f"{_LOG}._roll", "self._files.fsync_dir(self.directory)", "pass"),
    ),
    "a reset removes records that the mark still covers": (
        Edit(
            f"{_LOG}._reset",
            "self._mark.set(Mark(start, start.offset, epochs_crc(()), self._identity))",
            "pass",
        ),
    ),
    "a snapshot gets its name before its content is durable": (
        Edit(f"{_STORE}._publish", "file.fdatasync()", "pass"),
    ),
    "a snapshot may lose its name": (
        Edit(f"{_STORE}._publish", "self._files.fsync_dir(self._directory)", "pass"),
    ),
    "a vote may lose its name": (
        Edit("kraftwire.log.files:replace_file", "files.fsync_dir(parent(path))", "pass"),
    ),
    "a vote is renamed before its content is durable": (
        Edit("kraftwire.log.files:replace_file", "file.fdatasync()", "pass"),
    ),
    "a start keeps a log that ends before a snapshot": (
        Edit(
            f"{_LOG}.open",
            "log._start(store.newest if opened.found.is_behind(store.newest) else None)",
            "log._start(None)",
        ),
    ),
    "a start keeps snapshots below the log": (
        Edit(
            f"{_STORE}.settle",
            "[one for one in self._stored if one.offset < start_offset]",
            "[]",
        ),
    ),
    "two epochs begin where a dropped prefix ends": (
        Edit(f"{_LOG}._note_epochs", "self._epochs.pop()", "pass"),
    ),
    "what a start finds is not synced": (
        Edit("kraftwire.log.recovery:repair", "last.file.fdatasync()", "pass"),
    ),
}


def test_no_crash_loses_what_was_acknowledged() -> None:
    """Over all operations; `python -m tests.crash` tries twenty times as many disks."""
    figures = crash(_IMAGES)
    assert figures.violations == []
    assert figures.steps == steps_of_the_script() > 500
    assert figures.images > 0.95 * _IMAGES
    assert figures.second > 100


@pytest.mark.parametrize("broken", _BROKEN, ids=lambda name: name.replace(" ", "-"))
def test_broken_durability_is_found(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that finds nothing anywhere would prove nothing."""
    put_back(_BROKEN[broken], monkeypatch)
    assert crash(_IMAGES, until_found=True).violations


def test_every_legal_content_of_a_file_is_tried() -> None:
    """Two sectors in any order, or a sector and a change of size; and what was durable before."""
    inode = Inode(bytearray(b"old"), bytearray(b"old"))
    inode.change((0, b"a" * 512 + b"b"))
    found = contents_of(inode)
    assert found[0] == b"old"
    assert found[-1] == b"a" * 512 + b"b"
    assert {b"a" * 512, b"old".ljust(512, b"\0") + b"b", bytes(513)} <= set(found)
    inode.change((1, None))
    assert {b"o", b"a"} <= set(contents_of(inode))


def test_names_change_in_order() -> None:
    """A directory's journal keeps them so; a file has its old name or its new one."""
    files = SimFiles()
    for name in ("a", "b"):
        files.open(f"/d/{name}", create=True)
    files.fsync_dir("/d")
    files.rename("/d/a", "/d/c")
    files.unlink("/d/b")
    found = [set(files.named_after({"/d": count})) for count in range(3)]
    assert found == [{"/d/a", "/d/b"}, {"/d/b", "/d/c"}, {"/d/c"}]
    assert CrashPoint(files).total == 3


def test_the_script_is_the_same_in_every_run() -> None:
    """A step that is reported can then be examined again."""
    assert steps_of_the_script() == steps_of_the_script()
    first, second = SimFiles(), SimFiles()
    Run(first).go()
    Run(second).go()
    assert first.named_after({}).keys() == second.named_after({}).keys()
