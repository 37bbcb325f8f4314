"""The outputs of `kraftwire story raft`, written at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TextIO

from kraftwire.capture.connections.frame_queue import Ending
from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.exchange.paired import Paired
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.inspect.stories.raft.json_form import story_to_json
from kraftwire.inspect.stories.raft.text import write_story
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.printable import printable
from kraftwire.story.observed_exchange import Api, request_inside, response_inside
from kraftwire.story.raft.clusters import Clusters
from kraftwire.story.raft.model import QUORUM_APIS, Sighting
from kraftwire.story.raft.timeline import Timeline
from kraftwire.wire.message import Message

__all__ = ["RaftJsonWriter", "RaftWriter"]

_METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that awaits its response; `api` is the API of the request in an envelope."""

    body: Message
    time: float
    api: Api | None


class RaftWriter(Paired[_Asked]):
    """Writes the story of each quorum as text."""

    needs_order = True

    def __init__(
        self, stream: TextIO, *, show_secrets: bool = False, **_options: object
    ) -> None:
        """Write to a stream. Options of other writers are ignored."""
        super().__init__()
        self._stream = stream
        self._clusters = Clusters(show_secrets=show_secrets)

    @property
    def timeline(self) -> Timeline:
        """The timeline of the first cluster."""
        return self._clusters.first

    def frame(self, decoded: DecodedFrame) -> None:
        """Add a frame to the story; bodies of other APIs are not decoded."""
        frame = decoded.frame
        if frame.api_key is not None and frame.correlation_id is not None:
            body = decoded.body if frame.api_key in QUORUM_APIS else None
            self.take(frame, body, decoded)

    def unwanted(self, decoded: DecodedFrame, /) -> None:
        """Note that the sender of a frame is alive, though the frame is not wanted."""
        frame = decoded.frame
        if frame.api_key is not None and frame.correlation_id is not None:
            self._clusters.see(_sighting(frame, None))

    def ask(
        self, frame: Frame, body: Message | None, _decoded: DecodedFrame | None, /
    ) -> _Asked | None:
        """Add a request to the story; return what its response needs of it."""
        seen = _sighting(frame, body)
        api = self._unwrap(seen)
        self._clusters.see(seen)
        return None if seen.body is None else _Asked(seen.body, frame.time, api)

    def answer(
        self,
        asked: _Asked | None,
        frame: Frame,
        body: Message | None,
        _decoded: DecodedFrame | None,
        /,
    ) -> None:
        """Add a response to the story, together with its request."""
        seen = _sighting(frame, body)
        self._unwrap(seen)
        if asked is not None:
            seen.request, seen.asked = asked.body, asked.time
            if isinstance(body, EnvelopeResponse) and asked.api is not None:
                seen.body = response_inside(body, asked.api)
        self._clusters.see(seen)

    def unanswered(self, asked: _Asked, _is_awaited: bool, /) -> None:
        """Do nothing: the request was added when it was sent."""

    def _unwrap(self, seen: Sighting) -> Api | None:
        """Replace an envelope's body by the request inside; return the API of that request."""
        seen.is_forwarded = isinstance(seen.body, EnvelopeRequest | EnvelopeResponse)
        if not isinstance(seen.body, EnvelopeRequest):
            return None
        inside = request_inside(seen.body, QUORUM_APIS)
        seen.body = None if inside is None else inside.body
        return None if inside is None else inside.api

    def ending(self, ending: Ending) -> None:
        """Add the end of a connection."""
        self._clusters.see_ending(ending)

    def file_line(self, line: FileLine) -> None:
        """Add a batch of a metadata log or snapshot, or the owner of a log directory."""
        if line.kind is FileKind.META_PROPERTIES:
            data = line.json["data"]
            node = str(data.get("node.id", ""))
            id = int(node) if node.isascii() and node.isdigit() else None
            cluster = str(data.get("cluster.id") or "")
            self._clusters.see_directory(str(line.json["file"]), cluster, id)
        if line.batch is None or line.family != _METADATA:
            return
        file = str(line.json["file"])
        timeline = self._clusters.of_file(file)
        if line.kind is FileKind.SNAPSHOT:
            timeline.see_snapshot_batch(file, line.batch)
        else:
            timeline.see_batch(line.batch)

    def finish(self) -> None:
        """Write the stories, each below its cluster's id if there are several."""
        stories = list(self._clusters.stories())
        for story in stories:
            write_story(story, self._stream, is_one_of_many=len(stories) > 1)
        self._stream.flush()


def _sighting(frame: Frame, body: Message | None) -> Sighting:
    return Sighting(
        frame.time, frame.connection, frame.api_key or 0, frame.is_request, body,
        frame.correlation_id or 0,
    )


class RaftJsonWriter(RaftWriter):
    """Writes the story of each quorum as one JSON object on a line."""

    def finish(self) -> None:
        """Write one JSON object for each story."""
        for story in self._clusters.stories():
            self._stream.write(printable(json.dumps(story_to_json(story))) + "\n")
        self._stream.flush()
