"""The last part of the demo: tables and a report of the traffic that the quorum has recorded.

Needs Spark's extra and Java 17; without them it prints a line that says so.
"""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from kraftwire.cli.main import main as kraftwire
from tools.demo import KEPT, NEXT, WIDTH, print_title

# A demo has no use or time for all of them.
_TABLES = "exchanges,raft_timeline"


def main() -> int:
    """Run the pipeline on the recorded traffic, and print where the report is."""
    code = 0
    if find_spec("pyspark") is None or shutil.which("java") is None:
        print("\nSpark or Java 17 is missing here, so there are no tables and no report.\n")
    elif not KEPT.exists():
        print(f"{KEPT} is missing; run `make demo`", file=sys.stderr)
        code = 1
    else:
        code = _report(KEPT)
    print(f"\n{'-' * WIDTH}\n{NEXT}", end="")
    return code


def _report(capture: Path) -> int:
    """Make the tables with Spark, then the report."""
    print_title("4  The same traffic as tables and a page of plots, by Spark")
    tables = capture.with_suffix(".tables")
    shutil.rmtree(tables, ignore_errors=True)
    arguments = ["pipeline", "run", str(capture), "--out", str(tables), "--tables", _TABLES]
    print(f"$ kraftwire {' '.join(arguments)}\n", flush=True)
    code = kraftwire([*arguments, "--quiet"])
    if code:
        return code
    print(f"$ kraftwire pipeline report {tables}\n", flush=True)
    return kraftwire(["pipeline", "report", str(tables)])


if __name__ == "__main__":
    raise SystemExit(main())
