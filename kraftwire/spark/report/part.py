"""A part of the report: HTML with plots in it, and the tables that the plots show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from bokeh.models import Range1d

from kraftwire.spark.report.folder import Folder

__all__ = ["Context", "Part"]


@dataclass(frozen=True, slots=True)
class Context:
    """Data that all parts share.

    `extent` is the time that the report covers, in nanoseconds since the epoch, and `span`
    the width of the spans in plots, in seconds; `times` is the x range of every plot over time, so
    that they move together. If nothing has a time, extent is None.
    """

    folder: Folder
    extent: tuple[int, int] | None
    span: int
    times: Range1d


@dataclass(slots=True)
class Part:
    """A part of the report.

    `plots` are bokeh models by name; ``{{name}}`` in `html` is where one goes. `data` are
    the tables of the plots by the names of their CSV files.
    """

    id: str
    title: str
    html: str = ""
    plots: dict[str, Any] = field(default_factory=dict)
    data: dict[str, pa.Table] = field(default_factory=dict)
