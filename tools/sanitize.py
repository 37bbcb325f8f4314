"""Builds the engine with sanitizers and compares it with Python: run with ``make sanitize``.

Every warning is an error. AddressSanitizer ends the search at the first byte read or written
outside its object, UndefinedBehaviorSanitizer at the first overflow or null pointer that C leaves
undefined. Python's own allocator is disabled, because it would hide the bounds of objects.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hatch_build import compile_engine

ROOT = Path(__file__).resolve().parents[1]
FLAGS = (
    "-std=c11", "-O1", "-g", "-fno-omit-frame-pointer", "-fvisibility=hidden", "-Wall", "-Wextra",
    "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
)  # fmt: skip

# Replaces the installed module by the one just built.
_CHILD = """
import importlib.util, runpy, sys
path = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("kraftwire.engine._core", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules["kraftwire.engine._core"] = module
from kraftwire import engine
assert engine.core is module, "another engine is in use"
sys.argv[0] = "tests.engine"
runpy.run_module("tests.engine", run_name="__main__")
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and search; returns the exit code of the search, or 0 without a compiler."""
    parser = argparse.ArgumentParser(prog="python -m tools.sanitize", description=__doc__)
    parser.add_argument("--cases", default="200000", help="minimum number (200000)")
    parser.add_argument("--within", default="inf", help="maximum seconds")
    options = parser.parse_args(arguments)
    compiler = shutil.which("gcc")
    if compiler is None:
        print("no gcc: the engine cannot be built with sanitizers")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        module = compile_engine(ROOT, Path(folder), FLAGS)
        command = [sys.executable, "-c", _CHILD, str(module)]
        command += ["--cases", options.cases, "--within", options.within]
        return subprocess.run(command, cwd=ROOT, env=_environment(compiler), check=False).returncode


def _environment(compiler: str) -> dict[str, str]:
    """Return an environment that loads the sanitizers' libraries before Python."""
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("asan", "ubsan")
    ]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        # Python does not free everything when it exits, which is not the engine's fault.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "KRAFTWIRE_PURE": "",
    }


if __name__ == "__main__":
    raise SystemExit(main())
