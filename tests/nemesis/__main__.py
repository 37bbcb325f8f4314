"""Break real quorums for a while: ``python -m tests.nemesis [--seconds N] [--seed S]``."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from tests.nemesis.plan import make_plan
from tests.nemesis.round import Figures, Round, run_round
from tests.nemesis.script import ALL_FAILURES, compare
from tests.support.kafka.mixed_quorum import JAVA, OURS

_KINDS = {
    "2-java-1-ours": {1: JAVA, 2: JAVA, 3: OURS},
    "1-java-2-ours": {1: JAVA, 2: OURS, 3: OURS},
    "3-ours": {1: OURS, 2: OURS, 3: OURS},
    "3-java": {1: JAVA, 2: JAVA, 3: JAVA},
}
_DYNAMIC = "-dynamic"
QUORUMS = (*_KINDS, *(f"{name}{_DYNAMIC}" for name in _KINDS))

# Any three consecutive rounds have both mixtures and one quorum of ours alone.
_IN_TURN = (
    "2-java-1-ours",
    "3-ours-dynamic",
    "1-java-2-ours",
    "2-java-1-ours-dynamic",
    "3-ours",
    "1-java-2-ours-dynamic",
)
_ROUNDS_MIN = 3

# A round takes some ten seconds more, to start and to check.
_ROUND_SECONDS = 20.0
_AROUND_SECONDS = 8.0


def main(arguments: list[str] | None = None) -> int:
    """Run rounds until the time is up, at least three. Returns 1 if one found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.nemesis", description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0, help="total time (90)")
    parser.add_argument("--seed", type=int, help="of the first round; then counts up")
    parser.add_argument("--quorum", choices=QUORUMS, help="only this one, not all in rotation")
    parser.add_argument("--keep", action="store_true", help="keep the folders of good rounds")
    parser.add_argument(
        "--traffic",
        action="store_true",
        help="first let members fail in turn under a producer and a consumer (minutes)",
    )
    options = parser.parse_args(arguments)
    start = time.monotonic()
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(31)
    total = Figures()
    if options.traffic:
        total.violations += _run_traffic()
    rounds_min = 1 if options.quorum else _ROUNDS_MIN
    share = min(_ROUND_SECONDS, options.seconds / rounds_min - _AROUND_SECONDS)
    while total.rounds < rounds_min or _has_time(start, options.seconds, share):
        name = options.quorum or _IN_TURN[(seed + total.rounds) % len(_IN_TURN)]
        total.add(_run(name, seed + total.rounds, max(share, 5.0), keep=options.keep))
    seconds = round(time.monotonic() - start, 1)
    print(json.dumps({"nemesis": {"seed": seed, "seconds": seconds, **asdict(total)}}))
    return 1 if total.violations else 0


def _run_traffic() -> list[str]:
    print("--- members fail in turn under a producer and a consumer", flush=True)
    with tempfile.TemporaryDirectory(prefix="nemesis-") as folder:
        try:
            found = compare(Path(folder), ALL_FAILURES)
        except AssertionError:
            found = [traceback.format_exc()]
    for line in found:
        print(f"violation: {line}", flush=True)
    return found


def _has_time(start: float, seconds: float, share: float) -> bool:
    return time.monotonic() - start + share + _AROUND_SECONDS <= seconds


def _run(name: str, seed: int, seconds: float, *, keep: bool) -> Figures:
    is_dynamic = name.endswith(_DYNAMIC)
    plan = make_plan(seed, seconds, is_dynamic=is_dynamic)
    print(f"--- {name}: --quorum {name} --seed {seed}, {seconds:.0f} s\n{plan}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="nemesis-"))
    setup = Round(_KINDS[name.removesuffix(_DYNAMIC)], plan, folder, is_dynamic)
    try:
        figures = run_round(setup, lambda line: print(line, flush=True))
    except AssertionError:
        figures = Figures(rounds=1, violations=[traceback.format_exc()])
    for line in figures.violations:
        print(f"violation: {line}", flush=True)
    if figures.violations or keep:
        print(f"the logs are in {folder}", flush=True)
    else:
        shutil.rmtree(folder)
    return figures


if __name__ == "__main__":
    sys.exit(main())
