"""The process from which Spark's Python workers are forked, with our libraries already loaded.

The JVM runs it in place of `pyspark.daemon`, whose workers would each take half a second to load
them.
"""

from __future__ import annotations

import gc
from importlib import import_module

from pyspark.daemon import manager

_NEEDED = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "kraftwire.spark.run.tasks",
    "kraftwire.spark.stages.groups",
)


def _load() -> None:
    """Load what most tasks need, so that workers share it.

    Their collector leaves these objects alone: Spark has it run after every task.
    """
    for name in _NEEDED:
        import_module(name)
    gc.freeze()


if __name__ == "__main__":
    _load()
    manager()
