"""How time passes in scripts: the clocks of both controllers stand still but for some operations.

Owns by how much they move, and what the intervals of tasks are: so that tasks that are due between
the same two looks at the clock are so in the order in which both do them.
"""

from __future__ import annotations

from collections.abc import Mapping

# Kafka looks for sessions that ended in every eighth of one, and again 10 ms after it found one.
SESSION_MS = 360_000
_AGAIN_MS, _AGAIN = 10, 16
_BETWEEN_MS = 40_000
_STEP_MS = SESSION_MS // 8 + _BETWEEN_MS

# By how much the clock moves in one step: sessions end at all times but the last one, which is
# when other tasks are due.
MOVES_MS = (
    SESSION_MS // 8,
    *(_AGAIN_MS,) * _AGAIN,
    _BETWEEN_MS - _AGAIN * _AGAIN_MS,
)

_SECOND_MS = 1000
_PREFERRED_MS = 3 * _STEP_MS - 20 * _SECOND_MS
_UNCLEAN_MS = 2 * _STEP_MS - 10 * _SECOND_MS

# The same intervals for Kafka's controller, and for ours.
PROPERTIES: Mapping[str, str] = {
    "broker.session.timeout.ms": str(SESSION_MS),
    "leader.imbalance.check.interval.seconds": str(_PREFERRED_MS // _SECOND_MS),
    "unclean.leader.election.interval.ms": str(_UNCLEAN_MS),
}
CONFIG: Mapping[str, int] = {
    "session_timeout_ms": SESSION_MS,
    "rebalance_interval_ms": _PREFERRED_MS,
    "unclean_interval_ms": _UNCLEAN_MS,
    # Nothing is written while it is idle.
    "idle_interval_ms": 0,
}
