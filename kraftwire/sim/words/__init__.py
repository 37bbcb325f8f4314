"""Events, effects, messages, batches and votes in few words, for people who read a failure.

Fields and not dataclasses: what does not matter for elections and replication is left out.
"""

from kraftwire.sim.words.ballots import election, replica, stored, vote, voters
from kraftwire.sim.words.contents import (
    batch,
    batches,
    committed,
    high_watermark,
    position,
    value,
)
from kraftwire.sim.words.lists import listed, table
from kraftwire.sim.words.messages import message
from kraftwire.sim.words.steps import effects, event

__all__ = [
    "batch",
    "batches",
    "committed",
    "effects",
    "election",
    "event",
    "high_watermark",
    "listed",
    "message",
    "position",
    "replica",
    "stored",
    "table",
    "value",
    "vote",
    "voters",
]
