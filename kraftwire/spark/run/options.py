"""The options of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.spark.captures import CAPTURE_TABLES
from kraftwire.spark.captures.connection_parts import CUT_BYTES
from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.tables import TABLES, matching
from kraftwire.spark.tables.apis import TYPED_TABLES

__all__ = ["RunOptions", "choose_tables"]

_RECORDS = "records"
# These show that every byte is accounted for.
_ALWAYS = ("bad_input", "files")
_BASE = frozenset({*CAPTURE_TABLES, _RECORDS, *TYPED_TABLES})


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where tables go and what they hold; can be pickled.

    `tables` are names of tables, as of `choose_tables`; None stands for all untyped ones except
    `records`, which `with_records` adds. `tags` describe the run, in a column of every table. A
    connection of more than `cut_bytes` is cut into parts if that saves time; the tables do not
    depend on it.
    """

    folder: Path
    selection: Selection = field(default_factory=Selection)
    with_records: bool = False
    tags: tuple[tuple[str, str], ...] = ()
    tables: tuple[str, ...] | None = None
    cut_bytes: int = CUT_BYTES

    @property
    def base(self) -> frozenset[str]:
        """Return the tables that come from inputs: those requested, and those that stages read."""
        more = {*_ALWAYS, _RECORDS} if self.with_records else set(_ALWAYS)
        if self.tables is None:
            return frozenset({*CAPTURE_TABLES, *more})
        return frozenset(more | (_with_inputs(self.tables) & _BASE))

    @property
    def derived(self) -> frozenset[str] | None:
        """Return the tables that stages make; None for those of all stages."""
        return None if self.tables is None else frozenset(_with_inputs(self.tables) - _BASE)

    def fingerprint(self) -> dict[str, object]:
        """Return the options that must be the same when adding to tables."""
        chosen = self.selection
        return {
            "since": chosen.since,
            "until": chosen.until,
            "apis": None if chosen.apis is None else sorted(chosen.apis),
            "records": self.with_records,
            "tables": None if self.tables is None else sorted(self.tables),
        }


def choose_tables(patterns: Iterable[str]) -> tuple[str, ...]:
    """Expand names, patterns such as ``*_response`` and ``all`` to tables.

    Raises: UsageError with the known tables, if one matches none.
    """
    from kraftwire.spark.stages import STAGES

    return tuple(matching(patterns, [name for name in STAGES if name not in TABLES]))


def _with_inputs(names: Iterable[str]) -> set[str]:
    """Return tables and all tables that they are made from."""
    chosen = set(names)
    if chosen <= _BASE:
        return chosen
    from kraftwire.spark.stages import STAGES

    # A stage comes after those that make its inputs.
    for name, stage in reversed(list(STAGES.items())):
        if name in chosen:
            chosen.update(stage.inputs)
    return chosen
