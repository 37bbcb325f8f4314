"""The base class of the stories of exchanges: feeds a story, prints it at the end."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, TextIO

from kraftwire.capture.framing.health import Health
from kraftwire.capture.recorded import REST_S, Recordings, TimeSpan
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.limits import objects_of
from kraftwire.decode.sinks import ExchangeSink
from kraftwire.decode.text import count_text
from kraftwire.inspect.attributes_json import attributes_to_json
from kraftwire.inspect.stories.text import event_lines, head_line, spans_to_json, write_lines
from kraftwire.inspect.tables import Table, wants_colour, width_of, write_table
from kraftwire.printable import printable
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.story.events import Events
from kraftwire.story.observed_exchange import ObservedExchange


class ExchangeStory(Protocol):
    """A story that is told from requests and responses."""

    events: Events

    def on_request(self, exchange: ObservedExchange) -> None:
        """Add a request when it is sent."""

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add a response. Its request may be None."""

    def finish(self, holes: Sequence[TimeSpan]) -> None:
        """Add what is known only at the end, and the times of which nothing was recorded."""


class StoryWriter(ExchangeSink[Frame]):
    """Passes requests and responses to a story, and writes the story at the end.

    Subclasses name the `apis` whose bodies they need, and those among them that are also looked for
    in envelopes: `forwarded`. Their stories are about subjects of one `noun`; `styles` are the
    colours of kinds of events, and `event_keys` the keys of their JSON form.
    """

    takes_bodies = True
    needs_order = True
    apis: ClassVar[frozenset[str]] = frozenset()
    forwarded: ClassVar[frozenset[str]] = frozenset()
    title: ClassVar[str]
    noun: ClassVar[str]
    styles: ClassVar[dict[str, str]]
    event_keys: ClassVar[str]
    rows_max: ClassVar[int | None] = None
    # Whether the story needs what a proxy passes on, besides what its clients exchange with it.
    takes_passed_on: ClassVar[bool] = False

    def __init__(
        self, stream: TextIO, story: ExchangeStory, recordings: Recordings, *, as_json: bool
    ) -> None:
        """Write to a stream, as text or as one JSON object."""
        super().__init__(kept_whole=True)
        self._stream = stream
        self._story = story
        self._as_json = as_json
        self._start: float | None = None
        self.end = 0.0
        self.recordings = recordings
        # Connections of a proxy to nodes, each with that of the client.
        self.passed_on: ChainMap[str, str] = ChainMap()
        # The times of the first and the last frame.
        self._frames: TimeSpan | None = None

    # -- for subclasses ------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many subjects the story has."""
        raise NotImplementedError

    @property
    def overflow_text(self) -> str:
        """What was left out because of limits; empty if nothing was."""
        raise NotImplementedError

    def tables(self) -> Sequence[Table]:
        """Return the tables below the events; those without rows are not shown."""
        raise NotImplementedError

    def rows_to_json(self) -> dict[str, Any]:
        """Return the rows of the JSON form, by their kind."""
        raise NotImplementedError

    @property
    def start(self) -> float:
        """When the story begins, in seconds since the epoch."""
        return self._start or self.end

    def begin_capture(self, health: Health) -> None:
        """Learn what a capture records, and which connections are a proxy's."""
        self.recordings.add(health.recorded)
        self.passed_on.maps.append(health.passed_on)

    # -- frames --------------------------------------------------------------------------------

    def keep_request(self, frame: Frame, /) -> Frame | None:
        """Add a request; return it to be kept until its response."""
        self._note_frame(frame)
        wanted = self._wanted(frame)
        if wanted is not None and wanted.body is not None:
            self._story.on_request(ObservedExchange(wanted, None))
        return wanted

    def take_response(self, request: Frame | None, response: Frame, /) -> None:
        """Add a response."""
        if request is None:
            self._note_frame(response)
        wanted = self._wanted(response)
        if wanted is None or wanted.body is None:
            return
        self._note_frame(response)
        self._story.on_response(ObservedExchange(request, wanted))

    def weight(self, frame: Frame, kept: Frame, /) -> int:
        """Return the memory that a request with its body takes. Units: bytes."""
        own = super().weight(frame, kept)
        return own if kept.body is None else own + objects_of(kept.body)

    def take_unanswered(self, request: Frame, _is_awaited: bool, /) -> None:
        """Do nothing: the request was added when it was sent."""

    def finish(self) -> None:
        """Write the story."""
        super().finish()
        holes = self.recordings.holes(*self._frames, REST_S) if self._frames else []
        self._story.finish(holes)
        if self._as_json:
            self._stream.write(printable(json.dumps(self._to_json())) + "\n")
        else:
            self._write_text()
        self._stream.flush()

    def _to_json(self) -> dict[str, Any]:
        events = self._story.events
        return {
            "start": self.start,
            "end": self.end,
            "notRecorded": spans_to_json(events.not_recorded),
            "events": [attributes_to_json(each, self.event_keys) for each in events.in_order()],
            "eventOverflow": events.overflow,
            **self.rows_to_json(),
        }

    def _write_text(self) -> None:
        stream, events = self._stream, self._story.events
        is_coloured, width = wants_colour(stream), width_of(stream)
        if not self.count:
            write_lines(stream, [f"{self.title}: none was seen"])
            return
        head = head_line(self.title, self.start, self.end, events, is_coloured=is_coloured)
        write_lines(stream, [f"{head}; {count_text(self.count, self.noun)}", ""])
        lines = event_lines(
            events.in_order(), self.start, width=width, overflow=events.overflow,
            styles=self.styles if is_coloured else None,
        )
        if lines:
            write_lines(stream, [*lines, ""])
        for table in self.tables():
            if table.rows:
                write_table(table, stream, width, rows_max=self.rows_max)
        if self.overflow_text:
            write_lines(stream, [self.overflow_text])

    def _wanted(self, frame: Frame) -> Frame | None:
        """Return the frame, or what is in an envelope, if the story needs it and can read it."""
        if frame.connection in self.passed_on and not self.takes_passed_on:
            return None
        inside, apis = frame, self.apis
        if frame.ordinary is None and frame.api_key == ApiKey.ENVELOPE:
            if frame.inner is None:
                return None
            inside, apis = frame.inner, self.forwarded
        return inside if inside.api_name in apis else None

    def _note_frame(self, frame: Frame) -> None:
        self.recordings.note_frame(frame.time, frame.connection)
        self.note_time(frame.time)
        first, last = self._frames or (frame.time, frame.time)
        self._frames = min(first, frame.time), max(last, frame.time)

    def note_time(self, time: float) -> None:
        """Extend the time span of the story to a time. Units: seconds since the epoch."""
        if self._start is None or time < self._start:
            self._start = time
        self.end = max(self.end, time)

