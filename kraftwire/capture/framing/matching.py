"""The interface by which the readers of frames pair requests with responses."""

from __future__ import annotations

from collections import deque
from collections.abc import Sized
from typing import Protocol

from kraftwire.capture.connections.frame_queue import FrameBudget, FrameQueue
from kraftwire.capture.framing.frames import Request
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import Stamp

__all__ = ["Pairing"]


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
