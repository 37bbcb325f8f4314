"""From a capture to the tables of the pipeline, without Spark."""

from __future__ import annotations

from kraftwire.spark.captures.decode import BIN_BYTES, decode_tables
from kraftwire.spark.captures.files import file_rows
from kraftwire.spark.captures.packet_index import FileIndex, index_capture
from kraftwire.spark.captures.recording import Recording, bins
from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.captures.tables import CAPTURE_TABLES, Tables

__all__ = [
    "BIN_BYTES",
    "CAPTURE_TABLES",
    "FileIndex",
    "Recording",
    "Selection",
    "Tables",
    "bins",
    "decode_tables",
    "file_rows",
    "index_capture",
]
