"""Runs a command in a separate process and measures its memory."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CLI", "MEMORY_FREE", "Measured", "decode", "run", "show"]

# What any command may take in addition to eight times its input, the interpreter included.
MEMORY_FREE = 64 * 1024 * 1024

# Writes the largest size of the process, in KiB, after the command's own output. `getrusage` would
# begin with the size of the process that started this one.
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
    """The output and the memory of a command. Units: `peak` is in bytes."""

    code: int
    errors: str
    peak: int


def run(
    program: str, *arguments: str | Path, out: Path | None = None, read: Path | None = None
) -> Measured:
    """Run Python text, which reads a file or nothing; its output goes to a file, or nowhere."""
    with (
        open(os.devnull if read is None else read, "rb") as source,
        open(os.devnull if out is None else out, "wb") as stream,
    ):
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, program, *map(str, arguments)],
            stdin=source,
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
    """Run ``kraftwire decode`` and check that it stays within its bound."""
    return show(path, "decode", *options, out=out)


def show(path: Path, *command: str, out: Path | None = None) -> Measured:
    """Run a command of the program on a file and check that it stays within its bound."""
    found = run(CLI, *command, path, out=out)
    assert found.peak < MEMORY_FREE + 8 * path.stat().st_size, found
    return found
