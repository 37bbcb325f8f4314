"""The data sources that `kraftwire.spark.register` makes known.

Empty, so that a worker that reads files does not load what reads a quorum.
"""
