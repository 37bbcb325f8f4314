"""Runs a command in a process of its own and measures its memory."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CLI", "MEMORY_FREE", "Measured", "decode", "run"]

# What any command may take besides eight times its input, the interpreter included.
MEMORY_FREE = 64 * 1024 * 1024

# Writes the largest size of the process, in KiB, after what the command has said. What `getrusage`
# tells begins with the size of the process that started this one.
_MEASURE = """
import atexit, os, sys
def tell():
    status = open("/proc/self/status").read()
    os.write(2, b"\\nPEAK " + status.partition("VmHWM:")[2].split()[0].encode())
atexit.register(tell)
sys.argv[0] = "kraftwire"
exec(sys.argv.pop(1))
"""
CLI = "from kraftwire.cli.main import main; raise SystemExit(main())"


@dataclass(frozen=True)
class Measured:
    """What a command has said and taken. Units: `peak` bytes of memory."""

    code: int
    errors: str
    peak: int


def run(program: str, *arguments: str | Path, out: Path | None = None) -> Measured:
    """Run Python text; what it prints goes to a file, or nowhere."""
    with open(os.devnull if out is None else out, "wb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, program, *map(str, arguments)],
            stdout=stream,
            stderr=subprocess.PIPE,
            check=False,
            timeout=120,
        )
    text, _, peak = done.stderr.decode().rpartition("\nPEAK ")
    assert peak, text
    assert "Traceback" not in text, text
    return Measured(done.returncode, text, int(peak) * 1024)


def decode(path: Path, *options: str, out: Path | None = None) -> Measured:
    """Run ``kraftwire decode`` and see that it keeps to its bound."""
    found = run(CLI, "decode", *options, path, out=out)
    assert found.peak < MEMORY_FREE + 8 * path.stat().st_size, found
    return found
