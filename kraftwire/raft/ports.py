"""What a Raft core is given at its start: the log as it was found on disk.

From then on the core keeps its own picture of the log, changed with every `AppendToLog` and
`TruncateLog` that it emits; it never reads files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kraftwire.raft.effects import ElectionState

__all__ = ["LogImage", "StoredState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogImage:
    """A log at start-up, all of it durable.

    Shape: `batches` are (base offset, leader epoch) of every batch in order; `control` are (base
    offset, bytes) of the control batches among them; `snapshot` is (end offset, epoch) of the
    newest snapshot other than 0-0, None without one.
    """

    start_offset: int = 0
    end_offset: int = 0
    batches: Sequence[tuple[int, int]] = ()
    control: Sequence[tuple[int, bytes]] = ()
    snapshot: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class StoredState:
    """Everything that a replica remembers over a restart."""

    election: ElectionState = field(default_factory=ElectionState)
    log: LogImage = field(default_factory=LogImage)
