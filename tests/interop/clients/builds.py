"""Probes in Go and JavaScript: their clients are fetched, built and kept in the cache folder.

The clients' own tests in Go are built here too, as the same modules have them.

Owns `.cache/probes-go-*` and `.cache/probes-js-*`. go.mod, go.sum and package-lock.json pin
versions.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.kafka.maven import CACHE, exclusive

__all__ = ["go_command", "go_folder", "go_missing", "go_tests", "node_command", "node_missing"]

_HERE = Path(__file__).resolve().parent
_GO = _HERE / "go"
_JS = _HERE / "js"
# Fetching modules takes long only on the first run.
_BUILD_SECONDS_MAX = 500


def go_missing() -> str:
    """What the machine lacks for probes in Go: the program, or modules it cannot fetch."""
    if shutil.which("go") is None:
        return "the program go"
    return _go_modules_missing()


def node_missing() -> str:
    """What the machine lacks for probes in JavaScript: a program, or packages it cannot fetch."""
    absent = [program for program in ("node", "npm") if shutil.which(program) is None]
    if absent:
        return f"the program {' and '.join(absent)}"
    return _node_packages_missing()


def go_command(name: str) -> Callable[[], Sequence[str]]:
    """The probe that is the folder `name` below `go`; it is built first if its sources are new."""

    def command() -> Sequence[str]:
        return [_built(name, "build", f"./{name}")]

    return command


def go_tests(package: str) -> str:
    """The program with the tests of a package; it is built first if pinned versions are new."""
    return _built(f"{package.rpartition('/')[2]}.test", "test", "-c", package)


def go_folder(package: str) -> Path:
    """Where the sources of a package are, among which its tests expect to run."""
    result = _go("list", "-f", "{{.Dir}}", package)
    assert result.returncode == 0, result.stderr
    return Path(result.stdout.strip())


def node_command(name: str) -> Callable[[], Sequence[str]]:
    """The probe `name` of the folder `js`, next to the packages that it imports."""

    def command() -> Sequence[str]:
        assert not _node_packages_missing()
        folder = _node_folder()
        with exclusive("probes-js"):
            for source in _JS.glob("*.js*"):
                shutil.copy(source, folder)
        return ["node", str(folder / f"{name}.js")]

    return command


@functools.cache
def _go_modules_missing() -> str:
    with exclusive("probes-go"):
        result = _go("mod", "download")
    return f"Go modules: {result.stderr.strip()[-300:]}" if result.returncode else ""


def _built(name: str, *words: str) -> str:
    """A program in the cache folder, made with these words if it is not there."""
    target = CACHE / f"probes-go-{_go_digest()}" / name
    with exclusive("probes-go"):
        if not target.exists():
            made = target.with_suffix(".new")
            command, *rest = words
            result = _go(command, "-o", str(made), *rest)
            assert result.returncode == 0, result.stderr
            made.rename(target)
    return str(target)


@functools.cache
def _go_digest() -> str:
    """What the programs depend on: their sources, and the modules that are pinned."""
    files = sorted(path for path in _GO.rglob("*") if path.is_file())
    texts = (b"%s\0%s" % (str(path.relative_to(_GO)).encode(), path.read_bytes()) for path in files)
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:12]


def _go(*words: str) -> subprocess.CompletedProcess[str]:
    # A run must not change which versions are pinned.
    flags = {"GOFLAGS": "-mod=readonly -buildvcs=false"}
    return _run(["go", *words], _GO, flags)


def _node_folder() -> Path:
    pinned = hashlib.sha256((_JS / "package-lock.json").read_bytes()).hexdigest()[:12]
    return CACHE / f"probes-js-{pinned}"


@functools.cache
def _node_packages_missing() -> str:
    """Fetch into a folder with another name first: a broken download never looks complete."""
    folder = _node_folder()
    with exclusive("probes-js"):
        if folder.exists():
            return ""
        partial = folder.with_name(f"{folder.name}-partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_JS / name, partial)
        # Packages must not run their own programs.
        words = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        result = _run(["npm", *words], partial, {})
        if result.returncode:
            return f"npm packages: {result.stderr.strip()[-300:]}"
        partial.rename(folder)
    return ""


def _run(
    command: Sequence[str], folder: Path, more: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS_MAX,
        check=False,
    )
