"""The story of clients in print: for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TextIO

from kraftwire import messages
from kraftwire.capture.framing.frames import Ending
from kraftwire.capture.recorded import Recordings
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.text import GREEN, RED, YELLOW, count_text, duration_text
from kraftwire.inspect.attributes_json import attributes_to_json
from kraftwire.inspect.stories.writer import StoryWriter
from kraftwire.inspect.tables import Table
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.clients.model import Client, History, Try
from kraftwire.story.clients.parts import Part, Result
from kraftwire.story.clients.story import ClientStory
from kraftwire.story.observed_exchange import ObservedExchange

_ENDINGS = ("done", "duplicate", "appended-twice", "not-again", "open")


def _clients(clients: list[Client]) -> Table:
    head = (
        "client", "host", "software", "requests", "failed", "sent again", "done", "duplicates",
        "appended twice", "not again", "open",
    )  # fmt: skip
    table = Table("Clients", head, right=range(3, 11), names=(0, 1), optional=(2,))
    for each in clients:
        counts = (each.requests, each.failed, each.sent_again)
        ended = [each.endings[ending] for ending in _ENDINGS]
        # What is done includes duplicates, and what was appended twice.
        ended[0] += ended[1] + ended[2]
        shown = [f"{n:,}" if n else "" for n in (*counts, *ended)]
        table.rows.append((each.id, each.host, each.software, *shown))
    return table


def _failures(histories: list[History]) -> Table:
    head = ("client", "API", "first failure", "times", "tries", "done", "longest")
    table = Table("What failed, most often first", head, right=range(3, 7), names=(0, 2))
    rows: dict[tuple[str, str, str], list[History]] = {}
    for each in histories:
        key = each.client.name, each.api, each.first.failure
        rows.setdefault(key, []).append(each)
    for key, group in sorted(rows.items(), key=lambda row: (-len(row[1]), row[0])):
        done = sum(each.ending in _ENDINGS[:3] for each in group)
        took = max((each.final.end or each.final.time) - each.first.time for each in group)
        tries = sum(each.count for each in group)
        counts = (f"{len(group):,}", f"{tries:,}", f"{done:,}" if done else "")
        table.rows.append((*key, *counts, duration_text(max(0.0, took))))
    return table


def _part(part: Part, result: Result | None = None) -> dict[str, Any]:
    json = dict(part.names)
    if part.batch is not None:
        json |= zip(("producerId", "producerEpoch", "baseSequence"), part.batch, strict=True)
    if result is not None:
        json["error"] = error_name(result.code)
        json["baseOffset"] = result.base_offset if result.base_offset >= 0 else None
    return json


def _parts(found: dict[Part, Result] | None) -> list[dict[str, Any]] | None:
    return None if found is None else [_part(*each) for each in found.items()]


def _try(each: Try) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "time end node connection correlationId outcome error? byClient passedOn results answers",
        results=_parts(each.results),
        answers=_parts(each.answers),
    )


def _history(each: History) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "client host api parts ending count shortestPause=shortest longestPause=longest hasMoved "
        "findCoordinator=lookups failures tries",
        client=each.client.id,
        host=each.client.host,
        parts=[_part(part) for part in sorted(each.parts, key=str)],
        tries=[_try(one) for one in each.tries],
    )


class ClientsWriter(StoryWriter):
    """Writes the story of clients."""

    apis = frozenset(messages.API_NAMES.values())
    takes_files = False
    takes_passed_on = True
    title = "Clients"
    noun = "client"
    styles: ClassVar = {
        "appended-twice": RED, "done": GREEN, "duplicate": GREEN, "error": RED, "not-again": RED,
        "open": YELLOW,
    }  # fmt: skip
    event_keys = "time kind client=subject text details count last"
    rows_max = 200

    def __init__(self, stream: TextIO, *, topics: TopicNames, as_json: bool = False) -> None:
        """Write to a stream. `topics` are names from frames."""
        recordings = Recordings()
        self.story = ClientStory(topics, recordings)
        super().__init__(stream, self.story, recordings, as_json=as_json)
        self.story.passed_on = self.passed_on
        self._is_wanted = True
        # The direction of the frame that is taken; empty at the end.
        self._direction = ""

    def frame(self, frame: Frame) -> None:
        """Take the next frame."""
        self._direction = frame.direction
        super().frame(frame)
        self._direction = ""

    def unwanted(self, frame: Frame) -> None:
        """Take a frame that may continue what others began."""
        self._is_wanted = False
        self.frame(frame)
        self._is_wanted = True

    def ending(self, ending: Ending) -> None:
        """Take the end of a connection."""
        self.story.on_ending(ending)

    def keep_request(self, frame: Frame, /) -> Frame | None:
        """Add a request; return it to be kept until its response."""
        self._note_frame(frame)
        wanted = self._wanted(frame)
        if wanted is not None and wanted.body is not None:
            self.story.on_request(ObservedExchange(wanted, None), is_wanted=self._is_wanted)
        return wanted

    def take_response(self, request: Frame | None, response: Frame, /) -> None:
        """Add a response, also one whose body is not known."""
        self._note_frame(response)
        if request is not None:
            self.story.on_response(ObservedExchange(request, response))

    def take_unanswered(self, request: Frame, is_awaited: bool, /) -> None:
        """Add that a request gets no answer.

        A response has passed over it, or it makes room for another one; at the end it waits.
        """
        exchange = ObservedExchange(request, None)
        if self._direction or exchange.is_response_lost:
            is_passed_over = is_awaited and self._direction == "response"
            self.story.on_unanswered(exchange, is_awaited=is_passed_over)

    @property
    def count(self) -> int:
        """How many clients there were."""
        return len(self._shown)

    @property
    def _shown(self) -> list[Client]:
        """The clients that sent what was wanted."""
        return [each for each in self.story.clients.values() if each.requests]

    @property
    def overflow_text(self) -> str:
        """The number of requests that were left out."""
        count = self.story.overflow
        return f"More failed than is kept: {count_text(count, 'request')}." if count else ""

    def tables(self) -> Sequence[Table]:
        """Return the clients, and what failed."""
        clients = sorted(self._shown, key=lambda each: (each.id, each.host))
        return _clients(clients), _failures(self.story.histories)

    def rows_to_json(self) -> dict[str, Any]:
        """Return the clients, and what happened to requests that failed."""
        keys = "id? host software? requests failed sentAgain endings"
        return {
            "clients": [attributes_to_json(each, keys) for each in self._shown],
            "requests": [_history(each) for each in self.story.histories],
        }
