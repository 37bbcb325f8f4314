"""The data sources that `kraftwire.spark.register` registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftwire.spark.sources.capture import CaptureSource
from kraftwire.spark.sources.log import LogSource
from kraftwire.spark.sources.metadata import MetadataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

SOURCES: tuple[type[DataSource], ...] = (CaptureSource, LogSource, MetadataSource)
