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


DAEMON = """
import gc
from unittest import mock
with mock.patch("pyspark.daemon.manager") as manager:
    import runpy
    manager.side_effect = lambda: print(len(gc.get_objects()), gc.get_freeze_count())
    runpy.run_module("kraftwire.spark.daemon", run_name="__main__")
"""


def test_workers_do_not_collect_what_the_daemon_has_loaded() -> None:
    """Spark runs the collector after every task, which would walk over all loaded modules."""
    done = subprocess.run(
        [sys.executable, "-c", DAEMON], capture_output=True, text=True, check=True
    )
    watched, frozen = map(int, done.stdout.split())
    assert watched < frozen / 10
