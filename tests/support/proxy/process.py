"""`kraftwire proxy` as a process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

# What a proxy takes to end, with its capture complete.
_STOP_SECONDS_MAX = 30


class ProxyProcess:
    """A proxy with these arguments, on free ports. Order: use it as a context manager.

    `lines` are those for programs so far; `said` is what it has said, once it has ended.
    """

    def __init__(self, *arguments: object) -> None:
        self.lines: list[str] = []
        self.said = ""
        words = [sys.executable, "-m", "kraftwire", "proxy", *map(str, arguments)]
        # What a buffer holds would be missing at the end.
        self._process = subprocess.Popen(
            words, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        self.read_line()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        rest, said = self._process.communicate(timeout=_STOP_SECONDS_MAX)
        self.lines += rest.decode().splitlines()
        self.said = said.decode()
        assert self._process.returncode == 0, self.said

    def read_line(self) -> str:
        """Wait for the next line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().rstrip("\n")
        if not line:
            _, said = self._process.communicate()
            raise AssertionError(f"the proxy has ended: {said.decode()}")
        self.lines.append(line)
        return line

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return self.lines[0].partition(" ")[2]

    @property
    def ports(self) -> set[int]:
        """The ports of all its lines."""
        return {int(line.rpartition(":")[2]) for line in self.lines}


def write_rules(path: Path, *rows: dict[str, object]) -> Path:
    """Write a file of rules in TOML; values are texts, numbers and truth values."""
    lines = []
    for row in rows:
        lines.append("[[rules]]")
        for key, value in row.items():
            shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
            lines.append(f"{key} = {shown}")
    path.write_text("\n".join(lines) + "\n")
    return path
