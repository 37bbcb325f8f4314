"""Run the benchmarks: ``python -m tests.bench [SECTION...] [--strict]``."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from importlib import import_module

from tests.bench.report import Bar, console

SECTIONS = (
    *("codec", "threads", "languages", "records", "columns", "startup", "segments", "capture"),
    *("log_job", "broker", "jobs", "scale"),
    *("raft", "rate", "failover", "siege", "secured_siege", "security", "sim", "authorizer"),
    *("controller", "starts", "work", "proxy"),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the named sections, all by default; returns 1 with `--strict` if a floor is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a floor is missed")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    _describe_machine()
    sections = options.sections or list(SECTIONS)
    if len(sections) > 1:
        return max(_in_process(name, options) for name in sections)
    missed: list[Bar] = import_module(f"tests.bench.{sections[0]}").run()
    for bar in missed:
        console.print(f"missed: {bar.name}: {bar.show(bar.value)}, floor {bar.show(bar.floor)}")
    return 1 if missed and options.strict else 0


def _in_process(name: str, options: argparse.Namespace) -> int:
    """Run a section in its own process: what one leaves in memory must not slow down the next."""
    flags = ["--strict"] if options.strict else []
    command = [sys.executable, "-m", "tests.bench", name, *flags]
    return subprocess.run(command, check=False).returncode


def _describe_machine() -> None:
    """What the absolute figures depend on: they differ from machine to machine."""
    turns = 1_000_000
    start = time.process_time()
    for _ in range(turns):
        pass
    seconds = time.process_time() - start
    console.print(
        f"Python {platform.python_version()} on {os.cpu_count()} CPUs, "
        f"load {os.getloadavg()[0]:.1f}, {seconds / turns * 1e9:.0f} ns per turn of an empty loop"
    )


if __name__ == "__main__":
    sys.exit(main())
