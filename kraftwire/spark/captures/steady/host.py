"""What the lane needs of the decoding that it is a part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kraftwire.decode.framing.frames import Frame
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.helpers import RaftTalk
from kraftwire.spark.captures.quorum import Observer
from kraftwire.spark.captures.rows import Rows
from kraftwire.spark.captures.steady.packets import Ints

__all__ = ["FilePlaces", "Host"]


class Host(Protocol):
    """What decodes a connection frame by frame."""

    bodies: Bodies
    raft: RaftTalk
    observer: Observer

    @property
    def rows(self) -> Mapping[str, Rows]:
        """The tables that are wanted."""

    def frame(self, frame: Frame) -> None:
        """Take a frame whose file and positions are right."""

    def read(self, read: Read) -> None:
        """Take such a frame that was read already."""

    def sample(self, frames: Sequence[Frame]) -> dict[str, list[tuple[Any, ...]]]:
        """The rows that frames would give if they were all there is, by table."""

    def count(self, frames: int) -> None:
        """Take note of frames that do not come one by one."""


class FilePlaces:
    """Files and positions of bytes, for many at once.

    Shape: `begins` are where pieces begin in the joined bytes, `shifts` what makes a position in
    the recording of one in them; `offsets` are where the files begin in the recording.
    """

    def __init__(
        self, pieces: Sequence[tuple[int, bytes]], files: Sequence[str], offsets: Sequence[int]
    ) -> None:
        sizes = np.array([len(data) for _, data in pieces], np.int64)
        self.begins = np.cumsum(sizes) - sizes
        self.shifts = np.array([position for position, _ in pieces], np.int64) - self.begins
        self.files = files
        self._offsets = np.array(offsets, np.int64)

    def find(self, at: Ints) -> tuple[Ints, Ints]:
        """Which files bytes of the joined pieces are in, and their positions there."""
        placed = at + self.shifts[np.searchsorted(self.begins, at, "right") - 1]
        which = np.searchsorted(self._offsets, placed, "right") - 1
        return which, placed - self._offsets[which]
