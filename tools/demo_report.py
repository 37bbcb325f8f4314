"""The last part of the demo: tables and a report of the traffic that the quorum has recorded.

Needs Spark's extra and Java 17; says in a line that it goes without where they are not.
"""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from kraftwire.cli.main import main as kraftwire
from tools.demo import KEPT, NEXT, WIDTH

__all__ = ["main"]


def main() -> int:
    """Run the pipeline on what was recorded, and say where the report is."""
    code = 0
    if find_spec("pyspark") is None or shutil.which("java") is None:
        print("\nSpark or Java 17 is missing here, so there are no tables and no report.\n")
    elif not KEPT.exists():
        print(f"{KEPT} is not here; run `make demo`", file=sys.stderr)
        code = 1
    else:
        code = _report(KEPT)
    print(f"\n{'-' * WIDTH}\n{NEXT}", end="")
    return code


def _report(capture: Path) -> int:
    """Tables by Spark, then the report."""
    title = "5  The same traffic as tables, and a report"
    print(f"\n{title}\n{'=' * len(title)}\n")
    tables = capture.with_suffix(".tables")
    shutil.rmtree(tables, ignore_errors=True)
    print(f"$ kraftwire pipeline run {capture} --out {tables}\n", flush=True)
    code = kraftwire(["pipeline", "run", str(capture), "--out", str(tables)])
    if code:
        return code
    print(f"\n$ kraftwire pipeline report {tables}\n", flush=True)
    return kraftwire(["pipeline", "report", str(tables)])


if __name__ == "__main__":
    raise SystemExit(main())
