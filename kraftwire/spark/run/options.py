"""What a run of the pipeline is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.spark.captures.cuts import CUT_BYTES
from kraftwire.spark.captures.selection import Selection

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where tables go and what is in them; picklable.

    Shape: `with_records` adds the table of records of log files; `tags` are words about the run,
    kept in its manifest. A connection of more than `cut_bytes` is cut into parts, where that spares
    time; the tables do not depend on it.
    """

    folder: Path
    selection: Selection = field(default_factory=Selection)
    with_records: bool = False
    tags: tuple[tuple[str, str], ...] = ()
    cut_bytes: int = CUT_BYTES

    def fingerprint(self) -> dict[str, object]:
        """What must be the same for tables to be added to."""
        chosen = self.selection
        return {
            "since": chosen.since,
            "until": chosen.until,
            "apis": None if chosen.apis is None else sorted(chosen.apis),
            "records": self.with_records,
        }
