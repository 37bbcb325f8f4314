"""Try crash images: `python -m tests.crash --images 50000`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from tests.crash.search import crash

_SHOWN = 20


def main() -> int:
    """Run the search and print its figures, last as JSON. Returns 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--images", type=int, default=50_000, help="disks to start on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--step", type=int, help="crash at this operation only")
    options = parser.parse_args()
    began = time.perf_counter()
    jobs = 1 if options.step is not None else options.jobs
    figures = crash(options.images, jobs, options.step)
    seconds = time.perf_counter() - began
    for violation in figures.violations[:_SHOWN]:
        print(violation)
    print(f"crash images   {figures.images:,}, {figures.second:,} of them of a second crash")
    print(f"operations     {figures.steps:,}, {figures.exhausted:,} with every image tried")
    print(f"violations     {len(figures.violations):,}")
    print(f"seconds        {seconds:.1f}")
    line = {
        "crashImages": figures.images,
        "secondCrashes": figures.second,
        "operations": figures.steps,
        "exhausted": figures.exhausted,
        "violations": len(figures.violations),
        "seconds": round(seconds, 1),
    }
    print(json.dumps(line))
    return 1 if figures.violations else 0


if __name__ == "__main__":
    sys.exit(main())
