"""The outputs of `kraftwire decode --raft`: gathers all, and tells the story at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TextIO

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.pairing.outbox import Ending
from kraftwire.decode.render.pending import Pending
from kraftwire.decode.render.raft.forwarded import Api, request_inside, response_inside
from kraftwire.decode.render.raft.json_form import story_to_json
from kraftwire.decode.render.raft.sighting import QUORUM_APIS, Sighting
from kraftwire.decode.render.raft.text import write_story
from kraftwire.decode.render.raft.timeline import Timeline
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.wire.message import Message

__all__ = ["RaftJsonWriter", "RaftWriter"]

_METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that waits for its response; `api` is that of the one in an envelope."""

    body: Message
    time: float
    api: Api | None


class RaftWriter:
    """Writes the story of a quorum as text."""

    shows_exchanges = True

    def __init__(
        self, stream: TextIO, *, show_secrets: bool = False, **_options: object
    ) -> None:
        """Write to a stream. Shape: a story has no use for other writers' options."""
        self._stream = stream
        self.timeline = Timeline(show_secrets=show_secrets)
        self._pending: Pending[_Asked] = Pending()

    def frame(self, decoded: DecodedFrame) -> None:
        """Take note of a frame."""
        frame = decoded.frame
        if frame.api_key is None or frame.correlation_id is None:
            return
        body = decoded.body if frame.api_key in QUORUM_APIS else None
        seen = Sighting(
            frame.time, frame.connection, frame.api_key, frame.is_request, body,
            frame.correlation_id,
        )
        api = self._unwrap(seen)
        if frame.is_request:
            if seen.body is not None and frame.request is not None:
                asked = _Asked(seen.body, frame.time, api)
                self._pending.add(frame.connection, frame.request, asked)
        elif frame.request is not None:
            found = self._pending.take(frame.connection, frame.request)
            self._pending.skipped()  # forget them
            if found is not None:
                seen.request, seen.asked = found.body, found.time
                if isinstance(body, EnvelopeResponse) and found.api is not None:
                    seen.body = response_inside(body, found.api)
        self.timeline.see(seen)

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


class RaftJsonWriter(RaftWriter):
    """Writes the story of a quorum as one JSON object."""

    def finish(self) -> None:
        """Write the object."""
        self._stream.write(json.dumps(story_to_json(self.timeline.story())) + "\n")
        self._stream.flush()
