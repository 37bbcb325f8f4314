"""Whether Spark can be started here: its Python packages, and Java."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

_PACKAGES = ("pyspark", "pyarrow", "numpy")
_JAVA_MIN = 17
# 1.8.0_392 is Java 8, 17.0.15 is Java 17.
_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


def check_installed() -> None:
    """Raises: ClickException if Spark cannot be started, with what to do about it."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        raise click.ClickException(f"{names} not installed: pip install 'kraftwire[spark]'")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if home and not Path(home, "bin", "java").exists():
        raise click.ClickException(f"there is no Java in JAVA_HOME, {home}: set it to a Java 17")
    if not java:
        raise click.ClickException("there is no Java: install Java 17, or set JAVA_HOME")
    version = _version(Path(java))
    if version is not None and version < _JAVA_MIN:
        problem = f"Java {version}, {java}, is too old for Spark"
        raise click.ClickException(f"{problem}: install Java 17, or set JAVA_HOME")


def _version(java: Path) -> int | None:
    """Return the version that a Java's folder states, None if it does not; starting it takes
    longer.
    """
    with suppress(OSError, ValueError):
        home = java.resolve(strict=True).parents[1]
        if home.name == "jre":
            home = home.parent
        found = _VERSION.search((home / "release").read_text(encoding="utf-8"))
        return int(found[1]) if found else None
    return None
