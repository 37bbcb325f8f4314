"""Clients in trouble: storms of Fetches and retries, and slow writes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.produce_request import ProduceRequest
from kraftwire.spark.stages.anomalies.rule import ERROR, WARNING, AnomalyRule, at, counted, found
from kraftwire.spark.stages.keys import span, with_session
from kraftwire.spark.stages.stage import Tables

_SECOND_NS = 1_000_000_000

# An empty Fetch waits for fetch.max.wait.ms, 500 ms; two a second are normal.
_EMPTY_FETCHES = 50
# A follower under load fetches once more after each response with records, for the high watermark.
_EMPTY_SHARE = 0.8

# Users notice a Produce that takes this long; half the request timeout is an error.
_SLOW_S = 1.0
_VERY_SLOW_S = 15.0
_SLOW_GAP_S = 10.0

# retry.backoff.ms is 100 ms and doubles: a client that waits for an election retries less often.
_RETRIES = 20
_RETRY_GAP_S = 2.0

# Errors that are part of a protocol: the client retries and soon succeeds.
_NOT_REFUSED = (
    "CONCURRENT_TRANSACTIONS", "MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS",
)  # fmt: skip


def _fetch_storm(tables: Tables) -> DataFrame:
    """A client fetches in quick succession without getting data."""
    fetches = tables["partition_traffic"].where("kind <> 'produce'")
    single = fetches.groupBy("file", "position", "time_ns", "client_id", "server").agg(
        F.sum(F.coalesce("bytes", F.lit(0))).alias("bytes")
    )
    busy = (
        single.withColumn("second", F.expr(f"time_ns div {_SECOND_NS}"))
        .groupBy("client_id", "server", "second")
        .agg(F.count_if(F.col("bytes") == 0).alias("count"), F.count("*").alias("all"), *span())
        .where(F.col("count") >= _EMPTY_FETCHES)
        .where(F.col("count") >= _EMPTY_SHARE * F.col("all"))
    )
    storms = (
        with_session(busy, ("client_id", "server"), 2.0)
        .groupBy("client_id", "server", "session")
        .agg(
            F.sum("count").alias("count"),
            F.max("count").alias("most"),
            F.max("end_ns").alias("end_ns"),
            F.min_by("place", "time_ns").alias("place"),
            F.min("time_ns").alias("time_ns"),
        )
    )
    return found(
        storms,
        "fetch-storm",
        WARNING,
        time=at("time_ns"),
        end_time=at("end_ns"),
        node=_client(),
        detail=F.format_string(
            "%d Fetches from %s brought nothing, up to %d in a second", "count", "server", "most"
        ),
    )


def _slow_produce(tables: Tables) -> DataFrame:
    """Writes that are acknowledged late."""
    slow = tables["exchanges"].where(
        (F.col("api_key") == ProduceRequest.API_KEY) & (F.col("latency_ns") >= _SLOW_S * _SECOND_NS)
    )
    times = (
        with_session(slow, ("client_id", "server"), _SLOW_GAP_S)
        .groupBy("client_id", "server", "session")
        .agg(
            F.count("*").alias("count"),
            (F.max("latency_ns") / 1e9).alias("longest"),
            F.max(F.col("time_ns") + F.col("latency_ns")).alias("end_ns"),
            F.max_by(F.struct("file", "position"), "latency_ns").alias("place"),
            F.min("time_ns").alias("time_ns"),
        )
    )
    return found(
        times,
        "slow-produce",
        F.when(F.col("longest") >= _VERY_SLOW_S, ERROR).otherwise(WARNING),
        time=at("time_ns"),
        end_time=at("end_ns"),
        node=_client(),
        detail=F.format_string(
            "%s to %s took a second or more, the longest %.1f s",
            counted("count", "Produce request", "Produce requests"), "server", "longest",
        ),
    )


def _retry_storm(tables: Tables) -> DataFrame:
    """A client keeps getting the same error."""
    refused = (
        tables["exchanges"]
        .where(F.size(F.coalesce("errors", F.array())) > 0)
        .where(F.col("api_key") != FetchRequest.API_KEY)
        .withColumn("error", F.array_join("errors", ", "))
        .where(~F.col("error").isin(*_NOT_REFUSED))
    )
    keys = ("client_id", "server", "api_name", "error")
    storms = (
        with_session(refused, keys, _RETRY_GAP_S)
        .groupBy(*keys, "session")
        .agg(F.count("*").alias("count"), *span())
        .where(F.col("count") >= _RETRIES)
    )
    return found(
        storms,
        "retry-storm",
        WARNING,
        time=at("time_ns"),
        end_time=at("end_ns"),
        node=_client(),
        detail=F.format_string(
            "%s to %s was refused %d times without a pause: %s",
            "api_name", "server", "count", "error",
        ),
    )


def _client() -> Column:
    return F.coalesce("client_id", F.lit("a client without an id"))


RULES = (
    AnomalyRule("fetch-storm", ("partition_traffic",), _fetch_storm),
    AnomalyRule("slow-produce", ("exchanges",), _slow_produce),
    AnomalyRule("retry-storm", ("exchanges",), _retry_storm),
)
