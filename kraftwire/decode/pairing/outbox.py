"""Where the frames of all connections meet, and the memory that unfinished ones may take.

Owns the numbering of frames in order of completion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.framing.health import Health
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
    """Collects frames until the capture's iterator hands them out."""

    __slots__ = ("budget", "file", "frames", "health", "index", "on_ending")

    def __init__(self, file: str, health: Health, index: int) -> None:
        self.file = file
        self.health = health
        self.index = index
        self.frames: list[Frame] = []
        self.budget = Budget()
        self.on_ending: Callable[[Ending], None] | None = None
