"""The data sources that `kraftwire.spark.register` registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftwire.spark.sources.capture import CaptureDataSource
from kraftwire.spark.sources.log import LogDataSource
from kraftwire.spark.sources.metadata import MetadataDataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

SOURCES: tuple[type[DataSource], ...] = (CaptureDataSource, LogDataSource, MetadataDataSource)
