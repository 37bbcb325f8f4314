"""The captures of the benchmarks: three kinds of traffic, made once and kept in `.cache/bench`.

Large frames are those of a real Kafka under load, small ones a quorum's, and mixed ones those of
ten client libraries. All but the first are recordings kept with the tests, repeated as traffic of
other clients and servers.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import run_process
from tests.bench.report import console
from tests.support.kafka.maven import CACHE
from tools.repeat_capture import repeat

__all__ = ["Traffic", "clients", "load", "quorum"]

_FOLDER = CACHE / "bench"
_LOAD_BYTES = 220_000_000
_QUORUM = Path(__file__).parents[1] / "golden" / "captures" / "kraft_quorum.pcapng.xz"
_QUORUM_BYTES = 18_000_000
_CLIENTS = Path(__file__).with_name("data") / "clients.pcapng.xz"
_CLIENTS_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class Traffic:
    """A capture and the ports of its servers."""

    name: str
    path: Path
    ports: tuple[int, ...]

    @property
    def megabytes(self) -> float:
        """The size of the file."""
        return self.path.stat().st_size / 1e6

    def tshark(self, *options: str) -> list[str]:
        """A command of tshark that reads the frames of Kafka.

        Without the ports it would take the capture for another protocol.
        """
        ports = [word for port in self.ports for word in ("-d", f"tcp.port=={port},kafka")]
        return ["tshark", "-r", str(self.path), *ports, "-Y", "kafka", *options]


def load(size: int = _LOAD_BYTES) -> Traffic | None:
    """A real Kafka under load, recorded on first use; None where that is impossible."""
    path = _FOLDER / "load.pcap"
    if not path.exists() and not _record(path):
        return None
    if path.stat().st_size < size:
        path = _repeated(path, size)
    return Traffic("large frames", path, (9092,))


def quorum(size: int = _QUORUM_BYTES) -> Traffic:
    """Three controllers that elect and replicate."""
    return Traffic("small frames", _repeated(_QUORUM, size), (23001, 23002, 23003))


def clients(size: int = _CLIENTS_BYTES) -> Traffic:
    """Ten client libraries with one Kafka; see tools/record_clients."""
    return Traffic("mixed frames", _repeated(_CLIENTS, size), (20836,))


def _repeated(recording: Path, size: int) -> Path:
    """The capture of at least this size that is made of a recording."""
    name = recording.name.partition(".")[0]
    path = _FOLDER / f"{name}-{size // 1_000_000}.pcap"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        repeat(recording, fresh, size)
        fresh.rename(path)
    return path


def _record(path: Path) -> bool:
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        console.print(f"large frames are skipped: recording them needs {', '.join(missing)}")
        return False
    console.print("recording a real Kafka under load; this is done once")
    path.parent.mkdir(parents=True, exist_ok=True)
    printed = path.with_suffix(".txt")
    command = [sys.executable, "-m", "tools.record_load", str(path)]
    if run_process(command, output=printed).exit_code:
        console.print("large frames are skipped: python -m tools.record_load failed")
        return False
    console.print(printed.read_text())
    return True
