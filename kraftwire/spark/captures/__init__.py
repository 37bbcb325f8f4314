"""From a capture to the tables of the pipeline, without Spark."""

from __future__ import annotations

from kraftwire.spark.captures.decode import decode_tables
from kraftwire.spark.captures.files import file_rows
from kraftwire.spark.captures.packet_index import index_capture
from kraftwire.spark.captures.recording import Recording
from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.captures.tables import CAPTURE_TABLES, CaptureTables

__all__ = [
    "CAPTURE_TABLES",
    "CaptureTables",
    "Recording",
    "Selection",
    "decode_tables",
    "file_rows",
    "index_capture",
]
