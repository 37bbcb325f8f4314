"""What the traffic programs in Python send, and the words with which they report what they see."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping

__all__ = [
    "BATCH",
    "COUNT",
    "MORE",
    "PARTITIONS",
    "RETENTION",
    "SECONDS",
    "TRANSACTIONS",
    "feature_levels",
    "key",
    "until",
    "value",
]

# Every program sends 40 batches, and some more records by an idempotent producer.
BATCH, PARTITIONS = 32, 3
COUNT = 40 * BATCH
MORE = 2 * BATCH
# Each third of the transactions is aborted.
TRANSACTIONS = 12
RETENTION = "3600000"
SECONDS = 30


def key(number: int) -> bytes:
    """A record's key."""
    return f"customer-{number * 7 % 211:03}".encode()


def value(client: str, number: int) -> bytes:
    """A record's value."""
    order = {
        "order": number,
        "customer": f"{client}-{number * 7 % 211:03}",
        "city": "Lisboa",
        "items": [{"article": f"A-{number * 7919 % 100000:05}", "count": number % 9 + 1}],
        "note": f"leave it with the neighbour at number {number % 50}",
    }
    return json.dumps(order).encode()


def feature_levels(finalized: Mapping[str, object]) -> str:
    """The finalized features, in the form that all programs report."""
    return ", ".join(f"{name} {level}" for name, level in sorted(finalized.items()))


def until(is_so: Callable[[], bool], what: str) -> None:
    """Ask again and again, as a broker learns a little later what a controller has decided.

    Raises: TimeoutError if it does not become true.
    """
    end = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(what)
