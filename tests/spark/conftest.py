"""One Spark session for all tests of a run, as it takes seconds to start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine with two threads."""
    pytest.importorskip("pyspark", reason="the extra kraftwire[spark] is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    from kraftwire.spark.session import local_session

    session = local_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
