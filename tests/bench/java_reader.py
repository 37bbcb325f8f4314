"""Kafka's own reader of records, in a JVM that runs one round at a time."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.report import console
from tests.support.kafka.maven import KAFKA, directory_of

__all__ = ["JavaReader", "has_java", "java_reader"]

_SOURCE = Path(__file__).with_name("java") / "ReadRecords.java"
# After these the JVM has compiled what it runs often.
_WARM_ROUNDS = 40
_NANOSECONDS = 1e9


class JavaReader:
    """Reads one buffer again and again; `records` is the number of records in it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.records = 0
        for _ in range(_WARM_ROUNDS):
            self.arrays()
            self.views()

    def arrays(self) -> float:
        """CPU seconds of reading everything once, keys and values as in the consumer."""
        return self._round("arrays")

    def views(self) -> float:
        """The same without copying keys and values."""
        return self._round("views")

    def _round(self, how: str) -> float:
        given, answers = self._process.stdin, self._process.stdout
        assert given is not None
        assert answers is not None
        given.write(f"{how}\n")
        given.flush()
        records, taken = answers.readline().split()
        self.records = int(records)
        return int(taken) / _NANOSECONDS


def has_java(what: str) -> bool:
    """Whether Java and Kafka's jars are there; without them, a line says what is left out."""
    if shutil.which("java") is not None and directory_of(KAFKA).is_dir():
        return True
    console.print(f"{what} is left out: no java, or the tests have not fetched its jars")
    return False


@contextmanager
def java_reader(data: bytes) -> Iterator[JavaReader | None]:
    """The reader of a segment's bytes; None where Java or Kafka's jars are missing."""
    if not has_java("Java's reader"):
        yield None
        return
    with tempfile.NamedTemporaryFile(prefix="segment-") as file:
        file.write(data)
        file.flush()
        jars = str(directory_of(KAFKA) / "*")
        command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", jars, str(_SOURCE), file.name]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            yield JavaReader(process)
            assert process.stdin is not None
            process.stdin.close()
