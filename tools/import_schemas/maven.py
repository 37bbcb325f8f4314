"""Fetches the jars of a release with the plain Maven client, into a folder that git ignores."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from kraftwire.errors import UsageError
from tools.import_schemas.jars import release_order

# Every module whose jar contains schemas, with the first release that publishes it.
_MODULES = {
    "kafka-clients": "0",
    "kafka-group-coordinator": "0",
    "kafka-metadata": "0",
    "kafka-raft": "0",
    "kafka-share-coordinator": "4.0.0",
    "kafka-storage": "0",
    "kafka-transaction-coordinator": "0",
}
_RELEASE = re.compile(r"\d+(\.\d+){2}(-rc\d+)?")
_TIMEOUT_S = 540


def fetch_release(release: str, cache: Path) -> list[Path]:
    """Return the jars of a release, fetched unless the cache has them.

    Raises: UsageError if the release is not a release number, or Maven is missing or fails.
    """
    if not _RELEASE.fullmatch(release):
        raise UsageError(f"release {release!r}: expected a number such as 9.9.9")
    modules = [
        name for name, first in _MODULES.items() if release_order(release) >= release_order(first)
    ]
    jars = [cache / f"{module}-{release}.jar" for module in modules]
    if not all(jar.is_file() for jar in jars):
        _run_maven(release, modules, cache)
    return jars


def _run_maven(release: str, modules: list[str], cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    project = cache / f"kafka-{release}.pom.xml"
    project.write_text(_project(release, modules), encoding="utf-8")
    command = [
        "mvn", "-q", "-B", "-f", str(project), "dependency:copy-dependencies",
        f"-DoutputDirectory={cache.resolve()}",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError as error:
        raise UsageError(
            "Maven (mvn) is not on the path; name the release's jars on the command line instead"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"Maven took more than {_TIMEOUT_S} s for Kafka {release}") from error
    if done.returncode:
        # Older Mavens put colour codes in front of the word even in batch mode.
        said = [line.partition("ERROR] ")[2] for line in done.stdout.splitlines()]
        reason = next(filter(None, said), f"exit code {done.returncode}")
        raise UsageError(f"Maven could not fetch Kafka {release}: {reason}")


def _project(release: str, modules: list[str]) -> str:
    """Return a Maven project that depends on the modules, without their dependencies."""
    dependencies = "\n".join(
        f"    <dependency><groupId>org.apache.kafka</groupId><artifactId>{module}</artifactId>"
        f"<version>{release}</version><exclusions><exclusion><groupId>*</groupId>"
        "<artifactId>*</artifactId></exclusion></exclusions></dependency>"
        for module in modules
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
        "  <modelVersion>4.0.0</modelVersion>\n"
        "  <groupId>kraftwire</groupId><artifactId>schemas</artifactId><version>1</version>\n"
        "  <packaging>pom</packaging>\n"
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</project>\n"
    )
