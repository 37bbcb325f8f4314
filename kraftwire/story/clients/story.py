"""The story of clients: finds out what failed, what was sent again, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from kraftwire.capture.framing.frames import Ending
from kraftwire.capture.recorded import REST_S, Recordings, TimeSpan
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.exchange import is_held_for_members
from kraftwire.protocol.endpoint import address_text
from kraftwire.protocol.entities import GROUP, TRANSACTIONAL_ID
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.story.clients.model import Client, History, HistoryEnding, Outcome, Try
from kraftwire.story.clients.parts import Part, Result, request_parts, results_of
from kraftwire.story.events import Event, Events
from kraftwire.story.observed_exchange import ObservedExchange

# Clients, addresses of nodes, parts of histories that have not ended, and tries of parts that are
# kept of those that have.
CLIENTS_MAX = 20_000
NODES_MAX = 20_000
PARTS_MAX = 20_000
TRIES_KEPT_MAX = 100_000

# Answers with these are steps of a protocol, not failures.
_STEPS = {
    ("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS),
    ("JoinGroup", ErrorCode.MEMBER_ID_REQUIRED),
    ("SyncGroup", ErrorCode.REBALANCE_IN_PROGRESS),
}
# Codes with which a client looks for another coordinator.
_MOVED = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
# No client sends batches again sooner while the connection stays.
_TIMEOUT_S = 0.2
# A client that ends a connection may leave these open, unless it has waited for too long.
_LEFT_OPEN = {"ApiVersions", "Fetch", "FindCoordinator", "Metadata", "ShareFetch"}
# An answer that takes longer is late; a Fetch may also wait for records.
_ANSWER_S = 1.0
# The type of the endpoints in an answer to DescribeCluster.
_CONTROLLERS = 2
_LOCAL = {"localhost": ("127.0.0.1", "::1")}


class _Sent:
    """A request without an answer so far.

    `again` are the parts of it that failed before. Of a request that a proxy has `passed_on`,
    `node_results` is what the node answered.
    """

    __slots__ = (
        "again", "client", "exchange", "is_timed_out", "is_wanted", "node_results", "number",
        "passed_on",
    )  # fmt: skip

    def __init__(
        self, exchange: ObservedExchange, client: Client, number: int, *, is_wanted: bool
    ) -> None:
        self.exchange = exchange
        self.client = client
        self.number = number
        self.is_wanted = is_wanted
        self.again: set[Part] = set()
        self.passed_on = self.is_timed_out = False
        self.node_results: dict[Part, Result] | None = None

    @property
    def time(self) -> float:
        """When it was sent."""
        return self.exchange.request_time


class _Fate(NamedTuple):
    """What came of a request, as in `Try`."""

    outcome: Outcome
    end: float | None
    code: int = 0
    by_client: bool | None = None

    @property
    def is_failure(self) -> bool:
        """Whether it may have to be sent again."""
        return self.outcome not in ("done", "not-recorded")


class ClientStory:
    """Gathers the story of all clients.

    Order: requests, responses and ends of connections as they come, then `finish` once.
    `passed_on` has connections of a proxy to nodes, each with the client's connection; they may
    grow while frames come.
    """

    def __init__(self, names: TopicNames, recordings: Recordings | None = None) -> None:
        """Begin a story. `recordings` are those of the exchanges, and grow while these come."""
        self.events = Events()
        self.clients: dict[tuple[str, str], Client] = {}
        self.histories: list[History] = []
        self.overflow = 0
        self.passed_on: Mapping[str, str] = {}
        self._names = names
        self._recordings = recordings or Recordings()
        # Connection -> requests without an answer so far, by correlation id.
        self._open: dict[str, dict[int | None, _Sent]] = {}
        # Client -> those of them that are Produce, the oldest first, by number.
        self._produces: dict[Client, dict[int, _Sent]] = {}
        # Connections whose requests a proxy passes on.
        self._proxied: set[str] = set()
        self._nodes: dict[str, str] = {}
        self._parts = 0
        self._kept = 0
        self._sent = 0
        self._latest = 0.0

    # -- what is seen --------------------------------------------------------------------------

    def on_request(self, exchange: ObservedExchange, *, is_wanted: bool = True) -> None:
        """Add a request; one that is not wanted only continues a history."""
        self._pass_to(exchange.request_time)
        if exchange.first.connection in self.passed_on:
            passed = self._passed(exchange)
            if passed is not None:
                passed.passed_on = True
                self._proxied.add(passed.exchange.first.connection)
            return
        client = self._client(exchange)
        if client is None:
            return
        if exchange.api == "ApiVersions":
            _note_software(client, exchange.request_body)
        client.requests += is_wanted
        self._sent += 1
        sent = _Sent(exchange, client, self._sent, is_wanted=is_wanted)
        self._open.setdefault(exchange.first.connection, {})[exchange.correlation_id] = sent
        if exchange.api == "FindCoordinator":
            self._note_lookup(client, request_parts(exchange, self._names))
        if exchange.api == "Produce":
            self._time_out(sent)
            self._produces.setdefault(client, {})[sent.number] = sent
        unsettled = client.unsettled.get(exchange.api)
        if unsettled:
            parts = [each for each in request_parts(exchange, self._names) if each in unsettled]
            self._continue(sent, parts)

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add a response, which may lack its body."""
        self._pass_to(exchange.response_time)
        connection = exchange.first.connection
        if connection in self.passed_on:
            passed = self._passed(exchange)
            if passed is not None and exchange.response_body is not None:
                parts = request_parts(passed.exchange, self._names)
                passed.node_results = results_of(exchange, parts, self._names)
            return
        if exchange.response_body is not None:
            self._learn_nodes(exchange)
        sent = self._take(exchange)
        if sent is None:
            return
        if sent.is_timed_out:
            self._note_late(sent, exchange)
        elif exchange.response_body is None:
            self._settle(sent, _Fate("not-recorded", exchange.response_time))
        elif exchange.error_codes or sent.client.unsettled.get(exchange.api):
            self._judge(sent, exchange)

    def on_unanswered(self, exchange: ObservedExchange, *, is_awaited: bool) -> None:
        """Add that a request got no answer: it wants none, or later ones were answered."""
        sent = self._take(exchange)
        if sent is not None and not sent.is_timed_out:
            is_known = is_awaited and not exchange.is_response_lost
            self._settle(sent, _Fate("unanswered" if is_known else "not-recorded", self._latest))

    def on_ending(self, ending: Ending) -> None:
        """Add the end of a connection, with which the answers to its requests are lost."""
        for sent in self._open.pop(ending.connection, {}).values():
            self._produces.get(sent.client, {}).pop(sent.number, None)
            time = ending.time_ns / 1_000_000_000
            if ending.is_by_client and sent.exchange.api in _LEFT_OPEN:
                sent.is_wanted &= _is_late(sent, time)
            if not sent.is_timed_out:
                self._settle(sent, _Fate("lost", time, by_client=ending.is_by_client))
        self._proxied.discard(ending.connection)

    def finish(self, holes: Sequence[TimeSpan]) -> None:
        """End what has not ended, and add the times of which nothing was recorded."""
        for sents in self._open.values():
            for sent in sents.values():
                if not sent.is_timed_out and (sent.again or _is_late(sent, self._latest)):
                    self._settle(sent, _Fate("open", None))
        self._end_all("not-again")
        self.events.note_holes(holes)

    # -- histories -----------------------------------------------------------------------------

    def _judge(self, sent: _Sent, exchange: ObservedExchange) -> None:
        """Take an answer apart: parts that failed, and parts that are done now."""
        unsettled = sent.client.unsettled.get(exchange.api, {})
        parts = request_parts(sent.exchange, self._names)
        found = results_of(exchange, parts, self._names)
        # An answer may be about parts that the request did not list: those of a session.
        self._continue(sent, [each for each in found if each in unsettled])
        by_code: dict[int, dict[Part, Result]] = {}
        for part, result in found.items():
            if part in sent.again or part not in unsettled:
                code = 0 if (exchange.api, result.code) in _STEPS else result.code
                by_code.setdefault(code, {})[part] = result
        for code, results in by_code.items():
            is_done = code in (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
            outcome: Outcome = "done" if is_done else "refused"
            self._settle(sent, _Fate(outcome, exchange.response_time, code), results)

    def _time_out(self, new: _Sent) -> None:
        """Note requests without an answer so far whose batches a Produce has again."""
        waiting = self._produces.get(new.client, {})
        late = list(takewhile(lambda sent: new.time - sent.time > _TIMEOUT_S, waiting.values()))
        parts = set(request_parts(new.exchange, self._names)) if late else set()
        for sent in late:
            if not parts.isdisjoint(request_parts(sent.exchange, self._names)):
                self._settle(sent, _Fate("timed-out", new.time))
                sent.is_timed_out = True
                del waiting[sent.number]

    def _note_late(self, sent: _Sent, exchange: ObservedExchange) -> None:
        """Note the answer to a request that was sent again before it came."""
        if exchange.response_body is None:
            return
        parts = request_parts(sent.exchange, self._names)
        found = results_of(exchange, parts, self._names)
        unsettled = sent.client.unsettled.get(exchange.api, {})
        for history, _ in _by_history([p for p in parts if p in unsettled], unsettled):
            one = history.try_of(sent.number)
            if one is not None:
                one.answers = _of_parts(found, history)

    def _continue(self, sent: _Sent, parts: Sequence[Part]) -> None:
        """Add a request to the histories of parts that it sends again."""
        unsettled = sent.client.unsettled.get(sent.exchange.api, {})
        more = [part for part in parts if part not in sent.again]
        for history, again in _by_history(more, unsettled):
            last = history.last
            if (last.end or last.time) <= sent.time:
                sent.again |= again
                self._split(history, again).add(self._try(sent))

    def _settle(
        self, sent: _Sent, fate: _Fate, results: dict[Part, Result] | None = None
    ) -> None:
        """Note what came of a request, for the parts of its `results` or for all."""
        unsettled = sent.client.unsettled.setdefault(sent.exchange.api, {})
        parts = list(sent.again if results is None else results)
        again = [part for part in parts if part in sent.again and part in unsettled]
        settled = [self._split(*each) for each in _by_history(again, unsettled)]
        if fate.is_failure and sent.is_wanted:
            if results is None:
                parts = request_parts(sent.exchange, self._names)
            settled += self._begin(sent, {part for part in parts if part not in unsettled})
        for history in settled:
            one = history.try_of(sent.number)
            if one is None:
                continue
            one.outcome, one.end, one.code, one.by_client = fate
            one.results = _of_parts(results or {}, history)
            if sent.exchange.first.connection in self._proxied:
                one.passed_on = sent.passed_on
            if sent.node_results is not None:
                one.answers = _of_parts(sent.node_results, history)
            history.failures[one.error or one.outcome] += fate.is_failure
            if fate.outcome == "done":
                for ending, part in history.conclusions().items():
                    self._end(self._split(history, part), ending)
            elif fate.outcome in ("not-recorded", "open"):
                self._end(history, fate.outcome)

    def _begin(self, sent: _Sent, parts: set[Part]) -> list[History]:
        """Return the history of parts that fail for the first time; none beyond the limit."""
        if not parts:
            return []
        if self._parts + len(parts) > PARTS_MAX:
            self.overflow += 1
            return []
        self._parts += len(parts)
        history = History(sent.exchange.api, sent.client, parts, [self._try(sent)])
        sent.client.unsettled[sent.exchange.api].update(dict.fromkeys(parts, history))
        return [history]

    def _split(self, history: History, parts: set[Part]) -> History:
        """Return the history of these parts alone."""
        left = len(history.parts) - len(parts)
        if not left:
            return history
        rest = history.parts - parts if left == 1 else set()
        if rest and not any(each.names for each in rest):
            # Only the session is left, which its partitions have moved out of.
            self._forget(history, rest)
            history.parts -= rest
            return history
        found = history.split(parts)
        history.client.unsettled[history.api].update(dict.fromkeys(parts, found))
        return found

    def _forget(self, history: History, parts: set[Part]) -> None:
        unsettled = history.client.unsettled[history.api]
        for each in parts:
            unsettled.pop(each, None)
        self._parts -= len(parts)

    def _end(self, history: History, ending: HistoryEnding) -> None:
        """Report a history whose end is known, or that cannot be followed any more."""
        self._forget(history, history.parts)
        first, client = history.first, history.client
        history.ending = ending
        for one in history.tries:
            one.node = self._nodes.get(one.server, one.server)
        client.failed += 1
        client.sent_again += history.count > 1
        client.endings[ending] += 1
        weight = len(history.parts) * len(history.tries)
        if self._kept + weight <= TRIES_KEPT_MAX:
            self._kept += weight
            self.histories.append(history)
        is_remark = ending == "not-again" and history.count == 1 and first.outcome == "refused"
        details = {"api": history.api, "tries": history.count, "error": first.error or None}
        kind = "error" if is_remark else ending
        self.events.add(Event(first.time, kind, client.name, history.text(), details=details))

    def _end_all(self, ending: HistoryEnding) -> None:
        """End all histories, as nothing more of them is recorded."""
        left = [
            history
            for client in self.clients.values()
            for unsettled in client.unsettled.values()
            for history, _ in _by_history(unsettled, unsettled)
        ]
        for history in sorted(left, key=lambda each: each.first.time):
            self._end(history, ending)

    def _try(self, sent: _Sent) -> Try:
        first = sent.exchange.first
        return Try(sent.number, sent.time, first.connection, first.server, first.correlation_id)

    # -- beside histories ----------------------------------------------------------------------

    def _client(self, exchange: ObservedExchange) -> Client | None:
        """Return the client that sends a request; None beyond the limit."""
        connection = exchange.first.connection
        host = connection.partition("-")[0].rpartition(":")[0]
        key = exchange.client_id, host
        if key not in self.clients:
            if len(self.clients) >= CLIENTS_MAX:
                self.overflow += 1
                return None
            self.clients[key] = Client(*key)
        return self.clients[key]

    def _take(self, exchange: ObservedExchange) -> _Sent | None:
        """Return a request that waits no longer; None if it is not known."""
        connection = exchange.first.connection
        sents = self._open.get(connection, {})
        sent = sents.pop(exchange.correlation_id, None)
        if sent is not None:
            if not sents:
                del self._open[connection]
            self._produces.get(sent.client, {}).pop(sent.number, None)
        return sent

    def _passed(self, exchange: ObservedExchange) -> _Sent | None:
        """Return the client's request that a proxy passes on, or whose answer it gets."""
        came_on = self.passed_on.get(exchange.first.connection, "")
        return self._open.get(came_on, {}).get(exchange.correlation_id)

    def _note_lookup(self, client: Client, sought: list[Part]) -> None:
        """Note that a client looks for a coordinator, after one refused requests as it is none."""
        names = {value for part in sought for _, value in part.names}
        for api, unsettled in client.unsettled.items():
            for part, history in () if api == "FindCoordinator" else unsettled.items():
                named = {v for kind, v in part.names if kind in (GROUP, TRANSACTIONAL_ID)}
                if named & names and history.last.code in _MOVED:
                    history.lookups += 1

    def _learn_nodes(self, exchange: ObservedExchange) -> None:
        """Note the addresses of brokers and controllers in answers."""
        body = exchange.response_body
        role = "controller" if getattr(body, "endpoint_type", 0) == _CONTROLLERS else "broker"
        found: list[Any] = []
        if exchange.api in ("DescribeCluster", "Metadata"):
            found = body.brokers
        elif exchange.api == "FindCoordinator":
            found = body.coordinators or [body]
        for each in found:
            id = getattr(each, "broker_id", getattr(each, "node_id", -1))
            if each.host and id >= 0 and len(self._nodes) < NODES_MAX:
                for host in _LOCAL.get(each.host, (each.host,)):
                    self._nodes[address_text((host, each.port))] = f"{role} {id}"

    def _pass_to(self, time: float) -> None:
        """End what may have gone on in a time without a recording."""
        if self._latest and self._recordings.holes(self._latest, time, REST_S):
            self._open.clear()
            self._produces.clear()
            self._end_all("not-recorded")
        self._latest = max(self._latest, time)


def _is_late(sent: _Sent, time: float) -> bool:
    """Whether a request without an answer waits for longer than it should."""
    body = sent.exchange.request_body
    if is_held_for_members(sent.exchange.api_key, body):
        return False
    waits = getattr(body, "max_wait_ms", 0) / 1000
    return time - sent.time > waits + _ANSWER_S


def _of_parts(results: Mapping[Part, Result], history: History) -> dict[Part, Result]:
    return {part: results[part] for part in history.parts if part in results}


def _by_history(
    parts: Iterable[Part], unsettled: Mapping[Part, History]
) -> list[tuple[History, set[Part]]]:
    """Return the histories of parts, each with those that it is about."""
    found: dict[int, tuple[History, set[Part]]] = {}
    for part in parts:
        history = unsettled[part]
        found.setdefault(id(history), (history, set()))[1].add(part)
    return list(found.values())


def _note_software(client: Client, body: Any) -> None:
    software = f"{body.client_software_name} {body.client_software_version}".strip()
    client.software = software or client.software
