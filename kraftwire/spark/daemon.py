"""The process that Spark's Python workers are forked from, with our libraries loaded already.

Run by the JVM in place of `pyspark.daemon`, whose workers would each load them for half a second.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.daemon import manager

__all__: list[str] = []

_NEEDED = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "kraftwire.spark.run.tasks",
    "kraftwire.spark.stages.group_facts",
)


def _load() -> None:
    """Load what most tasks need, so that workers share it."""
    for name in _NEEDED:
        import_module(name)


if __name__ == "__main__":
    _load()
    manager()
