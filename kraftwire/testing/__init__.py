"""A real quorum for tests: node processes on loopback that a test can start, stop and kill.

Loads nothing until it is used, because pytest imports this package in every run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.testing.cluster.controlled import Cluster, kafka_cluster
    from kraftwire.testing.cluster.nodes import ClusterError
    from kraftwire.testing.nodes import Quorum, quorum
    from kraftwire.testing.process import QuorumError

_PLACES = {
    "Cluster": "cluster.controlled",
    "ClusterError": "cluster.nodes",
    "Quorum": "nodes",
    "QuorumError": "process",
    "kafka_cluster": "cluster.controlled",
    "quorum": "nodes",
}

__all__ = ["Cluster", "ClusterError", "Quorum", "QuorumError", "kafka_cluster", "quorum"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
