"""File descriptors: as many as the system gives, and some that no connection can take.

Owns the process's soft limit. Elections write files: a node whose connections use up all
descriptors could not vote any more.
"""

from __future__ import annotations

import resource

from kraftwire.limits import DESCRIPTORS_RESERVED

__all__ = ["connections_max", "raise_limit"]


def raise_limit() -> int:
    """Raise the soft limit of this process to the hard one; returns how many may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # a platform with a lower limit than it says
            return soft
        return hard
    return soft


def connections_max(descriptors: int) -> int:
    """How many connections a process with so many descriptors may accept.

    The reserve is for the log, its snapshots and the connections to other nodes; a process that
    has very few keeps half of them.
    """
    if descriptors == resource.RLIM_INFINITY:
        return (1 << 31) - 1
    return max(descriptors - DESCRIPTORS_RESERVED, descriptors // 2)
