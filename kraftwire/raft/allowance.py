"""How far requests may still advance a node's epoch: an allowance that grows with time."""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.limits import EPOCH_ALLOWANCE, EPOCH_ALLOWANCE_MS

__all__ = ["EpochAllowance"]


@dataclass(slots=True)
class EpochAllowance:
    """How far requests may still advance the epoch.

    `spent` counts what they added, less one for every EPOCH_ALLOWANCE_MS since `since_ms`.
    `others_due_ms` is when a replica that is not a voter may advance the epoch again. Units:
    milliseconds of the core's clock.
    """

    spent: int = 0
    since_ms: int = 0
    others_due_ms: int = 0

    def take(self, jump: int, now_ms: int) -> bool:
        """Use up some of it; returns False, and changes nothing, if it is not enough."""
        regained = (now_ms - self.since_ms) // EPOCH_ALLOWANCE_MS
        self.spent = max(0, self.spent - regained)
        self.since_ms += regained * EPOCH_ALLOWANCE_MS
        if self.spent + jump > EPOCH_ALLOWANCE:
            return False
        self.spent += jump
        return True
