"""Limits of how accepted connections share a node: turns of their requests, and silent peers."""

from __future__ import annotations

__all__ = [
    "LONG_REQUESTS_BYTES_BURST",
    "LONG_REQUESTS_BYTES_PER_SECOND",
    "LONG_REQUESTS_REST",
    "LONG_REQUEST_BYTES_MIN",
    "PEER_LOOK_SECONDS",
    "PEER_PROBES",
    "PEER_PROBE_AFTER_SECONDS",
    "PEER_PROBE_SECONDS",
    "REQUEST_COST_BYTES",
    "TURN_BYTES",
    "TURN_OLDEST_CONNECTIONS",
    "TURN_SECONDS",
]

# A long request waits for its turn. Together such requests get so many bytes a second, which is
# about a quarter of what one thread can decode and answer, after a burst that an idle node allows.
LONG_REQUEST_BYTES_MIN = 4 * 1024
LONG_REQUESTS_BYTES_PER_SECOND = 512 * 1024
LONG_REQUESTS_BYTES_BURST = 256 * 1024

# On a machine that is slow, or busy with other things, that would be too much: where several wait,
# each is followed by a rest of so many times what it took.
LONG_REQUESTS_REST = 3

# Shorter requests are let through in turns of so many bytes, each as if it were longer by what any
# request costs: eight small ones, or one of the longest. That takes about two milliseconds, in
# which other tasks wait; as many pass without waiting when so much time has gone by. Of those that
# wait, so many of the oldest connections come first in each turn.
TURN_BYTES = 8 * 1024
TURN_SECONDS = 0.002
TURN_OLDEST_CONNECTIONS = 4
REQUEST_COST_BYTES = 1024

# Where bytes wait to be read, so often somebody looks whether the connection is open.
PEER_LOOK_SECONDS = 2

# A peer that says nothing is asked by TCP whether it is still there: after so many seconds, and
# then so often, at intervals of so many seconds. What it was sent and does not acknowledge may be
# on its way for as long as all of that takes.
PEER_PROBE_AFTER_SECONDS = 10
PEER_PROBE_SECONDS = 5
PEER_PROBES = 4
