"""A class-data archive, so that the JVM of a short run finds Spark's classes loaded and verified.

Owns the archives in the user's cache folder: where they are, how the first run makes one, and when
old ones are deleted. If an archive is unusable, the run continues without it.
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
# Another Python with another Spark may use its own archive.
_KEPT = 2

# The JVM writes for a few seconds; one that hangs is left alone.
_SECONDS_MAX = 120
_STALE_S = 3600
# How long a JVM has to end when its archive is not wanted.
_GRACE_S = 5

# A JVM that cannot use an archive, or does not know the option, continues silently.
_QUIET = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:disable -Xlog:all=error:stderr"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """Where the archive of this Java and this Spark is, or will be.

    `fresh` is the file that the JVM writes when it ends, None if the archive exists already.
    """

    path: Path
    fresh: Path | None

    @classmethod
    def find(cls, *, has_stages: bool = True) -> ClassArchive | None:
        """Return the archive to use or to make; None if impossible, or if Spark's JVM already runs.

        A run without stages needs half of the classes. It may use the archive of a run with stages,
        but the one that it leaves is useful only for runs without them.
        """
        java = _java()
        spark = find_spec("pyspark")
        if _running() is not None or java is None or spark is None or spark.origin is None:
            return None
        path = cache_folder() / f"spark-{_digest(java, Path(spark.origin))}.jsa"
        try:
            _sweep(path.parent)
            if path.exists():
                return cls(path, None)
            if not has_stages:
                path = _without_stages(path)
                if path.exists():
                    return cls(path, None)
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        if not os.access(path.parent, os.W_OK):
            return None
        return cls(path, path.with_suffix(f".{os.getpid()}.new"))

    @classmethod
    def kept(cls) -> ClassArchive | None:
        """Return the archive that an earlier run has made; None if there is none."""
        found = cls.find(has_stages=False)
        return None if found is None or found.fresh is not None else found

    @property
    def options(self) -> str:
        """Return the JVM options, in the form that Spark expects."""
        name, path = "SharedArchiveFile", self.path
        if self.fresh is not None:
            name, path = "ArchiveClassesAtExit", self.fresh
        return f'{_QUIET} "-XX:{name}={path}"'

    def keep(self) -> None:
        """Stop Spark's JVM if it is to write an archive, and keep what it writes.

        Order: after Spark was stopped; this process cannot start it again.
        """
        jvm = _running()
        if self.fresh is not None and jvm is not None:
            self.keep_from(jvm)

    def keep_from(self, jvm: subprocess.Popen[bytes]) -> bool:
        """Keep what a JVM writes when its input ends; return whether there is a new archive."""
        if self.fresh is None:
            return False
        with suppress(OSError, subprocess.TimeoutExpired):
            if jvm.stdin is not None:
                jvm.stdin.close()
            if jvm.wait(_SECONDS_MAX) == 0:
                self.fresh.replace(self.path)
                _without_stages(self.path).unlink(missing_ok=True)
                self._forget_others()
                return True
        return False

    def abandon(self) -> None:
        """End Spark's JVM without an archive, if it is to write one: the run has ended early.

        Order: after Spark was stopped, if it can be.
        """
        jvm = _running()
        if self.fresh is not None and jvm is not None:
            self.abandon_from(jvm)

    def abandon_from(self, jvm: subprocess.Popen[bytes]) -> None:
        """Do the same for a JVM that ends with its input."""
        if self.fresh is None:
            return
        try:
            with suppress(OSError, subprocess.TimeoutExpired):
                if jvm.stdin is not None:
                    jvm.stdin.close()
                # It removes its temporary files first, and then writes.
                jvm.wait(_GRACE_S)
        finally:
            jvm.kill()
            with suppress(OSError, subprocess.TimeoutExpired):
                jvm.wait(_GRACE_S)
            with suppress(OSError):
                self.fresh.unlink()

    def _forget_others(self) -> None:
        others = [path for path in self.path.parent.glob(_PATTERN) if path != self.path]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[_KEPT - 1 :]:
            path.unlink()


def _without_stages(path: Path) -> Path:
    """Return where the smaller archive of the same Java and Spark is."""
    return path.with_name(f"{path.stem}-tables{path.suffix}")


def cache_folder() -> Path:
    """Return the platform's folder for cached files."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kraftwire"


def _running() -> subprocess.Popen[bytes] | None:
    """Return the JVM that this process has started for Spark."""
    from pyspark import SparkContext

    jvm: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return jvm


def _java() -> Path | None:
    """Return the Java that Spark's scripts start."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    with suppress(OSError):
        return Path(found).resolve(strict=True) if found else None
    return None


def _digest(java: Path, spark: Path) -> str:
    """Return a digest of what an archive depends on; the JVM checks the rest, such as jar times."""
    facts = [version("pyspark"), str(spark), str(java), str(java.stat().st_mtime_ns)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def _sweep(folder: Path) -> None:
    """Remove the leftovers of killed JVMs."""
    for path in folder.glob("*.new"):
        # Another run may sweep as well, or nobody may write here.
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - _STALE_S:
                path.unlink()
