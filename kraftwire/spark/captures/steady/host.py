"""What the lane needs of the decoding that it is a part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kraftwire.decode.framing.frames import Frame
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.headers import Ints
from kraftwire.spark.captures.helpers import RaftTalk
from kraftwire.spark.captures.quorum import Observer
from kraftwire.spark.captures.rows import Rows
from kraftwire.spark.captures.selection import Selection

__all__ = ["FilePlaces", "Host"]


class Host(Protocol):
    """What decodes a connection frame by frame."""

    bodies: Bodies
    raft: RaftTalk
    observer: Observer
    selection: Selection

    @property
    def rows(self) -> Mapping[str, Rows]:
        """The tables that are wanted."""

    def frame(self, frame: Frame) -> None:
        """Take a frame whose file and positions are right, if it is wanted."""

    def read(self, read: Read) -> None:
        """Take such a frame that was read already, and tells nothing about others."""

    def sample(self, frames: Sequence[Frame]) -> dict[str, list[tuple[Any, ...]]]:
        """The rows that frames would give if they were all there is, by table."""

    def count(self, frames: int, connection: str) -> None:
        """Take note of frames that do not come one by one."""


class FilePlaces:
    """The files of a recording; `offsets` are where they begin in it."""

    def __init__(self, files: Sequence[str], offsets: Sequence[int]) -> None:
        self.files = files
        self._offsets = np.array(offsets, np.int64)

    def find(self, at: Ints) -> tuple[Ints, Ints]:
        """Which files positions of the recording are in, and the positions in these."""
        which = np.searchsorted(self._offsets, at, "right") - 1
        return which, at - self._offsets[which]
