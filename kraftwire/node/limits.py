"""Limits of how connections share a node: turns, silent peers, garbage that they leave."""

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

# A long request waits for its turn. Together such requests get so many bytes a second, which is
# about a quarter of what one thread can decode and answer, after a burst that an idle node allows.
LONG_REQUEST_BYTES_MIN = 4 * 1024
LONG_REQUESTS_BYTES_PER_SECOND = 512 * 1024
LONG_REQUESTS_BYTES_BURST = 256 * 1024

# A long answer is one that carries so much of the log or of a snapshot. One costs little for each
# byte; the rate is far above what a replica that catches up needs.
LONG_ANSWER_BYTES_MIN = 64 * 1024
LONG_ANSWERS_BYTES_PER_SECOND = 128 * 1024 * 1024
LONG_ANSWERS_BYTES_BURST = 16 * 1024 * 1024

# As many as wait for long answers in a quorum under load: its other voters, and a few observers.
LONG_ANSWERS_CROWD = 6

# Each piece of long work is followed by a rest of so many times what it took where a crowd waits;
# where few do, there is none. An answer is encoded and handed to the system within so many rounds
# of the loop after it was read.
LONG_WORK_REST = 3
LONG_WORK_REST_FEW = 0
LONG_WORK_ROUNDS = 5

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

# Garbage is collected so often, but for all that it takes there is a rest of so many times as much:
# one commit in five hundred at most comes later for it. Where nearly all of so many connections
# have left, it is collected with the next look; after that, and where connections let go of nearly
# all of so many bytes, what is free goes back to the system.
COLLECT_SECONDS = 60
COLLECT_REST = 1000
COLLECT_LOOK_SECONDS = 2
COLLECT_CONNECTIONS_MIN = 256
GIVE_BACK_BYTES_MIN = 16 * 1024 * 1024
