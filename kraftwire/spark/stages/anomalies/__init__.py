"""The table anomalies: rules with severity and evidence, one file for each family of rules."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame

from kraftwire.spark.stages.anomalies import (
    clients,
    copies,
    elections,
    leaders,
    logs,
    rebalances,
    replicas,
    watermarks,
)
from kraftwire.spark.stages.anomalies.rule import AnomalyRule
from kraftwire.spark.stages.stage import Tables

__all__ = ["INPUTS", "RULES", "AnomalyRule", "anomalies"]

RULES: tuple[AnomalyRule, ...] = (
    *leaders.RULES,
    *elections.RULES,
    *watermarks.RULES,
    *logs.RULES,
    *clients.RULES,
    *rebalances.RULES,
    *copies.RULES,
    *replicas.RULES,
)

# Every table that a rule reads, once.
INPUTS: tuple[str, ...] = tuple(dict.fromkeys(name for rule in RULES for name in rule.inputs))


def anomalies(tables: Tables) -> DataFrame:
    """Return the findings of all rules."""
    return reduce(DataFrame.unionByName, (rule.find(tables) for rule in RULES))
