"""What the readers of a capture tell the process that joins their lines; picklable."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.framing.health import Health

__all__ = ["BLOCKS_AHEAD", "BLOCK_BYTES", "KEY_BITS", "Block", "End", "Event", "Line", "Lines"]

# How much of a capture is read before readers tell each other what they have learnt, and how many
# blocks a reader may be ahead of the others, as it holds the frames of these.
BLOCK_BYTES = 1024 * 1024
BLOCKS_AHEAD = 4

# A key numbers frames in the order of one reader: the mark of the frame (see `pairing.share`), and
# in the lowest bits its number among those with the same mark.
KEY_BITS = 13

# The key of a frame, and a frame that says something about others, or the length of the name of a
# new connection that widens a column.
Event = tuple[int, Frame | int]


@dataclass(frozen=True, slots=True)
class Line:
    """The way of a reader to the process that joins the lines.

    `tell` reports to it, and `hear` waits for the events of other readers in the next block.
    """

    tell: Callable[[object], None]
    hear: Callable[[], Sequence[Event]]


@dataclass(slots=True)
class Block:
    """What a reader has found in a block of the capture."""

    frame_count: int
    events: list[Event]
    is_last: bool


@dataclass(slots=True)
class Lines:
    """Lines of a block as text, with the key and the day since the epoch of each; -1 is no day."""

    text: str = ""
    keys: array[int] = field(default_factory=lambda: array("q"))
    days: array[int] = field(default_factory=lambda: array("q"))


@dataclass(slots=True)
class End:
    """The last report: lines of requests without answers, whose keys are those of the requests."""

    lines: Lines
    findings: Counter[str]
    health: Health
