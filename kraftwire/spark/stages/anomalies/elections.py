"""Elections that do not settle: storms of them, and pre-votes that everybody refuses."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.anomalies.rule import ERROR, INFO, WARNING, Rule, at, found
from kraftwire.spark.stages.keys import span, spells
from kraftwire.spark.stages.stage import Tables

__all__ = ["RULES"]

# A quorum that works elects once: rounds of votes that follow each other within this time belong
# together. Kafka's candidates wait for up to a second before they try again.
_PAUSE_S = 10.0
_ROUNDS = 4

# Rounds of pre-votes that a node asks for in vain, one after the other, before it is an ailment.
_REFUSED = 3


def _election_storm(tables: Tables) -> DataFrame:
    """Several rounds of votes without a pause."""
    votes = tables["raft_timeline"].where("kind = 'vote'")
    storms = (
        spells(votes, ("cluster",), _PAUSE_S)
        .groupBy("cluster", "spell")
        .agg(
            *span(),
            F.count("*").alias("rounds"),
            F.min("epoch").alias("first"),
            F.max("epoch").alias("last"),
            F.array_join(F.sort_array(F.collect_set("node")), ", ").alias("nodes"),
        )
    )
    return found(
        storms.where(F.col("rounds") >= _ROUNDS),
        "election-storm",
        ERROR,
        time=at("time_ns"),
        end_time=at("end_ns"),
        epoch=F.col("last"),
        node=F.col("nodes"),
        detail=F.format_string(
            "%d rounds of votes from epoch %d to %d, asked for by %s",
            "rounds", "first", "last", "nodes",
        ),
    )


def _refused_pre_votes(tables: Tables) -> DataFrame:
    """A node asks for pre-votes and gets none, though others answer: they still hear a leader."""
    answer = "array<struct<voter:string,granted:boolean,error:string>>"
    asked = (
        tables["raft_timeline"]
        .where("kind = 'pre-vote'")
        .withColumn("answers", F.from_json(F.get_json_object("details", "$.answers"), answer))
        .where("exists(answers, a -> a.error is not null)")
        .where("not exists(answers, a -> coalesce(a.granted, false))")
    )
    rounds = (
        spells(asked, ("cluster", "node"), _PAUSE_S)
        .groupBy("cluster", "node", "spell")
        .agg(
            *span(),
            F.count("*").alias("rounds"),
            F.max("epoch").alias("epoch"),
            F.min_by("text", "time_ns").alias("text"),
        )
    )
    return found(
        rounds,
        "refused-pre-votes",
        F.when(F.col("rounds") >= _REFUSED, WARNING).otherwise(INFO),
        time=at("time_ns"),
        end_time=F.when(F.col("rounds") > 1, at("end_ns")),
        epoch=F.col("epoch"),
        node=F.col("node"),
        detail=F.concat(
            F.when(F.col("rounds") > 1, F.format_string("%d times in a row: ", "rounds")).otherwise(
                F.lit("")
            ),
            F.format_string("node %s %s", "node", "text"),
        ),
    )


RULES = (
    Rule("election-storm", ("raft_timeline",), _election_storm),
    Rule("refused-pre-votes", ("raft_timeline",), _refused_pre_votes),
)
