"""The archive for executors, made by the recipe of docs/pipeline.md, and a bare Python.

The recipe installs from a package index; here the package comes from the checkout and the libraries
from the environment of this run, so that nothing is downloaded.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from importlib.util import find_spec
from pathlib import Path

__all__ = ["bare_python", "pack"]

ROOT = Path(__file__).resolve().parents[3]
_LIBRARIES = ("construct", "cramjam", "crc32c")
if sys.version_info < (3, 14):
    _LIBRARIES += ("backports.zstd",)
# What the recipe expects on the machines of the cluster.
_THERE = ("numpy", "numpy.libs", "pyarrow")


def pack(folder: Path) -> Path:
    """An archive of the package and the libraries that it needs."""
    target = folder / "deps"
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *options]
    done = subprocess.run([*pip, "--target", target, ROOT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in _LIBRARIES:
        _copy(distribution(name), target)
    return Path(shutil.make_archive(str(target), "zip", target))


def _copy(library: Distribution, target: Path) -> None:
    """Copy an installed library with its metadata, which some read when they are imported."""
    for file in library.files or ():
        if ".." not in file.parts:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(library.locate_file(file), target / file)


def bare_python(folder: Path) -> Path:
    """A Python with pyarrow and numpy, and without kraftwire."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    for name in _THERE:
        if (_site() / name).exists():
            (site / name).symlink_to(_site() / name)
    return folder / "bin" / "python"


def _site() -> Path:
    """Where the libraries of this run are."""
    found = find_spec("pyarrow")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parents[1]
