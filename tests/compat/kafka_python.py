"""The integration tests of kafka-python, from its source archive."""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from kraftwire.testing.cluster.kafka import KAFKA
from tests.compat.suite import FOLDER, Results, build, junit_results, make_once, run_tests

_VERSION = "3.0.12"
# Those of logins and TLS start brokers of their own.
_FILES = ("test_admin_integration", "test_consumer_integration", "test_producer_integration")
_SECONDS_MAX = 400

# What the client compresses with, for this interpreter.
_LIBRARIES = ("lz4==4.4.5", "python-snappy==0.7.3", "zstandard==0.25.0")

# The archive lacks the file that starts brokers; for one that somebody else has started the tests
# need this of it.
_SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


class SpawnedService:
    pass
"""


class KafkaPython:
    """kafka-python, with the client of the archive."""

    name = "kafka-python"
    brokers = 1

    def __init__(self) -> None:
        self._folder = FOLDER / f"kafka-python-{_VERSION}-{sys.implementation.cache_tag}"

    def prepare(self) -> None:
        """Fetch and unpack the archive."""
        make_once(self._folder, _fetch)

    def run(self, bootstrap: str, tests: Sequence[str], folder: Path) -> Results:
        """Run them in one process, one after the other."""
        report = folder / "report.xml"
        report.unlink(missing_ok=True)
        chosen = tests or _FILES
        paths = [
            f"test/integration/{file}.py{colons}{name}"
            for file, colons, name in (test.partition("::") for test in chosen)
        ]
        options = ("-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--junitxml={report}")
        run_tests(
            [sys.executable, "-m", "pytest", *options, *paths],
            self._folder,
            folder / "suite.log",
            seconds=_SECONDS_MAX,
            PYTHONPATH="libraries",
            # The tests look whether there is an installation of Kafka, and do not look into it.
            KAFKA_ROOT=os.curdir,
            KAFKA_VERSION=KAFKA.version,
            KAFKA_URI=f"kafka://{bootstrap.partition(',')[0]}",
        )
        return {
            f"{file.rpartition('.')[2]}::{test}": result
            for (file, test), result in junit_results(report).items()
        }


def _fetch(partial: Path) -> Path:
    """Fetch and unpack the archive with the libraries; returns where."""
    wanted = ("--no-deps", "--no-binary", ":all:", f"kafka-python=={_VERSION}")
    build([sys.executable, "-m", "pip", "download", "--quiet", *wanted], partial)
    (archive,) = partial.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(partial, filter="data")
    (unpacked,) = (path for path in partial.iterdir() if path.is_dir())
    # Python has a package of that name, which comes first if this is not one.
    (unpacked / "test" / "__init__.py").touch()
    (unpacked / "test" / "service.py").write_text(_SERVICE)
    install = ("install", "--quiet", "--target", unpacked / "libraries")
    build([sys.executable, "-m", "pip", *install, *_LIBRARIES], partial)
    return unpacked
