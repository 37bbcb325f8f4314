"""The calls of clients with their results and times: the input of the checker."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Append:
    """One record that a client wanted in the log.

    `key` identifies the record, `called` and `returned` are seconds of one monotonic clock.
    Without `returned` the outcome is unknown. `offset` is the one that was acknowledged, if the
    answer names it.
    """

    key: bytes
    called: float
    returned: float | None = None
    offset: int | None = None

    @property
    def is_acknowledged(self) -> bool:
        """Whether an answer said that it is committed."""
        return self.returned is not None


@dataclass(frozen=True, slots=True)
class Look:
    """What a node that believes it leads reported about the quorum."""

    node_id: int
    epoch: int
    high_watermark: int
    called: float
    returned: float


@dataclass(slots=True)
class History:
    """All that happened; each list in the order in which the calls returned."""

    appends: list[Append] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
