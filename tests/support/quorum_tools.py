"""`kraftwire quorum` and kafka-metadata-quorum, run to their ends, and what they print compared."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.support.java import run_kafka_tool

__all__ = ["masked", "ours", "theirs"]

_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"


def ours(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run our command."""
    command = [sys.executable, "-m", "kraftwire", "quorum", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def theirs(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Kafka's tool, which takes connection options in front only."""
    return run_kafka_tool(_TOOL, *arguments, check=False)


def masked(output: str) -> str:
    """An output without what changes from one moment to the next."""
    output = re.sub(r"\b\d{13}\b", "<timestamp>", output)
    output = re.sub(r"\d+ ms ago *", "<ms ago>", output)
    return re.sub(r"(MaxFollowerLagTimeMs: +)\d+", r"\1<ms>", output)
