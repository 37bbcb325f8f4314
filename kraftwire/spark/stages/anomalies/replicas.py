"""What the files of a quorum's replicas contradict, and what is missing in them."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.anomalies.rule import ERROR, WARNING, AnomalyRule, found
from kraftwire.spark.stages.stage import Tables


def _missing_offsets(tables: Tables) -> DataFrame:
    """Offsets that no segment of a metadata log has, although it has later ones."""
    return _events(tables, "missing-offsets", ERROR)


def _contradicting_files(tables: Tables) -> DataFrame:
    """State files, snapshots and batches of replicas that cannot all be true."""
    found = _events(tables, "contradiction", WARNING, rule="contradicting-files")
    return found.where("file is null")


def _contradicting_metadata(tables: Tables) -> DataFrame:
    """Records that Kafka's controller cannot replay, as `contradiction` of `kraftwire decode`."""
    found = _events(tables, "contradiction", ERROR, rule="contradicting-metadata")
    return found.where("file is not null")


def _clock_back(tables: Tables) -> DataFrame:
    """A record that is older than the one before it by more than clocks differ."""
    return _events(tables, "clock", WARNING, rule="clock-back")


def _damaged_replica(tables: Tables) -> DataFrame:
    """A directory that must not be kept when a majority is recovered."""
    judged = (("damaged", ERROR), ("refused", ERROR), ("older copy", WARNING))
    return reduce(
        DataFrame.unionByName,
        [
            _events(tables, "replica-files", severity, verdict, "damaged-replica")
            for verdict, severity in judged
        ],
    )


def _events(
    tables: Tables, kind: str, severity: str, verdict: str | None = None, rule: str | None = None
) -> DataFrame:
    """Return the events of a kind, with a verdict on the replica if one is given, as findings."""
    events = tables["raft_timeline"].where(F.col("kind") == kind)
    detail = F.col("text")
    if verdict is not None:
        folder = F.get_json_object("details", "$.folder")
        events = events.where(F.get_json_object("details", "$.verdict") == verdict)
        detail = F.concat(folder, F.lit(": "), detail)
    return found(
        events, rule or kind, severity, time=F.col("time"), epoch=F.col("epoch"),
        node=F.col("node"), file=F.col("file"), position=F.col("position"), detail=detail,
    )


RULES = (
    AnomalyRule("missing-offsets", ("raft_timeline",), _missing_offsets),
    AnomalyRule("contradicting-files", ("raft_timeline",), _contradicting_files),
    AnomalyRule("contradicting-metadata", ("raft_timeline",), _contradicting_metadata),
    AnomalyRule("clock-back", ("raft_timeline",), _clock_back),
    AnomalyRule("damaged-replica", ("raft_timeline",), _damaged_replica),
)
