"""A real quorum for tests: node processes on loopback that a test can start, stop and kill.

Loads nothing until it is used, because pytest imports this package in every run.
"""

from __future__ import annotations

from kraftwire.lazy_names import load_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.testing.cluster.controlled import Cluster, kafka_cluster
    from kraftwire.testing.cluster.nodes import ClusterError
    from kraftwire.testing.nodes import Quorum, quorum
    from kraftwire.testing.process import QuorumError
    from kraftwire.testing.threaded_proxy import ThreadedProxy, proxy

_HOMES = {
    "Cluster": "kraftwire.testing.cluster.controlled",
    "ClusterError": "kraftwire.testing.cluster.nodes",
    "Quorum": "kraftwire.testing.nodes",
    "QuorumError": "kraftwire.testing.process",
    "ThreadedProxy": "kraftwire.testing.threaded_proxy",
    "kafka_cluster": "kraftwire.testing.cluster.controlled",
    "proxy": "kraftwire.testing.threaded_proxy",
    "quorum": "kraftwire.testing.nodes",
}

__all__ = [
    "Cluster",
    "ClusterError",
    "Quorum",
    "QuorumError",
    "ThreadedProxy",
    "kafka_cluster",
    "proxy",
    "quorum",
]


def __getattr__(name: str) -> object:
    return load_name(__name__, _HOMES, name)
