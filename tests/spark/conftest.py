"""One Spark session for all tests of a run, as it takes seconds to start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# `make spark` installs the extra where Java 17 is. In the gate nothing is left out.
_HAS_EXTRA = all(find_spec(name) is not None for name in ("pyspark", "pyarrow", "numpy"))
collect_ignore_glob = [] if _HAS_EXTRA or "CI" in os.environ else ["*"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine with two threads, configured as in a run over few rows."""
    if shutil.which("java") is None and "CI" not in os.environ:
        pytest.skip("Spark needs Java 17")
    from kraftwire.spark.run.small import FEW_ROWS
    from kraftwire.spark.session import local_session

    # Hundreds of small jobs: the optimizing compiler would take a third of the time for itself.
    session = local_session("local[2]", {"spark.sql.shuffle.partitions": "2"}, is_short=True)
    for name, value in FEW_ROWS.items():
        session.conf.set(name, value)
    yield session
    session.stop()


@pytest.fixture
def spark_for_many_rows(spark: SparkSession) -> SparkSession:
    """The session as it was started: queries are compiled, and planned again while they run."""
    return spark.newSession()
