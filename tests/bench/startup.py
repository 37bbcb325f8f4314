"""How long an import and the command line take to start: medians of many process starts.

The bars apply to CPU time, which equals the wall time on an idle machine and hardly changes on a
busy one.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.measure import run_process
from tests.bench.report import Bar, print_bars, print_table

__all__ = ["run"]

STARTS = 25
IMPORT_ONE = "import kraftwire; from kraftwire.messages.vote_request import VoteRequest"
IMPORT_TWO = f"{IMPORT_ONE}; from kraftwire.messages.fetch_response import FetchResponse"
IMPORT_ALL = (
    "import kraftwire; from kraftwire import messages; "
    "[messages.find(name) for name in messages.names()]"
)


@dataclass(frozen=True, slots=True)
class Times:
    """Medians of one command. Units: milliseconds."""

    wall: float
    cpu: float


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    times = _measure(_commands())
    print_table(
        f"Start-up: medians of {STARTS} process starts, milliseconds",
        ("command", "wall", "CPU"),
        ((name, f"{t.wall:.1f}", f"{t.cpu:.1f}") for name, t in times.items()),
    )
    return print_bars("Start-up: summary (CPU time)", _bars(times))


def _commands() -> dict[str, list[str]]:
    program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
    code = {
        "python": "pass",
        "import kraftwire": "import kraftwire",
        "one message": IMPORT_ONE,
        "two messages": IMPORT_TWO,
        "all messages": IMPORT_ALL,
    }
    return {name: [sys.executable, "-c", text] for name, text in code.items()} | {
        "kraftwire --help": [program, "--help"],
        "kraftwire message decode": [program, "message", "decode"],
    }


def _measure(commands: dict[str, list[str]]) -> dict[str, Times]:
    walls: dict[str, list[float]] = {name: [] for name in commands}
    cpus: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(STARTS + 1):
        for name, command in commands.items():
            done = run_process(command)
            if done.exit_code:
                raise RuntimeError(f"{' '.join(command)}: exit code {done.exit_code}")
            if number:  # the first start fills the caches of the file system and of bytecode
                walls[name].append(done.wall_seconds * 1000)
                cpus[name].append(done.cpu_seconds * 1000)
    return {name: Times(median(walls[name]), median(cpus[name])) for name in commands}


def _bars(times: dict[str, Times]) -> list[Bar]:
    def over(name: str, base: str) -> float:
        return times[name].cpu - times[base].cpu

    return [
        _ceiling("import kraftwire over bare python", over("import kraftwire", "python"), 30),
        _ceiling("first message over import kraftwire", over("one message", "import kraftwire"), 3),
        _ceiling("second message over the first", over("two messages", "one message"), 3),
        _ceiling("all messages over bare python", over("all messages", "python"), 300),
        _ceiling("kraftwire --help", times["kraftwire --help"].cpu, 120),
        _ceiling("kraftwire message decode", times["kraftwire message decode"].cpu, 120),
    ]


def _ceiling(name: str, value: float, limit: float) -> Bar:
    return Bar(name, value, limit, unit="ms", is_ceiling=True)
