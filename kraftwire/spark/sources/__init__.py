"""The data sources that `kraftwire.spark.register` registers.

This module is empty, so that a worker that reads files does not load the quorum reader.
"""
