"""Elections that do not settle: election storms, and pre-votes that every voter rejects."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.anomalies.rule import ERROR, INFO, WARNING, AnomalyRule, at, found
from kraftwire.spark.stages.clusters import same
from kraftwire.spark.stages.keys import span, with_session
from kraftwire.spark.stages.stage import Tables

# Rounds of votes that follow each other within this time belong together. Kafka's candidates wait
# for up to a second before they try again.
_GAP_S = 10.0

# A vote may be split once or twice; this many epochs in a row without a leader are a problem.
_LOST = 4

# Restarting one node after the other causes an election each time. This many without a pause are
# not intended.
_ELECTED = 6

# Failed rounds of pre-votes in a row, before they are a problem.
_REFUSED = 3


def _election_storm(tables: Tables) -> DataFrame:
    """Epochs that climb without a leader, or leaders that replace each other without a pause."""
    timeline = tables["raft_timeline"]
    led = timeline.where("kind = 'leader'").select(
        F.col("cluster").alias("_cluster"), F.col("epoch").alias("_epoch")
    ).distinct()
    is_led = same("cluster", "_cluster") & (F.col("epoch") == F.col("_epoch"))
    votes = timeline.where("kind = 'vote'").join(led, is_led, "left")
    lost = F.when(F.col("_epoch").isNull(), F.col("epoch"))
    storms = (
        with_session(votes, ("cluster",), _GAP_S)
        .groupBy("cluster", "session")
        .agg(
            *span(),
            F.min("epoch").alias("first"),
            F.max("epoch").alias("last"),
            F.count_distinct(lost).alias("lost"),
            F.count_distinct("_epoch").alias("elected"),
            F.array_join(F.sort_array(F.collect_set("node")), ", ").alias("nodes"),
        )
        .withColumn("seconds", (F.col("end_ns") - F.col("time_ns")) / 1e9)
    )
    is_lost = F.col("lost") >= _LOST
    return found(
        storms.where(is_lost | (F.col("elected") >= _ELECTED)),
        "election-storm",
        F.when(is_lost, ERROR).otherwise(WARNING),
        time=at("time_ns"),
        end_time=at("end_ns"),
        epoch=F.col("last"),
        node=F.col("nodes"),
        detail=F.format_string(
            "votes for epochs %d to %d within %.1f s, asked for by %s: "
            "%d epochs with a leader, %d without",
            "first", "last", "seconds", "nodes", "elected", "lost",
        ),
    )


def _refused_pre_votes(tables: Tables) -> DataFrame:
    """A node gets no pre-votes although others respond: they still hear from a leader.

    During an election a node whose request comes late is rejected as well; that is normal.
    """
    answer = "array<struct<voter:string,granted:boolean,error:string>>"
    pre_votes = (
        tables["raft_timeline"]
        .where("kind = 'pre-vote'")
        .withColumn("answers", F.from_json(F.get_json_object("details", "$.answers"), answer))
        .where("exists(answers, a -> a.error is not null)")
        .where("not exists(answers, a -> coalesce(a.granted, false))")
    )
    rounds = (
        with_session(pre_votes, ("cluster", "node"), _GAP_S)
        .groupBy("cluster", "node", "session")
        .agg(
            *span(),
            F.count("*").alias("rounds"),
            F.max("epoch").alias("epoch"),
            F.min_by("text", "time_ns").alias("text"),
        )
    )
    elected = tables["raft_timeline"].where("kind = 'leader'").select(
        F.col("cluster").alias("_cluster"), F.col("time_ns").alias("_elected")
    )
    gap_ns = int(_GAP_S * 1e9)
    is_late = (
        same("cluster", "_cluster")
        & (F.col("rounds") < _REFUSED)
        & F.col("_elected").between(F.col("time_ns") - gap_ns, F.col("end_ns") + gap_ns)
    )
    return found(
        rounds.join(elected, is_late, "left_anti"),
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
    AnomalyRule("election-storm", ("raft_timeline",), _election_storm),
    AnomalyRule("refused-pre-votes", ("raft_timeline",), _refused_pre_votes),
)
