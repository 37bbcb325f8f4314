"""The base class of the printed stories: feeds exchanges to a story, prints it at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TextIO

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.framing.health import Health
from kraftwire.capture.recorded import REST_S, Recordings, TimeSpan
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.exchange.sinks import ExchangeSink
from kraftwire.decode.limits import objects_of
from kraftwire.messages import API_NAMES
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.printable import printable
from kraftwire.story.observed_exchange import ObservedExchange, request_inside, response_inside
from kraftwire.wire.message import Message

_ENVELOPE = "Envelope"


class StoryWriter(ExchangeSink[ObservedExchange]):
    """Passes requests and responses to a story, and writes the story at the end.

    Subclasses name the `apis` whose bodies they need, and those among them that are also looked for
    in envelopes: `forwarded`. They write their stories.
    """

    reads_quickly = True
    needs_order = True
    apis: ClassVar[frozenset[str]] = frozenset()
    forwarded: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, stream: TextIO, *, topics: TopicNames) -> None:
        """Write to a stream. `topics` are names from frames."""
        super().__init__(kept_whole=True)
        self._stream = stream
        self._topics = topics
        self.start: float | None = None
        self.end = 0.0
        self.recordings = Recordings()
        # The times of the first and the last frame.
        self._frames: TimeSpan | None = None

    # -- for subclasses ------------------------------------------------------------------------

    def on_request(self, exchange: ObservedExchange) -> None:
        """Add a request to the story when it is sent."""
        raise NotImplementedError

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add a response to the story. Its request may be None."""
        raise NotImplementedError

    def on_unanswered(self, exchange: ObservedExchange) -> None:
        """Add a request that never got a response."""

    def write(self, stream: TextIO) -> None:
        """Write the story."""
        raise NotImplementedError

    @property
    def holes(self) -> list[TimeSpan]:
        """The times between frames of which nothing was recorded."""
        return self.recordings.holes(*self._frames, REST_S) if self._frames else []

    def begin_capture(self, health: Health) -> None:
        """Learn what a capture records."""
        self.recordings.add(health.recorded)

    # -- frames --------------------------------------------------------------------------------

    def keep_request(
        self, frame: RawFrame, body: Message | None, _decoded: Frame | None, /
    ) -> ObservedExchange | None:
        """Add a request; return it to be kept until its response."""
        exchange = self._observed(frame)
        if exchange is not None and exchange.api == _ENVELOPE:
            exchange, body = self._opened(exchange, body)
        if exchange is None:
            return None
        exchange.request = body
        if body is not None:
            self.on_request(exchange)
        return exchange

    def take_response(
        self,
        kept: ObservedExchange | None,
        frame: RawFrame,
        body: Message | None,
        _decoded: Frame | None,
        /,
    ) -> None:
        """Add a response."""
        exchange = kept or self._observed(frame)
        if isinstance(body, EnvelopeResponse):
            api = None if exchange is None else exchange.inner_api
            body = None if api is None else response_inside(body, api)
        if exchange is None or body is None:
            return
        self._note_frame(frame)
        exchange.response_time, exchange.response = frame.time, body
        self.on_response(exchange)

    def weight(self, frame: RawFrame, kept: ObservedExchange, /) -> int:
        """Return the memory that a request with its body takes. Units: bytes."""
        own = super().weight(frame, kept)
        return own if kept.request is None else own + objects_of(kept.request)

    def take_unanswered(self, kept: ObservedExchange, _is_awaited: bool, /) -> None:
        """Add a request that gets no response."""
        self.on_unanswered(kept)

    def finish(self) -> None:
        """Write the story."""
        super().finish()
        self.write(self._stream)
        self._stream.flush()

    def _observed(self, frame: RawFrame) -> ObservedExchange | None:
        self._note_frame(frame)
        name = API_NAMES.get(-1 if frame.api_key is None else frame.api_key, "")
        if name not in self.apis and not (name == _ENVELOPE and self.forwarded):
            return None
        client = frame.request.client_id if frame.request is not None else None
        return ObservedExchange(frame.connection, client or "", name, frame.time)

    def _opened(
        self, exchange: ObservedExchange, body: Message | None
    ) -> tuple[ObservedExchange | None, Message | None]:
        """Return the request in an envelope in its place; None if the story does not need it."""
        inside = None
        if isinstance(body, EnvelopeRequest):
            keys = {key for key, name in API_NAMES.items() if name in self.forwarded}
            inside = request_inside(body, keys)
        if inside is None:
            return None, None
        name, client = API_NAMES[inside.api[0]], inside.client_id or ""
        return replace(exchange, api=name, client_id=client, inner_api=inside.api), inside.body

    def _note_frame(self, frame: RawFrame) -> None:
        self.recordings.note_frame(frame.time, frame.connection)
        self.note_time(frame.time)
        first, last = self._frames or (frame.time, frame.time)
        self._frames = min(first, frame.time), max(last, frame.time)

    def note_time(self, time: float) -> None:
        """Extend the time span of the story to a time. Units: seconds since the epoch."""
        if self.start is None or time < self.start:
            self.start = time
        self.end = max(self.end, time)


def write_json(stream: TextIO, story: Callable[[], dict[str, Any]]) -> None:
    """Write a story as one JSON object on a line."""
    stream.write(printable(json.dumps(story())) + "\n")
