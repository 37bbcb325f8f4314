"""The highest rate that a quorum sustains: ours and Kafka's, found step by step, alternately."""

from tests.bench.rate.run import run

__all__ = ["run"]
