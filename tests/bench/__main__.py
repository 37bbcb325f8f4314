"""Run the benchmarks: ``python -m tests.bench [SECTION...] [--strict]``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib import import_module

from tests.bench.report import Bar, console

SECTIONS = ("codec", "records", "startup", "segments", "capture")


def main(arguments: list[str] | None = None) -> int:
    """Run the sections that were named, all by default; 1 if `--strict` and a floor is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a floor is missed")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    load = os.getloadavg()[0]
    console.print(f"Python {platform.python_version()} on {os.cpu_count()} CPUs, load {load:.1f}")
    missed: list[Bar] = []
    for name in options.sections or SECTIONS:
        missed += import_module(f"tests.bench.{name}").run()
    for bar in missed:
        console.print(f"missed: {bar.name}: {bar.show(bar.value)}, floor {bar.show(bar.floor)}")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
