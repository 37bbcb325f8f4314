"""Queue of completed frames, and the budget for incomplete ones.

Owns the order of frames, which is that of completion, and their files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sized
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from kraftwire.capture.framing.frames import Frame, Request
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tls.keylog import KeyLog
from kraftwire.limits import BUFFERED_BYTES_MAX

# A frame in a compressed capture may have PACKED_FRAME_FREE bytes and PACKED_FRAME_RATIO more for
# each byte of the compressed file, or of what a pipe has delivered so far. Of a longer frame only
# the first packet is kept.
PACKED_FRAME_FREE = 3 * 1024 * 1024
PACKED_FRAME_RATIO = 1


@dataclass(frozen=True, slots=True)
class Ending:
    """The first packet that ends a connection of Kafka: a FIN, or a reset."""

    connection: str
    time_ns: int
    is_by_client: bool
    is_reset: bool


class FrameBudget:
    """Bounds the bytes of unfinished frames, by the sizes that they declare.

    `packed` is the size of a compressed capture, None where it is not compressed.
    """

    __slots__ = ("_used", "packed")

    def __init__(self) -> None:
        self._used = 0
        self.packed: int | None = None

    def may_have(self, size: int) -> bool:
        """Return whether a frame may have this size."""
        packed = self.packed
        return packed is None or size <= PACKED_FRAME_FREE + PACKED_FRAME_RATIO * packed

    def take(self, size: int) -> bool:
        """Reserve memory for a frame of this size; returns whether there is enough."""
        if not self.may_have(size) or self._used + size > BUFFERED_BYTES_MAX:
            return False
        self._used += size
        return True

    def give_back(self, size: int) -> None:
        """Release the size of a frame that is complete."""
        self._used -= size


class FrameQueue:
    """Collects frames until the capture's iterator returns them.

    `count` is how many there have been; `offset` is where the present file begins, counted
    over all files of a series. `keys` are the secrets of encrypted connections, if any are known.
    """

    __slots__ = (
        "_files",
        "budget",
        "count",
        "file",
        "frames",
        "health",
        "keys",
        "offset",
        "on_ending",
    )

    def __init__(self, health: Health) -> None:
        self.file = ""
        self.offset = 0
        self.health = health
        self.count = 0
        self.frames: list[Frame] = []
        self.budget = FrameBudget()
        self.keys: KeyLog | None = None
        self.on_ending: Callable[[Ending], None] | None = None
        self._files: list[tuple[int, str]] = []

    def begin_file(self, file: str, offset: int) -> None:
        """Learn that the packets of the next file follow, whose positions begin with an offset."""
        self.file = file
        self.offset = offset
        self._files.append((offset, file))

    def take(self) -> list[Frame]:
        """Return the frames so far and forget them; `frames` stays the same list."""
        taken = self.frames[:]
        self.frames.clear()
        return taken

    def place(self, frame: Frame, stamp: Stamp) -> None:
        """Name the files in which a frame that began in an earlier file begins and ends."""
        _, begin, end = stamp
        frame.file, frame.position = self._locate(begin)
        frame.end_file, frame.end_position = self._locate(end - 1, 1)

    def _locate(self, at: int, beyond: int = 0) -> tuple[str, int]:
        """Return file and position of a byte that may be in an earlier file."""
        offset, file = self._files[bisect_right(self._files, at, key=itemgetter(0)) - 1]
        return file, at - offset + beyond


class Pairing(Protocol):
    """Pairs the requests and responses of one connection."""

    name: str
    frame_queue: FrameQueue
    health: Health
    budget: FrameBudget
    pending: deque[Request]

    @property
    def parked(self) -> Sized:
        """The responses that wait for their request."""

    def register(self, request: Request) -> None:
        """Remember a request that will be answered."""

    def is_parked(self, correlation_id: int) -> bool:
        """Whether a response with this id waits for its request."""

    def respond(
        self, data: bytes, size: int, stamp: Stamp, missing: tuple[tuple[int, int], ...]
    ) -> None:
        """Take a response that was not matched at once."""

    def match_parked(self) -> None:
        """Pass on every response whose request is known by now, and those before it."""
