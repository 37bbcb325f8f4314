"""What the lane needs from the decoder of its connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kraftwire.capture.framing.frames import Frame
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.headers import Ints
from kraftwire.spark.captures.helpers import RaftTalk
from kraftwire.spark.captures.quorum import Observer
from kraftwire.spark.captures.rows import Rows
from kraftwire.spark.captures.selection import Selection

__all__ = ["FilePlaces", "Host"]


class Host(Protocol):
    """The decoder of a connection, frame by frame."""

    bodies: Bodies
    raft: RaftTalk
    observer: Observer
    selection: Selection

    @property
    def rows(self) -> Mapping[str, Rows]:
        """Return the requested tables."""

    def frame(self, frame: Frame) -> None:
        """Add a frame with correct file and positions, if it is selected."""

    def read(self, read: Read) -> None:
        """Add such a frame that was read already and does not affect others."""

    def sample(self, frames: Sequence[Frame]) -> dict[str, list[tuple[Any, ...]]]:
        """Return the rows that these frames alone would give, by table."""

    def count(self, frames: int, connection: str) -> None:
        """Count frames that are not added one by one."""


class FilePlaces:
    """The files of a recording; `offsets` are where they begin in it."""

    def __init__(self, files: Sequence[str], offsets: Sequence[int]) -> None:
        self.files = files
        self._offsets = np.array(offsets, np.int64)

    def find(self, at: Ints) -> tuple[Ints, Ints]:
        """Return the files of positions in the recording, and the positions in these."""
        which = np.searchsorted(self._offsets, at, "right") - 1
        return which, at - self._offsets[which]
