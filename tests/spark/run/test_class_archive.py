"""The archive of Java's classes: made once, used from then on, never in the way."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")

from kraftwire.spark import class_archive
from kraftwire.spark.class_archive import ClassArchive, cache_folder
from tests.support.maven import requires_java

# Reads to its end and leaves a file, as the JVM does.
WRITER = "cat; echo classes > {path}; exit {code}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives are kept, with no JVM running."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    monkeypatch.setattr(class_archive, "_running", lambda: None)
    monkeypatch.setattr(class_archive, "cache_folder", lambda: tmp_path / "a cache")
    return tmp_path / "a cache"


def _found() -> ClassArchive:
    archive = ClassArchive.find()
    assert archive is not None
    return archive


def _ended(archive: ClassArchive, code: int = 0) -> bool:
    command = WRITER.format(path=f"'{archive.fresh}'", code=code)
    return archive.keep_from(subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE))


def test_the_first_run_makes_it(folder: Path) -> None:
    """The next one uses it, and writes nothing."""
    first = _found()
    assert f'"-XX:ArchiveClassesAtExit={first.fresh}"' in first.options
    assert _ended(first)
    second = _found()
    assert second.fresh is None
    assert f'"-XX:SharedArchiveFile={first.path}"' in second.options
    assert [path.name for path in folder.iterdir()] == [first.path.name]


def test_a_run_without_stages_has_a_smaller_one(folder: Path) -> None:
    """It uses the full one if there is one, and the smaller one is then removed."""
    small = ClassArchive.find(has_stages=False)
    assert small is not None
    assert ClassArchive.kept() is None
    assert _ended(small)
    assert ClassArchive.kept() == ClassArchive.find(has_stages=False) == replace(small, fresh=None)
    whole = _found()
    assert whole.fresh is not None
    assert _ended(whole)
    assert list(folder.iterdir()) == [whole.path]
    assert ClassArchive.kept() == ClassArchive.find(has_stages=False) == _found()


@pytest.mark.usefixtures("folder")
def test_a_jvm_that_failed_leaves_no_archive() -> None:
    """What it wrote may be half of one."""
    first = _found()
    assert not _ended(first, code=1)
    assert not first.path.exists()


def test_one_other_is_kept(folder: Path) -> None:
    """That of another Spark; older ones are removed."""
    folder.mkdir()
    for age, name in enumerate(("spark-new.jsa", "spark-old.jsa"), 1):
        (folder / name).touch()
        os.utime(folder / name, (1_000_000 - age, 1_000_000 - age))
    archive = _found()
    assert _ended(archive)
    names = {path.name for path in folder.iterdir()}
    assert names == {archive.path.name, "spark-new.jsa"}


def test_what_a_kill_left_is_removed(folder: Path) -> None:
    """After an hour, when no process writes it any more."""
    folder.mkdir()
    (folder / "spark-x.1.new").touch()
    os.utime(folder / "spark-x.1.new", (0, 0))
    _found()
    assert not list(folder.iterdir())


def test_it_goes_when_there_is_an_archive_too(folder: Path) -> None:
    """Or it would stay for good."""
    assert _ended(_found())
    (folder / "spark-x.1.new").touch()
    os.utime(folder / "spark-x.1.new", (0, 0))
    archive = _found()
    assert archive.fresh is None
    assert list(folder.iterdir()) == [archive.path]


def test_without_a_folder_to_write_to_there_is_none(folder: Path) -> None:
    """A run then works without one."""
    folder.write_text("a file")
    assert ClassArchive.find() is None


def test_the_folder_is_that_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CACHE_HOME counts on Linux, LOCALAPPDATA on Windows."""
    monkeypatch.setattr(class_archive.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/kraftwire")
    monkeypatch.setattr(class_archive.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/kraftwire")


def test_java_takes_the_options(tmp_path: Path) -> None:
    """Both to make an archive and to use it; a damaged one is silently ignored."""
    requires_java()
    making = ClassArchive(tmp_path / "a.jsa", tmp_path / "a.new")
    using = ClassArchive(tmp_path / "a.jsa", None)
    for archive in (making, using, using):
        options = archive.options.replace('"', "").split()
        done = subprocess.run(
            ["java", *options, "-version"], capture_output=True, text=True, check=True
        )
        assert "warning" not in (done.stdout + done.stderr).lower()
        if archive is making:
            (tmp_path / "a.new").replace(tmp_path / "a.jsa")
        elif "sharing" in done.stderr:
            (tmp_path / "a.jsa").chmod(0o600)
            (tmp_path / "a.jsa").write_bytes(b"no archive")
