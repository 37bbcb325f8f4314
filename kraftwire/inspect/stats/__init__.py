"""Statistics of captures and logs; see README.md."""

from __future__ import annotations

import json
from typing import TextIO

from kraftwire.inspect.stats.collect import Collector
from kraftwire.inspect.stats.json_form import stats_to_json
from kraftwire.inspect.stats.order import Sort
from kraftwire.inspect.stats.text import write_stats
from kraftwire.printable import printable

__all__ = ["Collector", "StatsJsonWriter", "StatsWriter", "stats_to_json", "write_stats"]


class StatsWriter(Collector):
    """Counts everything and writes tables at the end."""

    def __init__(
        self,
        stream: TextIO,
        *,
        sort: Sort = "p99",
        top: int | None = None,
        **_options: object,
    ) -> None:
        """Write to a stream. `top` is the largest number of rows of each table."""
        super().__init__()
        self._stream = stream
        self._sort = sort
        self._top = top

    def finish(self) -> None:
        """Write the statistics as tables."""
        super().finish()
        write_stats(self, self._stream, self._sort, top=self._top)
        self._stream.flush()


class StatsJsonWriter(StatsWriter):
    """Counts everything and writes one JSON object at the end."""

    def finish(self) -> None:
        """Write the statistics as JSON."""
        Collector.finish(self)
        self._stream.write(printable(json.dumps(stats_to_json(self))) + "\n")
        self._stream.flush()
