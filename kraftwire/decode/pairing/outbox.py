"""Where the frames of all connections meet, and the memory that unfinished ones may take.

Owns the order of frames, which is that of completion, and their files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

from kraftwire.decode.capture.packets import Stamp
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.framing.health import Health
from kraftwire.decode.tls.keylog import KeyLog
from kraftwire.limits import BUFFERED_BYTES_MAX

__all__ = ["Budget", "Ending", "Outbox"]


@dataclass(frozen=True, slots=True)
class Ending:
    """The first packet that ends a connection of Kafka: a FIN, or a reset."""

    connection: str
    time_ns: int
    is_by_client: bool
    is_reset: bool


class Budget:
    """Bounds the bytes of unfinished frames, by the sizes that they declare."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used = 0

    def take(self, size: int) -> bool:
        """Whether a frame may be collected; if so, its size is taken until it is given back."""
        if self._used + size > BUFFERED_BYTES_MAX:
            return False
        self._used += size
        return True

    def give_back(self, size: int) -> None:
        """A frame is complete."""
        self._used -= size


class Outbox:
    """Collects frames until the capture's iterator hands them out.

    Shape: `count` is how many there have been; `offset` is where the present file begins, counted
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
        self.budget = Budget()
        self.keys: KeyLog | None = None
        self.on_ending: Callable[[Ending], None] | None = None
        self._files: list[tuple[int, str]] = []

    def begin_file(self, file: str, offset: int) -> None:
        """Learn that the packets of the next file follow, whose positions begin with an offset."""
        self.file = file
        self.offset = offset
        self._files.append((offset, file))

    def place(self, frame: Frame, stamp: Stamp) -> None:
        """Say in which files a frame begins and ends that began in an earlier one."""
        _, begin, end = stamp
        frame.file, frame.position = self._locate(begin)
        frame.end_file, frame.end_position = self._locate(end - 1, 1)

    def _locate(self, at: int, beyond: int = 0) -> tuple[str, int]:
        """File and position of a byte that may be in an earlier file."""
        offset, file = self._files[bisect_right(self._files, at, key=itemgetter(0)) - 1]
        return file, at - offset + beyond
