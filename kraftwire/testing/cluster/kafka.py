"""Kafka's jars: those of an installation, or of a release that Maven fetches into a cache folder.

Which repository serves them is a matter of Maven's own settings.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kraftwire.errors import StorageError, UsageError

OnFile = Callable[[int], None]

_CORE = re.compile(r"kafka_2\.\d+-(\d+\.\d+)[\d.]*\.jar", re.ASCII)


class JavaMissingError(UsageError):
    """A program that Kafka's brokers need is not installed."""


@dataclass(frozen=True, slots=True)
class Release:
    """The artifacts of one release of Kafka, as Maven coordinates, with or without a classifier.

    `part` says which part of the release they are, if not all that a node needs.
    """

    version: str
    artifacts: tuple[str, ...]
    part: str = ""

    @property
    def name(self) -> str:
        """Release and part, as in the names of cache folders."""
        return f"kafka-{self.version}" + (f"-{self.part}" if self.part else "")

    @property
    def pom(self) -> str:
        """A Maven project that depends on the artifacts and on nothing else."""
        dependencies = "".join(map(_dependency, self.artifacts))
        return (
            '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
            "<modelVersion>4.0.0</modelVersion>\n"
            "<groupId>kraftwire</groupId><artifactId>jars</artifactId><version>1</version>\n"
            f"<dependencies>\n{dependencies}</dependencies>\n</project>\n"
        )

    @property
    def marker(self) -> str:
        """The file that says that the jars are complete; a changed list has another one."""
        return f"complete-{hashlib.sha256(self.pom.encode()).hexdigest()[:12]}"


def _dependency(artifact: str) -> str:
    names = ("groupId", "artifactId", "version", "classifier")
    parts = "".join(
        f"<{name}>{text}</{name}>" for name, text in zip(names, artifact.split(":"), strict=False)
    )
    return f"  <dependency>{parts}</dependency>\n"


def release_of_nodes(version: str, logging: str) -> Release:
    """Return what a node of a release needs, its tools included.

    Kafka logs through slf4j 1.7 and leaves the binding to the distribution; without one a node
    prints nothing. `logging` is the binding of the log4j that the release depends on.
    """
    modules = (f"org.apache.kafka:{name}:{version}" for name in ("kafka_2.13", "kafka-tools"))
    return Release(version, (*modules, logging))


# The current release of Kafka: the only place that names it for brokers, tests and documents.
KAFKA = release_of_nodes("4.4.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")


_SMALL_HEAP = "-Xmx256m -Xms64m"


def cache_folder() -> Path:
    """Return the folder for what can be made again, of the user who runs this."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative one is to be ignored, as the specification of these folders says.
    return (given if given.is_absolute() else Path.home() / ".cache") / "kraftwire"


def java() -> str:
    """Return the program java. Raises: JavaMissingError."""
    return _program("java", "brokers of Kafka need Java 17 or later")


def java_options() -> list[str]:
    """Return the environment's options for the brokers' Java, as Kafka's scripts take them, too.

    Raises: UsageError for quotes that do not end.
    """
    found = []
    for name, default in (("KAFKA_HEAP_OPTS", _SMALL_HEAP), ("KAFKA_OPTS", "")):
        try:
            found += shlex.split(os.environ.get(name, default))
        except ValueError as error:
            raise UsageError(f"{name} of the environment is no list of options: {error}") from error
    return found


def _program(name: str, why: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise JavaMissingError(f"{why}: there is no program {name} on the PATH")
    return found


def installed(folder: Path) -> Path:
    """Return the folder with the jars of an installation. Raises: UsageError if it has none."""
    for place in (folder / "libs", folder):
        if place.is_dir() and release_in(place) is not None:
            return place
    raise UsageError(f"{folder}: no installation of Kafka: no libs/kafka_2.13-*.jar in it")


def kafka_jars(given: Path | None, on_file: OnFile = lambda _: None) -> Path:
    """Return the folder with the jars of an installation, or of the release in the user's cache.

    Without one given, the environment's KRAFTWIRE_KAFKA names it. Raises: JavaMissingError,
    UsageError, StorageError.
    """
    java()
    java_options()
    named = os.environ.get("KRAFTWIRE_KAFKA", "")
    if given is None and not named:
        return fetch(KAFKA, cache_folder(), on_file)
    return installed((given or Path(named)).absolute())


def release_in(jars: Path) -> str | None:
    """Return the release of the jars in a folder, such as 4.1; None if the broker's is missing."""
    found = (_CORE.fullmatch(path.name) for path in jars.iterdir())
    return next((match[1] for match in found if match), None)


@contextmanager
def exclusive(cache: Path, name: str) -> Iterator[None]:
    """Let one process at a time work on a part of a cache."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fetch(release: Release, cache: Path, on_file: OnFile = lambda _: None) -> Path:
    """Return the folder with the jars of a release, which Maven fills on first use.

    `on_file` gets the number of files that were fetched. Raises: JavaMissingError without Maven;
    StorageError if it cannot fetch them.
    """
    folder = cache / release.name
    with exclusive(cache, release.name):
        if not (folder / release.marker).exists():
            _fill(release, folder, on_file)
    return folder


def _fill(release: Release, folder: Path, on_file: OnFile) -> None:
    """Fill a separate folder and rename it, so that an incomplete download never counts as jars."""
    maven = _program("mvn", f"Kafka {release.version} is fetched by Maven at first use")
    temporary = Path(tempfile.mkdtemp(prefix=f"{release.name}-", dir=folder.parent))
    try:
        (temporary / "pom.xml").write_text(release.pom)
        _copy_dependencies(maven, release, temporary, on_file)
        (temporary / release.marker).touch()
        shutil.rmtree(folder, ignore_errors=True)
        temporary.chmod(0o755)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _copy_dependencies(maven: str, release: Release, folder: Path, on_file: OnFile) -> None:
    command = [maven, "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
    process = subprocess.Popen(
        [*command, f"-DoutputDirectory={folder}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    errors = []
    count = 0
    try:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if "Downloaded from" in line or "Copying" in line:
                    count += 1
                    on_file(count)
                elif "ERROR" in line:
                    errors.append(line.strip())
        code = process.wait()
    finally:
        process.kill()
    if code:
        problem = errors[0] if errors else f"exit code {code}"
        text = f"Maven could not fetch Kafka {release.version}: {problem}"
        raise StorageError(text, file=str(folder))
