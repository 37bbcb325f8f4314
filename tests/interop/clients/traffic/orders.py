"""What the traffic programs in Python send: one order after the other, as JSON."""

from __future__ import annotations

import json
import sys

__all__ = ["BATCH", "COUNT", "PARTITIONS", "ROUNDS", "key", "servers", "value"]

ROUNDS, BATCH, PARTITIONS = 40, 32, 3
COUNT = ROUNDS * BATCH


def servers() -> str:
    """The only argument of a program: the bootstrap servers."""
    return sys.argv[1]


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
