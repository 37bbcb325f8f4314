"""One direction of a proxied connection: its bytes are cut into frames, and most pass as they are.

Of a frame that passes only the first bytes are looked at; the rest flows, however long it is, and
frames that come together are passed on together. A frame that has to be understood is held until it
is whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from kraftwire.errors import WireError
from kraftwire.limits import FRAME_SIZE_MAX
from kraftwire.proxy.events import Data, Record, Send, Side
from kraftwire.proxy.state import ConnectionState
from kraftwire.wire.frame import LENGTH_SIZE, frame

# `_begin` returns this for a frame of which more bytes are needed, or that has to wait.
NOT_YET = 0


class Changes(Protocol):
    """Changes a frame that passes, piece by piece, but not its length."""

    def feed(self, data: Data) -> Data:
        """Return what is passed on in place of the next bytes."""


class FrameFlow(ABC):
    """The frames of one side. What `is_waiting` is not fed; what `is_dead` takes all, and passes
    nothing on.
    """

    source: Side
    target: Side

    def __init__(self, state: ConnectionState) -> None:
        self.is_waiting = False
        self.is_dead = False
        # Whether nothing is sent on any more, although everything is read.
        self.is_mute = False
        self._state = state
        self._records = state.shared.records
        # Bytes that wait, and how many there have to be to go on.
        self._rest = bytearray()
        self._needed = 0
        # What is left of a frame that passes, or the size of one that is held: with its prefix.
        self._left = 0
        self._held_size = 0
        # What is done to the frame that passes, which then passes by itself.
        self._changes: Changes | None = None
        self._is_apart = False
        # Whether `_passed` has something to do.
        self._is_due = False

    @property
    def is_between_frames(self) -> bool:
        """Whether all of the last frame has been passed on."""
        return not (self._left or self._held_size or self.is_waiting)

    @abstractmethod
    def _begin(self, data: bytes, at: int, end: int, size: int) -> int:
        """Decide on the frame of `size` bytes whose length prefix is at `at`.

        Returns its size with the length prefix if it is to pass, minus that size if `_whole` is to
        get it, or NOT_YET. Raises: WireError if the connection is of no use any more.
        """

    @abstractmethod
    def _whole(self, payload: bytes) -> None:
        """Take a whole frame; called after all earlier ones have been passed on."""

    def _passed(self) -> None:  # noqa: B027 - one direction has nothing to do
        """Called between two frames if `_is_due`, once the one before has been passed on."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises: WireError as `_begin`."""
        if self.is_dead:
            return
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        start = self._advance(data)
        if start < len(data) and not self.is_dead:
            self._rest += memoryview(data)[start:]

    def resume(self) -> None:
        """Go on with bytes that had to wait. Raises: WireError as `_begin`."""
        if self._rest:
            self.feed(b"")

    def die(self) -> None:
        """Pass nothing on any more."""
        self.is_dead = True
        self._rest.clear()

    def _advance(self, data: bytes) -> int:
        """Pass on and hold what is there; returns the position of what has to wait."""
        # Bytes from `start` on are passed on together.
        start, at, end = 0, 0, len(data)
        self._needed = 0
        while at < end:
            if self._left:
                taken = min(self._left, end - at)
                at += taken
                self._left -= taken
                if self._left:
                    break
            elif not self._held_size:
                begun = self._begun(data, at, end)
                if begun > 0 and not self._is_apart:
                    self._left = begun
                    continue
                self._pass(data, start, at, changes=None)
                start = at
                self._left, self._held_size = max(begun, 0), max(-begun, 0)
                if begun == NOT_YET:
                    return start
                continue
            elif end - at >= self._held_size:
                payload = data[at + LENGTH_SIZE : at + self._held_size]
                start = at = at + self._held_size
                self._held_size = 0
                self._whole(payload)
            else:
                self._needed = self._held_size
                return start
            if self._is_apart or self._is_due:
                self._pass(data, start, at, changes=self._changes)
                start, self._is_apart, self._changes = at, False, None
                if self._is_due:
                    self._passed()
            if self.is_waiting or self.is_dead:
                return start
        self._pass(data, start, at, changes=self._changes)
        return at

    def _begun(self, data: bytes, at: int, end: int) -> int:
        """Return what `_begin` decides, once the length is there. Raises: WireError."""
        if end - at < LENGTH_SIZE:
            return NOT_YET
        size = int.from_bytes(data[at : at + LENGTH_SIZE], "big", signed=True)
        if size < 0:
            raise WireError("a frame of negative length", expected="0 or more", found=str(size))
        return self._begin(data, at, end, size)

    def _pass(self, data: bytes, start: int, end: int, *, changes: Changes | None) -> None:
        if start == end:
            return
        piece: Data = data if end - start == len(data) else memoryview(data)[start:end]
        self._record(piece)
        self._emit(piece if changes is None else changes.feed(piece))

    def _emit(self, data: Data, recorded: bytes | None = None) -> None:
        """Send bytes on."""
        if not self.is_mute:
            self._state.commands.append(Send(self.target, data, recorded))

    def _put(self, payload: bytes, shown: bytes | None = None, cut: int | None = None) -> None:
        """Send a payload on, of which a capture gets `shown`, if not None.

        With `cut` only so many bytes of the frame are sent.
        """
        self._emit(frame(payload)[:cut], None if shown is None else frame(shown))

    def _record(self, data: Data) -> None:
        """Show a capture what came, also where it is not passed on."""
        if self._records:
            self._state.commands.append(Record(self.source, data))


def held(size: int) -> int:
    """Return what `_begin` returns for a frame that is to be held. Raises: WireError if it is too
    long."""
    if size > FRAME_SIZE_MAX:
        problem, expected = "the frame is too long to be held", f"at most {FRAME_SIZE_MAX} bytes"
        raise WireError(problem, expected=expected, found=str(size))
    return -(LENGTH_SIZE + size)
