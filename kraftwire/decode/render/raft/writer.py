"""The outputs of `kraftwire decode --raft`: gathers all, and tells the story at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TextIO

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.exchange.paired import Paired
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.pairing.outbox import Ending
from kraftwire.decode.render.raft.forwarded import Api, request_inside, response_inside
from kraftwire.decode.render.raft.json_form import story_to_json
from kraftwire.decode.render.raft.sighting import QUORUM_APIS, Sighting
from kraftwire.decode.render.raft.text import write_story
from kraftwire.decode.render.raft.timeline import Timeline
from kraftwire.decode.run.sinks import HearsEndings
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.printable import printable
from kraftwire.wire.message import Message

__all__ = ["RaftJsonWriter", "RaftWriter"]

_METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that waits for its response; `api` is that of the one in an envelope."""

    body: Message
    time: float
    api: Api | None


class RaftWriter(Paired[_Asked], HearsEndings):
    """Writes the story of a quorum as text."""

    def __init__(
        self, stream: TextIO, *, show_secrets: bool = False, **_options: object
    ) -> None:
        """Write to a stream. Shape: a story has no use for other writers' options."""
        super().__init__()
        self._stream = stream
        self.timeline = Timeline(show_secrets=show_secrets)

    def frame(self, decoded: DecodedFrame) -> None:
        """Take note of a frame; bodies of other APIs are not decoded."""
        frame = decoded.frame
        if frame.api_key is not None and frame.correlation_id is not None:
            body = decoded.body if frame.api_key in QUORUM_APIS else None
            self.take(frame, body, decoded)

    def ask(
        self, frame: Frame, body: Message | None, _decoded: DecodedFrame | None, /
    ) -> _Asked | None:
        """Take note of a request."""
        seen = _sighting(frame, body)
        api = self._unwrap(seen)
        self.timeline.see(seen)
        return None if seen.body is None else _Asked(seen.body, frame.time, api)

    def answer(
        self,
        asked: _Asked | None,
        frame: Frame,
        body: Message | None,
        _decoded: DecodedFrame | None,
        /,
    ) -> None:
        """Take note of a response, and of its request again."""
        seen = _sighting(frame, body)
        self._unwrap(seen)
        if asked is not None:
            seen.request, seen.asked = asked.body, asked.time
            if isinstance(body, EnvelopeResponse) and asked.api is not None:
                seen.body = response_inside(body, asked.api)
        self.timeline.see(seen)

    def unanswered(self, asked: _Asked, _is_awaited: bool, /) -> None:
        """A request without a response has told what it had to tell."""

    def _unwrap(self, seen: Sighting) -> Api | None:
        """Put what is in an envelope in its place; returns what that is."""
        seen.is_forwarded = isinstance(seen.body, EnvelopeRequest | EnvelopeResponse)
        if not isinstance(seen.body, EnvelopeRequest):
            return None
        inside = request_inside(seen.body)
        seen.body, api = inside or (None, None)
        return api

    def ending(self, ending: Ending) -> None:
        """Take note of a connection that ends."""
        self.timeline.see_ending(ending)

    def file_line(self, line: FileLine) -> None:
        """Take note of a batch of a metadata log or snapshot, and whose directory it is."""
        if line.kind is FileKind.META_PROPERTIES:
            node = str(line.json["data"].get("node.id", ""))
            if node.isascii() and node.isdigit():
                self.timeline.see_directory(str(line.json["file"]), int(node))
        if line.batch is None or line.family != _METADATA:
            return
        if line.kind is FileKind.SNAPSHOT:
            self.timeline.see_snapshot_batch(str(line.json["file"]), line.batch)
        else:
            self.timeline.see_batch(line.batch)

    def finish(self) -> None:
        """Write the story."""
        write_story(self.timeline.story(), self._stream)
        self._stream.flush()


def _sighting(frame: Frame, body: Message | None) -> Sighting:
    return Sighting(
        frame.time, frame.connection, frame.api_key or 0, frame.is_request, body,
        frame.correlation_id or 0,
    )


class RaftJsonWriter(RaftWriter):
    """Writes the story of a quorum as one JSON object."""

    def finish(self) -> None:
        """Write the object."""
        self._stream.write(printable(json.dumps(story_to_json(self.timeline.story()))) + "\n")
        self._stream.flush()
