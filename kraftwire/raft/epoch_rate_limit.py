"""The rate limit on requests that advance a node's epoch."""

from __future__ import annotations

from dataclasses import dataclass

# Requests of voters may advance a node's epoch this far at once, and by one more in this many
# milliseconds: a voter without pre-votes that was cut off for hours comes back that far ahead, yet
# using up all epochs would take years. A voter that was away for longer is heard in its responses.
EPOCH_BURST_MAX = 10_000
EPOCH_REGAINED_MS = 100

# A replica that is not in the voter set, but may be in one that this node's log lacks, may advance
# the epoch this far: by the elections that have failed since.
EPOCH_JUMP_OF_OTHERS_MAX = 100


@dataclass(slots=True)
class EpochRateLimit:
    """How far requests may still advance the epoch: a burst, and a little more with time.

    `spent` counts what they added, less one for every EPOCH_REGAINED_MS since `since_ms`.
    `others_due_ms` is when a replica that is not a voter may advance the epoch again. Units:
    milliseconds of the core's clock.
    """

    spent: int = 0
    since_ms: int = 0
    others_due_ms: int = 0

    def take(self, jump: int, now_ms: int) -> bool:
        """Advance by `jump` epochs; returns False, and changes nothing, if that is too far."""
        regained = (now_ms - self.since_ms) // EPOCH_REGAINED_MS
        self.spent = max(0, self.spent - regained)
        self.since_ms += regained * EPOCH_REGAINED_MS
        if self.spent + jump > EPOCH_BURST_MAX:
            return False
        self.spent += jump
        return True
