"""Clients, and the histories of what failed for them: the values of the story, and their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from kraftwire.decode.text import duration_text, listed, with_remarks
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.story.clients.parts import Part, Result

Outcome = Literal["open", "done", "refused", "lost", "timed-out", "unanswered", "not-recorded"]
"""What came of a request: `lost` if its connection ended, `timed-out` if the client sent the same
again on a connection that stayed, `unanswered` if others were answered after it, `not-recorded` if
the capture lacks the answer, or what follows."""

HistoryEnding = Literal["done", "duplicate", "appended-twice", "not-again", "open", "not-recorded"]

# Of more tries the first and the last ones are kept.
TRIES_MAX = 10
_LABELS_SHOWN = 4
_NOT_AGAIN = "not sent again in what was recorded"
_BATCH_NOT_AGAIN = "the same batch is not sent again in what was recorded"
_NOT_RECORDED = "what follows is not recorded"
_NO_ANSWER: frozenset[str] = frozenset({"lost", "timed-out", "unanswered"})


@dataclass(slots=True)
class Try:
    """One sending of a request, with the parts of a history in it.

    `server` is the address asked, `node` the broker that has it, or the address. `by_client`: the
    client ended the connection of a `lost` one. `passed_on` says whether a proxy passed it on, None
    without a proxy; `answers` is what the node said, to the proxy or too late.
    Units: seconds since the epoch; `end` is when it was answered, or its connection ended.
    """

    number: int
    time: float
    connection: str
    server: str
    correlation_id: int | None
    node: str = ""
    outcome: Outcome = "open"
    end: float | None = None
    code: int = 0
    by_client: bool | None = None
    passed_on: bool | None = None
    results: dict[Part, Result] = field(default_factory=dict)
    answers: dict[Part, Result] | None = None

    @property
    def error(self) -> str:
        """The name of the error, empty without one."""
        return error_name(self.code) if self.code else ""

    @property
    def failure(self) -> str:
        """The error, or what else came of it, in two words."""
        return failure_name(self.error or self.outcome)

    def failure_text(self) -> str:
        """Say what came of it, in few words."""
        if self.outcome == "refused":
            return self.error
        if self.outcome == "lost":
            server = "the server" if self.passed_on is None else "the proxy"
            who = "the client" if self.by_client else server
            return f"no answer, {who} ends the connection after {self._duration_text()}"
        if self.outcome == "timed-out":
            return f"no answer within {self._duration_text()}"
        return {
            "unanswered": "no answer, although later requests have one",
            "not-recorded": "the answer is not in the capture",
            "open": "no answer when the recording ends",
        }.get(self.outcome, self.outcome)

    def remarks(self, parts: Iterable[Part]) -> list[str]:
        """Say what a proxy and the node did, where the client got another answer, or none."""
        if self.answers is None:
            if self.passed_on is None:
                return []
            return [f"the proxy {'passed it on' if self.passed_on else 'did not pass it on'}"]
        found = {self.answers[each] for each in parts if each in self.answers}
        if found == {self.results[each] for each in parts if each in self.results}:
            return []
        codes = sorted({each.code for each in found})
        if codes != [0]:
            return [f"the node answered {listed(map(error_name, codes))}"]
        offsets = sorted({each.base_offset for each in found} - {-1})
        if not offsets:
            return ["the node had done it"]
        return [f"the node had appended it at offset {listed(offsets[:_LABELS_SHOWN])}"]

    def _duration_text(self) -> str:
        return duration_text(max(0.0, (self.end or self.time) - self.time))


@dataclass(slots=True, eq=False)
class Client:
    """Those who use a client id from one host; they cannot be told apart.

    `software` are name and version as they say in ApiVersions. `unsettled` are the histories that
    have not ended, by API and part. `endings` counts the others, by how they ended.
    """

    id: str
    host: str
    software: str = ""
    requests: int = 0
    failed: int = 0
    sent_again: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    unsettled: dict[str, dict[Part, History]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The client id, or the host of one without."""
        return self.id or self.host


