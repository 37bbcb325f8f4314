"""Compares the engines on a given number of random cases; ends with its figures as JSON."""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from importlib.util import find_spec

from kraftwire import engine
from tests.engine.batches import search_batches
from tests.engine.packets import search_packets
from tests.engine.search import search_messages
from tests.engine.texts import search_texts

# After each round of messages this many batches, with about 15 damaged copies of each.
_BATCHES = 200

# Part of Spark's extra; without it, nothing needs what the engine does for captures.
_HAS_NUMPY = find_spec("numpy") is not None


def main() -> int:
    """Search; returns 1 if the engine is missing. A difference ends it with a traceback."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine", description=__doc__)
    parser.add_argument("--cases", type=int, default=200_000, help="how many at least (200000)")
    parser.add_argument("--within", type=float, default=float("inf"), help="maximum seconds")
    parser.add_argument("--seed", type=int, default=0, help="of the first round (0)")
    options = parser.parse_args()
    if engine.C not in engine.available():
        print("the engine in C was not built: there is nothing to compare")
        return 1
    began = time.monotonic()
    counts: Counter[str] = Counter()
    seed, batch_seed = options.seed, options.seed * _BATCHES
    while _cases(counts) < options.cases and time.monotonic() - began < options.within:
        print(f"seed {seed}", end="\r", flush=True)
        counts += search_messages(random.Random(seed))
        counts += search_texts(random.Random(seed))
        for _ in range(_BATCHES):
            counts += search_batches(random.Random(batch_seed))
            if _HAS_NUMPY:
                counts += search_packets(random.Random(batch_seed))
            batch_seed += 1
        seed += 1
    print(json.dumps({"engine": {"cases": _cases(counts), "seeds": seed, **counts}}))
    return 0


def _cases(counts: Counter[str]) -> int:
    return sum(count for kind, count in counts.items() if not kind.endswith("kept"))


if __name__ == "__main__":
    raise SystemExit(main())
