"""The codecs of other languages as programs: each reads a list of items and prints CPU seconds.

Built by their own tools; a driver whose tools are missing is skipped with a line that says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.bench.corpus import Item
from tests.bench.report import console
from tests.support.kafka.maven import KAFKA, directory_of

__all__ = ["Driver", "Times", "drivers", "write_list"]

_HERE = Path(__file__).parent

# CPU seconds per call by item and operation.
Times = dict[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Driver:
    """A program that measures one language's codec."""

    name: str
    command: tuple[str, ...]

    def run(self, listed: Path) -> Times:
        """Measure every item of the list that this codec knows.

        Raises: RuntimeError with the program's own output if it fails.
        """
        result = subprocess.run(
            [*self.command, str(listed)], capture_output=True, text=True, check=False
        )
        if result.returncode:
            raise RuntimeError(f"the driver for {self.name} failed: {result.stderr.strip()}")
        rows = [line.split("\t") for line in result.stdout.splitlines()]
        return {(item, operation): float(seconds) for item, operation, seconds in rows}


def drivers(folder: Path) -> list[Driver]:
    """The drivers whose tools are available, built into a folder."""
    return [each for each in (_java(folder), _go(folder)) if each is not None]


def write_list(items: Iterable[Item], folder: Path) -> Path:
    """Write the items, and the list of them that drivers read."""
    lines = []
    for item in items:
        path = folder / f"{item.name}.bin"
        path.write_bytes(item.data)
        fields = (item.name, item.message, item.api_key, item.version, path)
        lines.append("\t".join(map(str, fields)) + "\n")
    listed = folder / "items.tsv"
    listed.write_text("".join(lines), encoding="utf-8")
    return listed


def _java(folder: Path) -> Driver | None:
    if shutil.which("javac") is None or not directory_of(KAFKA).is_dir():
        console.print("Java is skipped: no javac, or the tests have not fetched Kafka's jars")
        return None
    jars = str(directory_of(KAFKA) / "*")
    source = _HERE / "java" / "CodecDriver.java"
    _build(["javac", "-cp", jars, "-d", str(folder), str(source)], _HERE)
    path = os.pathsep.join((str(folder), jars))
    return Driver("Java", ("java", "-XX:+UseSerialGC", "-Xmx1g", "-cp", path, "CodecDriver"))


def _go(folder: Path) -> Driver | None:
    if shutil.which("go") is None:
        console.print("Go is skipped: no go")
        return None
    target = folder / "codecdriver"
    _build(["go", "build", "-buildvcs=false", "-o", str(target), "."], _HERE / "go")
    return Driver("Go", (str(target),))


def _build(command: list[str], folder: Path) -> None:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{command[0]} failed: {result.stderr.strip()}")
