"""What a stage is: a pure function from tables to a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

Tables = Mapping[str, DataFrame]


@dataclass(frozen=True, slots=True)
class Stage:
    """Makes the table `name` from the tables `inputs`.

    `make` receives a DataFrame for every input, without rows if nothing was found, and returns one.
    It runs no action on them: no count, collect or write.
    """

    name: str
    inputs: tuple[str, ...]
    make: Callable[[Tables], DataFrame]
