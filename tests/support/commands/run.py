"""`kraftwire` in a separate process, as a user starts it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    """What a command printed and returned."""

    out: str
    err: str
    code: int


def run_decode(*arguments: str) -> Done:
    """Run `kraftwire decode`."""
    return run_kraftwire("decode", *arguments)


def run_kraftwire(*arguments: str) -> Done:
    """Run a command of the program."""
    command = [sys.executable, "-m", "kraftwire", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    return Done(done.stdout, done.stderr, done.returncode)
