"""Captures for programs: their frames and exchanges."""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.source import CaptureInput
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.exchange import Exchange, exchanges
from kraftwire.decode.filters.frames import FrameFilter
from kraftwire.decode.options import Options


class Frames:
    """The frames of captures that are open; iterate once, over them or over `exchanges`.

    Order: files are closed at the end of the iteration, by `close`, or as a context.
    `health` is complete at the end: packets, losses, connections, TLS, and in `health.bytes`
    where each byte is. `memory` is what was learned so far.
    """

    def __init__(
        self, captures: tuple[CaptureInput, ...], name: str | None, options: Options,
        memory: Memory | None,
    ) -> None:
        self.options = options
        self.memory = Memory() if memory is None else memory
        self._filter = FrameFilter(options.filters)
        self._capture = Capture(*captures, name=name, keys=options.keys, frame_class=Frame)
        self._decoder = FrameDecoder(options.settings(self.memory), self.memory)

    def close(self) -> None:
        """Close the files, where the frames are not read to their end."""
        self._capture.close()

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def health(self) -> Health:
        """The totals of the capture: packets, losses, connections and bytes."""
        return self._capture.health

    def __iter__(self) -> Iterator[Frame]:
        return filter(self._filter.passes, map(self._decoder.decode, self._captured()))

    def exchanges(self) -> Iterator[Exchange]:
        """Requests with their responses, in the order in which they are complete.

        A filter may match the request or the response.
        """
        return filter(self._is_wanted, exchanges(self._captured(), self._decoder))

    def _captured(self) -> Iterator[RawFrame]:
        for number, frame in enumerate(self._capture):
            if not number:
                self._filter.begin(frame.time_ns)
            yield frame

    def _is_wanted(self, found: Exchange) -> bool:
        if found.request is not None and found.response is not None:
            return self._filter.passes_exchange(found.request, found.response)
        return self._filter.passes(found.first)
