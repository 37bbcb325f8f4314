"""Executors have Spark's extra and what is sent to them, and nothing that only nodes need."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

# What tasks unpickle: functions of these modules, with all that they import.
IMPORTS = """
import sys
sys.modules["trio"] = None
import kraftwire.spark.captures
import kraftwire.spark.run.pipeline
import kraftwire.spark.sources
import kraftwire.spark.stages
import kraftwire.spark.tail.growth
"""


def test_tasks_import_nothing_that_needs_trio() -> None:
    """Otherwise no task runs on a cluster, while everything works in one process."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
