"""Limits on how connections share a node: turns, silent peers, garbage collection."""

from __future__ import annotations

__all__ = [
    "COLLECT_CONNECTIONS_MIN",
    "COLLECT_LOOK_SECONDS",
    "COLLECT_REST",
    "COLLECT_SECONDS",
    "GIVE_BACK_BYTES_MIN",
    "LONG_ANSWERS_BYTES_BURST",
    "LONG_ANSWERS_BYTES_PER_SECOND",
    "LONG_ANSWERS_CROWD",
    "LONG_ANSWER_BYTES_MIN",
    "LONG_REQUESTS_BYTES_BURST",
    "LONG_REQUESTS_BYTES_PER_SECOND",
    "LONG_REQUEST_BYTES_MIN",
    "LONG_WORK_REST",
    "LONG_WORK_REST_FEW",
    "LONG_WORK_ROUNDS",
    "PEER_LOOK_SECONDS",
    "PEER_PROBES",
    "PEER_PROBE_AFTER_SECONDS",
    "PEER_PROBE_SECONDS",
    "REQUEST_COST_BYTES",
    "TURN_BYTES",
    "TURN_OLDEST_CONNECTIONS",
    "TURN_SECONDS",
]

# A long request waits for its turn. All long requests together get this many bytes a second, about
# a quarter of what one thread can decode and answer, after a burst that an idle node allows.
LONG_REQUEST_BYTES_MIN = 4 * 1024
LONG_REQUESTS_BYTES_PER_SECOND = 512 * 1024
LONG_REQUESTS_BYTES_BURST = 256 * 1024

# A long answer carries at least this much of the log or of a snapshot. It costs little per byte;
# the rate is far above what replicas need, since all of them share it: two followers of a leader
# that appends 120 MiB a second take half.
LONG_ANSWER_BYTES_MIN = 64 * 1024
LONG_ANSWERS_BYTES_PER_SECOND = 512 * 1024 * 1024
LONG_ANSWERS_BYTES_BURST = 16 * 1024 * 1024

# How many wait for long answers in a quorum under load: its other voters and a few observers.
LONG_ANSWERS_CROWD = 6

# Each piece of long work is followed by a pause of this many times its duration if a crowd is
# waiting; if only few are, there is none. An answer is encoded and written to the socket within
# this many rounds of the loop after it was read.
LONG_WORK_REST = 3
LONG_WORK_REST_FEW = 0
LONG_WORK_ROUNDS = 5

# Shorter requests are let through in turns of this many bytes, with a fixed cost added to each
# request: eight small ones, or one of the longest. That takes about two milliseconds, during which
# other tasks wait. When this time has passed since the last turn, a turn's worth passes without
# waiting. In each turn this many of the oldest connections come first.
TURN_BYTES = 8 * 1024
TURN_SECONDS = 0.002
TURN_OLDEST_CONNECTIONS = 4
REQUEST_COST_BYTES = 1024

# While bytes are waiting to be read, the connection is checked at this interval.
PEER_LOOK_SECONDS = 2

# TCP probes a silent peer after this many seconds, and then this many times at this interval.
# Unacknowledged data times out after the same total time.
PEER_PROBE_AFTER_SECONDS = 10
PEER_PROBE_SECONDS = 5
PEER_PROBES = 4

# Garbage is collected at this interval, with a pause of at least this many times the duration of a
# collection: at most one commit in five hundred is delayed by it. If nearly all of at least this
# many connections have closed, the next check collects. After that, or if connections have released
# nearly all of at least this many bytes, free memory is returned to the system.
COLLECT_SECONDS = 60
COLLECT_REST = 1000
COLLECT_LOOK_SECONDS = 2
COLLECT_CONNECTIONS_MIN = 256
GIVE_BACK_BYTES_MIN = 16 * 1024 * 1024