@dataclass(slots=True)
class History:
    """What happened to parts of a request from their first failure on.

    `tries` are those that are kept of all, whose number is `count`. The pauses between the end of
    one and the next are from `shortest` to `longest`. `has_moved` if not all were sent to the same
    node. Units: seconds.
    """

    api: str
    client: Client
    parts: set[Part]
    tries: list[Try]
    count: int = 1
    ending: HistoryEnding | None = None
    shortest: float = 0.0
    longest: float = 0.0
    has_moved: bool = False
    is_on_new_connection: bool = False
    lookups: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def first(self) -> Try:
        """The first try."""
        return self.tries[0]

    @property
    def last(self) -> Try:
        """The last try."""
        return self.tries[-1]

    @property
    def final(self) -> Try:
        """The try that was done, or the last one."""
        return next((each for each in self.tries if each.outcome == "done"), self.last)

    def try_of(self, number: int) -> Try | None:
        """Return the try of a request by its number; None if it is not kept, or there is none."""
        return next((each for each in reversed(self.tries) if each.number == number), None)

    def split(self, parts: set[Part]) -> History:
        """Take parts out, and return a history of these with the same past."""
        self.parts -= parts
        tries = [replace(each) for each in self.tries]
        return replace(self, parts=parts, tries=tries, failures=self.failures.copy())

    def add(self, new: Try) -> None:
        """Add a try."""
        pause = max(0.0, new.time - (self.last.end or self.last.time))
        self.shortest = min(self.shortest, pause) if self.count > 1 else pause
        self.longest = max(self.longest, pause)
        self.has_moved = self.has_moved or new.server != self.last.server
        self.is_on_new_connection = new.connection != self.last.connection
        self.count += 1
        self.tries.append(new)
        if len(self.tries) > TRIES_MAX:
            del self.tries[TRIES_MAX // 2]

    def conclusions(self) -> dict[HistoryEnding, set[Part]]:
        """Say of each part what it means that a try of it was done.

        Source: Kafka's `ProducerStateEntry.findDuplicateBatch`; a broker answers a batch that it
        has already with the first append's offset.
        """
        found: dict[HistoryEnding, set[Part]] = {}
        for part in self.parts:
            found.setdefault(self._conclusion(part), set()).add(part)
        return found

    def _conclusion(self, part: Part) -> HistoryEnding:
        done = self.final.results.get(part)
        if done is None:
            return "done"
        if done.code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return "duplicate"
        for each in self.tries:
            before = (each.answers or {}).get(part)
            if each is not self.final and before and not before.code and before.base_offset >= 0:
                is_same = before.base_offset == done.base_offset
                return "duplicate" if is_same else "appended-twice"
        return "done"

    def labels_text(self) -> str:
        """Return what the request names, the first few of many."""
        labels = sorted({each.label for each in self.parts} - {""})
        more = len(labels) - _LABELS_SHOWN
        shown = listed(labels[:_LABELS_SHOWN]) if labels else ""
        return shown + (f" and {more:,} more" if more > 0 else "")

    def text(self) -> str:
        """Return the history in a sentence."""
        first = self.first
        labels = self.labels_text()
        head = f"{self.api} of {labels}" if labels else self.api
        batches = {each.batch for each in self.parts} - {None}
        remarks = [f"sequence {batch[2]}" for batch in batches if batch and len(batches) == 1]
        failure = with_remarks(first.failure_text(), first.remarks(self.parts))
        text = f"{with_remarks(head, remarks)} to {first.node}: {failure}"
        if self.ending == "open" and self.count == 1:
            return text
        return f"{text}; {self._again_text()}"

    def _again_text(self) -> str:
        if self.count == 1:
            return self._end_text()
        pauses = dict.fromkeys(map(duration_text, (self.shortest, self.longest)))
        after = "at once" if not self.longest else f"after {' to '.join(pauses)}"
        often = "" if self.count == 2 else f" {self.count - 1:,} times, each"
        text = f"sent again{often} {after}"
        if self.has_moved:
            text += f" to {self.last.node}"
        elif self.is_on_new_connection:
            text += " on a new connection"
        between = Counter[str]()
        for failure, count in self.failures.items():
            between[failure_name(failure)] += count
        between[self.first.failure] -= 1
        between[self.final.failure] -= self.ending == "not-again"
        remarks = [f"{name} {count:,}" for name, count in (+between).items()]
        remarks += ["FindCoordinator in between"] if self.lookups else []
        return f"{with_remarks(text, remarks)}: {self._ending_text()}"

    def _ending_text(self) -> str:
        final = self.final
        took = duration_text(max(0.0, (final.end or final.time) - self.first.time))
        offsets = sorted({each.base_offset for each in final.results.values()} - {-1})
        at = f" (offset {listed(offsets[:_LABELS_SHOWN])})" if offsets else ""
        if self.ending == "done":
            return f"done, {took} after the first try"
        if self.ending == "duplicate":
            return f"a duplicate that the node recognises{at}, {took} after the first try"
        if self.ending == "appended-twice":
            return f"appended a second time{at}, {took} after the first try"
        if self.ending == "not-recorded":
            return _NOT_RECORDED
        text = final.failure_text()
        return text if self.ending == "open" else f"{text}; {self._end_text()}"

    def _end_text(self) -> str:
        if self.ending == "not-recorded":
            return _NOT_RECORDED
        return _BATCH_NOT_AGAIN if self.api == "Produce" else _NOT_AGAIN


def failure_name(failure: str) -> str:
    """Return the name of an error, or of an outcome for people."""
    return "no answer" if failure in _NO_ANSWER else failure

