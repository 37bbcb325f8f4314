"""The base class of writers of stories: pairs requests with responses and finds the time span."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TextIO

from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.size_limits import objects_of
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.exchange.paired import QuickPaired
from kraftwire.messages import API_NAMES
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.printable import printable
from kraftwire.story.observed_exchange import Talk, request_inside, response_inside
from kraftwire.wire.message import Message

__all__ = ["StoryWriter", "write_json"]


_ENVELOPE = "Envelope"


class StoryWriter(QuickPaired[Talk]):
    """Passes requests and responses to a story, and writes the story at the end.

    Subclasses name the `apis` whose bodies they need, and those among them that are also looked for
    in envelopes: `forwarded`. They write their stories.
    """

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

    # -- for subclasses ------------------------------------------------------------------------

    def see_request(self, talk: Talk) -> None:
        """Add a request to the story when it is sent."""
        raise NotImplementedError

    def see_response(self, talk: Talk) -> None:
        """Add a response to the story. Its request may be None."""
        raise NotImplementedError

    def see_unanswered(self, talk: Talk) -> None:
        """Add a request that never got a response."""

    def write(self, stream: TextIO) -> None:
        """Write the story."""
        raise NotImplementedError

    # -- frames --------------------------------------------------------------------------------

    def ask(
        self, frame: Frame, body: Message | None, _decoded: DecodedFrame | None, /
    ) -> Talk | None:
        """Add a request; return it to be kept until its response."""
        talk = self._talk(frame)
        if talk is not None and talk.api == _ENVELOPE:
            talk, body = self._opened(talk, body)
        if talk is None:
            return None
        talk.request = body
        if body is not None:
            self.see_request(talk)
        return talk

    def answer(
        self,
        asked: Talk | None,
        frame: Frame,
        body: Message | None,
        _decoded: DecodedFrame | None,
        /,
    ) -> None:
        """Add a response."""
        talk = asked or self._talk(frame)
        if isinstance(body, EnvelopeResponse):
            api = None if talk is None else talk.inside
            body = None if api is None else response_inside(body, api)
        if talk is None or body is None:
            return
        self.note_time(frame.time)
        talk.answered, talk.response = frame.time, body
        self.see_response(talk)

    def weight(self, frame: Frame, kept: Talk | None, /) -> int:
        """Return the memory that a request with its body takes. Units: bytes."""
        own = super().weight(frame, kept)
        return own if kept is None or kept.request is None else own + objects_of(kept.request)

    def unanswered(self, asked: Talk, _is_awaited: bool, /) -> None:
        """Add a request that gets no response."""
        self.see_unanswered(asked)

    def finish(self) -> None:
        """Write the story."""
        super().finish()
        self.write(self._stream)
        self._stream.flush()

    def _talk(self, frame: Frame) -> Talk | None:
        self.note_time(frame.time)
        name = API_NAMES.get(-1 if frame.api_key is None else frame.api_key, "")
        if name not in self.apis and not (name == _ENVELOPE and self.forwarded):
            return None
        client = frame.request.client_id if frame.request is not None else None
        return Talk(frame.connection, client or "", name, frame.time)

    def _opened(self, talk: Talk, body: Message | None) -> tuple[Talk | None, Message | None]:
        """Return the request in an envelope in its place; None if the story does not need it."""
        inside = None
        if isinstance(body, EnvelopeRequest):
            keys = {key for key, name in API_NAMES.items() if name in self.forwarded}
            inside = request_inside(body, keys)
        if inside is None:
            return None, None
        name, client = API_NAMES[inside.api[0]], inside.client_id or ""
        return replace(talk, api=name, client_id=client, inside=inside.api), inside.body

    def note_time(self, time: float) -> None:
        """Extend the time span of the story to a time. Units: seconds since the epoch."""
        if self.start is None or time < self.start:
            self.start = time
        self.end = max(self.end, time)


def write_json(stream: TextIO, story: Callable[[], dict[str, Any]]) -> None:
    """Write a story as one JSON object on a line."""
    stream.write(printable(json.dumps(story())) + "\n")
