"""A class-data archive, so that the JVM of a short run finds Spark's classes read and checked.

Owns the archives in the user's cache folder: where one is, how it is made by the first run that
finds none, and when old ones go. Whatever is wrong with it, a run goes on without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

__all__ = ["ClassArchive", "cache_folder"]

_PATTERN = "spark-*.jsa"
# Another Python with another Spark may use one of its own.
_KEPT = 2

# The JVM writes for some seconds; one that hangs is left alone.
_SECONDS_MAX = 120
_STALE_S = 3600

# A JVM that cannot use an archive, or does not know the option, says nothing and goes on.
_QUIET = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:disable -Xlog:all=error:stderr"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """Where the archive of this Java and this Spark is, or will be.

    Shape: `fresh` is what the JVM writes at its end, None if the archive is there already.
    """

    path: Path
    fresh: Path | None

    @classmethod
    def find(cls) -> ClassArchive | None:
        """The archive to use or to make; None if there can be none, or Spark's JVM runs already."""
        java = _java()
        spark = find_spec("pyspark")
        if _running() is not None or java is None or spark is None or spark.origin is None:
            return None
        path = cache_folder() / f"spark-{_digest(java, Path(spark.origin))}.jsa"
        try:
            if path.exists():
                return cls(path, None)
            path.parent.mkdir(parents=True, exist_ok=True)
            _sweep(path.parent)
        except OSError:
            return None
        if not os.access(path.parent, os.W_OK):
            return None
        return cls(path, path.with_suffix(f".{os.getpid()}.new"))

    @property
    def options(self) -> str:
        """What the JVM is told, as Spark takes options."""
        name, path = "SharedArchiveFile", self.path
        if self.fresh is not None:
            name, path = "ArchiveClassesAtExit", self.fresh
        return f'{_QUIET} "-XX:{name}={path}"'

    def keep(self) -> None:
        """Let Spark's JVM end if it is to make an archive, and keep what it writes then.

        Order: after Spark was stopped; this process cannot start it again.
        """
        jvm = _running()
        if self.fresh is not None and jvm is not None:
            self.keep_from(jvm)

    def keep_from(self, jvm: subprocess.Popen[bytes]) -> bool:
        """The same for a JVM that ends when its input does; whether there is a new archive."""
        if self.fresh is None:
            return False
        with suppress(OSError, subprocess.TimeoutExpired):
            if jvm.stdin is not None:
                jvm.stdin.close()
            if jvm.wait(_SECONDS_MAX) == 0:
                self.fresh.replace(self.path)
                self._forget_others()
                return True
        return False

    def _forget_others(self) -> None:
        others = [path for path in self.path.parent.glob(_PATTERN) if path != self.path]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[_KEPT - 1 :]:
            path.unlink()


def cache_folder() -> Path:
    """The folder for what can be made again, by the custom of the platform."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kraftwire"


def _running() -> subprocess.Popen[bytes] | None:
    """The JVM that this process has started for Spark."""
    from pyspark import SparkContext

    jvm: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return jvm


def _java() -> Path | None:
    """The Java that Spark's scripts start."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    with suppress(OSError):
        return Path(found).resolve(strict=True) if found else None
    return None


def _digest(java: Path, spark: Path) -> str:
    """What an archive depends on; the JVM itself checks the rest, as the times of jars."""
    facts = [version("pyspark"), str(spark), str(java), str(java.stat().st_mtime_ns)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def _sweep(folder: Path) -> None:
    """Remove what JVMs that were killed have left."""
    for path in folder.glob("*.new"):
        if path.stat().st_mtime < time.time() - _STALE_S:
            path.unlink()
