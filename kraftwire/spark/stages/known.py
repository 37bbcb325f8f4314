"""The stages of a run, in an order in which every input exists."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kraftwire.spark.stages.anomalies import INPUTS as ANOMALY_INPUTS
from kraftwire.spark.stages.anomalies import anomalies
from kraftwire.spark.stages.clusters import CLUSTERS, clusters
from kraftwire.spark.stages.groups import groups
from kraftwire.spark.stages.lag import group_lag, replica_lag
from kraftwire.spark.stages.partitions import partitions
from kraftwire.spark.stages.stage import Stage
from kraftwire.spark.stages.timeline import raft_timeline

_TIMELINE_INPUTS = (
    "raft_exchanges", "batches", "metadata_records", "exchanges", "connections", "files",
    "bad_input", CLUSTERS,
)  # fmt: skip
_LAG_INPUTS = ("quorum_observations", "partition_traffic", "exchanges", "files", CLUSTERS)

_OURS = (
    Stage(CLUSTERS, ("connections", "files", "exchanges"), clusters),
    Stage("raft_timeline", _TIMELINE_INPUTS, raft_timeline),
    Stage("replica_lag", _LAG_INPUTS, replica_lag),
    Stage("groups", ("group_exchanges", "files", CLUSTERS), groups),
    Stage("group_lag", ("group_exchanges", "partition_traffic", "files", CLUSTERS), group_lag),
    Stage("partitions", ("partition_traffic", "batches", CLUSTERS), partitions),
    Stage("anomalies", ANOMALY_INPUTS, anomalies),
)

_known: dict[str, Stage] = {stage.name: stage for stage in _OURS}

# By name, in the order in which they run: a stage comes after those that make its inputs.
STAGES: Mapping[str, Stage] = MappingProxyType(_known)


def register(stage: Stage) -> None:
    """Add a table to every later run of this process.

    Raises: ValueError if a stage already makes a table of this name, or if the name is not valid
    for a folder.
    """
    if not stage.name.isidentifier():
        raise ValueError(f"a stage needs a name like my_table, not {stage.name!r}")
    if stage.name in _known:
        raise ValueError(f"a stage already makes the table {stage.name}")
    _known[stage.name] = stage
