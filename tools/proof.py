"""Runs all searches for broken rules within a given time: run with ``make proof``.

Owns the order and the shares of time. Each part is a separate command, prints what it does and ends
with its figures as one line of JSON; these are combined into one line. A part that takes far longer
than its share is ended and has failed; parts for which no time is left are named as left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# With this many CPU seconds or more, simulated clusters have to reach every situation.
_MARKS_FROM_S = 800
_MARKS = 20

# Parts that count tests instead of seconds, and what each part starts and ends with, may take more
# than the share. Units: seconds, for each part and for all of them.
_OVERTIME_PART = 420.0
_OVERTIME = 240.0

# How long an ended part may take to end its own processes. Unit: seconds.
_GRACE = 15.0

# The rates of one slow processor, and how many images are enough.
_IMAGES_PER_SECOND = 250
_IMAGES_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the proof.

    `share` is its share of the whole time. `{seconds}` in the arguments is that time, `{images}`
    how many crash images fit into it, `{jobs}` the number of processors, `{seeds}` the seeds of
    clusters. `in_full` is added where there is time for a search that must reach everything.
    """

    name: str
    share: float
    arguments: tuple[str, ...]
    in_full: tuple[str, ...] = ()


PARTS = (
    Part(
        "simulation",
        0.27,
        ("kraftwire", "sim", "run", "--seeds", "{seeds}", "--jobs", "{jobs}", "--within",
         "{seconds}", "--json"),
        in_full=("--require-coverage", str(_MARKS)),
    ),
    Part(
        "random walk",
        0.22,
        ("kraftwire", "sim", "explore", "--seeds", "{seeds}", "--jobs", "{jobs}", "--within",
         "{seconds}", "--json"),
    ),
    Part("crash images", 0.08, ("tests.crash", "--images", "{images}")),
    Part(
        "exhaustive",
        0.09,
        ("kraftwire", "sim", "exhaust", "--within", "{seconds}", "--json"),
    ),
    Part(
        "controller",
        0.05,
        ("kraftwire", "sim", "controller", "--seeds", "{seeds}", "--jobs", "{jobs}", "--within",
         "{seconds}", "--json"),
    ),
    Part("oracle", 0.06, ("tests.oracle", "--of-the-day", "--within", "{seconds}")),
    Part("nemesis", 0.09, ("tests.nemesis", "--seconds", "{seconds}")),
    Part("traffic", 0.04, ("tools.twice", "tests/interop/test_mixed_traffic.py")),
    Part("spark", 0.09, ("tools.twice", "tests/spark/cluster", "tests/spark/killed")),
    # Without the suite that is compiled for minutes.
    Part(
        "compat",
        0.05,
        ("tests.compat", "kgo", "kafka-python", "--of-the-day", "--through", "proxy",
         "--within", "{seconds}"),
    ),
    Part("client errors", 0.03, ("tests.compat.errors", "--of-the-day", "3")),
    Part("long cases", 0.08, ("tools.twice", "-m", "full", "--of-the-day", "6")),
    Part("engine", 0.02, ("tests.engine", "--cases", "50000000", "--within", "{seconds}")),
    Part("sanitized engine", 0.02, ("tools.sanitize", "--within", "{seconds}")),
    Part("mutants", 0.07, ("tests.mutants", "--rotate", "60", "--within", "{seconds}")),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all parts; returns 1 if any of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.proof", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1500.0, help="for all parts (1500)")
    parser.add_argument("--seeds", default="0-9999", help="of clusters, as far as they fit")
    parser.add_argument("--only", choices=[part.name for part in PARTS], help="only one part")
    options = parser.parse_args(arguments)
    chosen = [part for part in PARTS if options.only in (None, part.name)]
    whole = sum(part.share for part in PARTS) if options.only is None else chosen[0].share
    figures: dict[str, Any] = {}
    failed = []
    left_out = []
    end = time.monotonic() + options.seconds + _OVERTIME
    for part in chosen:
        seconds = options.seconds * part.share / whole
        if time.monotonic() + seconds > end:
            left_out.append(part.name)
            continue
        code, figures[part.name] = _run(part, seconds, options.seeds)
        if code:
            failed.append(part.name)
    print(json.dumps({"proof": figures, "failed": failed, "left_out": left_out}), flush=True)
    return 1 if failed else 0


def _run(part: Part, seconds: float, seeds: str) -> tuple[int, Any]:
    """Run a part to its end, or end it; returns its exit code and its figures."""
    jobs = os.cpu_count() or 1
    images = int(min(_IMAGES_MAX, seconds * jobs * _IMAGES_PER_SECOND))
    values = {
        "seconds": f"{seconds:.0f}",
        "images": str(images),
        "jobs": str(jobs),
        "seeds": seeds,
    }
    arguments = part.arguments + (part.in_full if seconds * jobs >= _MARKS_FROM_S else ())
    command = [sys.executable, "-m", *(text.format(**values) for text in arguments)]
    print(f"\n{part.name}: {' '.join(command[1:])}", flush=True)
    began = time.monotonic()
    last = ""
    with _Limited(command, seconds + _OVERTIME_PART) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line if line.startswith("{") else last
    took = round(time.monotonic() - began, 1)
    print(f"{part.name}: exit code {process.returncode} after {took} s", flush=True)
    return process.returncode, {"seconds": took, **_figures(last)}


class _Limited(subprocess.Popen[str]):
    """A command, and what it starts, that ends after `seconds` at the latest."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        super().__init__(
            command,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[1],
            start_new_session=True,
        )
        self._seconds = seconds
        self._timer = threading.Timer(seconds, self._time_up)
        self._timer.start()

    def __exit__(self, *args: Any) -> None:
        self._timer.cancel()
        if args[0] is not None:
            self._signal(signal.SIGTERM)
        super().__exit__(*args)

    def _time_up(self) -> None:
        print(f"ended: it was to take less than {self._seconds:.0f} s", flush=True)
        self._signal(signal.SIGTERM)
        time.sleep(_GRACE)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def _figures(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    # A part may wrap its figures in its name.
    inner = next(iter(found.values()), None)
    return inner if len(found) == 1 and isinstance(inner, dict) else found


if __name__ == "__main__":
    raise SystemExit(main())
