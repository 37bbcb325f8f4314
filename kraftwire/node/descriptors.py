"""File descriptors: as many as the system allows, with a reserve that no connection can take.

Owns the process's soft limit. Elections write files: a node whose connections use up all
descriptors could no longer vote.
"""

from __future__ import annotations

import resource

from kraftwire.limits import CONNECTION_BYTES_MAX, DESCRIPTORS_RESERVED
from kraftwire.node.admission import OPEN_CONNECTION_BYTES

__all__ = ["connections_max", "raise_limit"]


def raise_limit() -> int:
    """Raise the soft limit of this process to the hard one; returns how many may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):    # the real limit may be lower than reported
            return soft
        return hard
    return soft


def connections_max(descriptors: int) -> int:
    """Return how many connections a process with this many descriptors may accept.

    The reserve is for the log, its snapshots and the connections to other nodes; a process that has
    very few keeps half of them. In any case idle connections take at most half of the memory that
    all connections may take.
    """
    most = CONNECTION_BYTES_MAX // OPEN_CONNECTION_BYTES // 2
    if descriptors == resource.RLIM_INFINITY:
        return most
    return min(most, max(descriptors - DESCRIPTORS_RESERVED, descriptors // 2))
