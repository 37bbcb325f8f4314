"""Counts the Kafka frames that pass: how many of each kind, and how large."""

from __future__ import annotations

import struct
import threading
from collections import Counter
from dataclasses import dataclass, field

from kraftwire import messages
from kraftwire.wire.frame import LENGTH_SIZE, frame_size

_START = struct.Struct(">ihhi")  # length, api key, api version, correlation id of a request
_LENGTH_AND_ID = struct.Struct(">ii")


@dataclass(slots=True)
class Mix:
    """Frames and bytes by kind, over all connections. Units: sizes with the length prefix."""

    frames: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, size: int) -> None:
        """Count one frame."""
        with self._lock:
            self.frames[kind] += 1
            self.sizes[kind] += size

    @property
    def mean_size(self) -> float:
        """Return the bytes per frame over all kinds."""
        return self.sizes.total() / max(1, self.frames.total())

    def lines(self) -> list[str]:
        """Return the lines of a table, the kinds with the most bytes first."""
        rows = [f"{'frame':34}{'count':>10}{'bytes':>14}{'mean':>10}"]
        for kind, size in self.sizes.most_common():
            count = self.frames[kind]
            rows.append(f"{kind:34}{count:>10,}{size:>14,}{size / count:>10,.0f}")
        total = self.frames.total()
        rows.append(f"{'all':34}{total:>10,}{self.sizes.total():>14,}{self.mean_size:>10,.0f}")
        return rows


class StreamCounter:
    """Walks one direction of one connection from frame to frame without keeping the bytes.

    `requests` maps the correlation ids of the connection's open requests to API names; both
    directions of a connection share it.
    """

    def __init__(self, mix: Mix, requests: dict[int, str], *, is_client: bool) -> None:
        self._mix = mix
        self._requests = requests
        self._is_client = is_client
        self._head = bytearray()
        self._skip = 0

    def feed(self, chunk: bytes) -> None:
        """Count the frames that begin in a chunk. Raises: WireError on an impossible length."""
        position = 0
        wanted = _START.size if self._is_client else _LENGTH_AND_ID.size
        while position < len(chunk):
            if self._skip:
                step = min(self._skip, len(chunk) - position)
                self._skip -= step
            else:
                step = min(wanted - len(self._head), len(chunk) - position)
                self._head += chunk[position : position + step]
                if len(self._head) == wanted:
                    self._begin(bytes(self._head))
                    self._head.clear()
            position += step

    def _begin(self, head: bytes) -> None:
        size = LENGTH_SIZE + frame_size(head)
        if self._is_client:
            _, api_key, _, correlation_id = _START.unpack(head)
            name = messages.API_NAMES.get(api_key, f"api {api_key}")
            self._requests[correlation_id] = name
            self._mix.add(f"{name} request", size)
        else:
            _, correlation_id = _LENGTH_AND_ID.unpack(head)
            name = self._requests.pop(correlation_id, "unknown")
            self._mix.add(f"{name} response", size)
        self._skip = size - len(head)
