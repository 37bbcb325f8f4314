"""The story of transactions: begin, content and end of each, and who ended it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kraftwire.capture.recorded import REST_S, Recordings, TimeSpan
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.text import count_text, duration_text, listed, size_text, with_remarks
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.events import Event, Events
from kraftwire.story.observed_exchange import ObservedExchange, produced_records

# Transactional ids and producers, the transactions that are listed, and the partitions of these.
TRANSACTIONAL_IDS_MAX = 20_000
TRANSACTIONS_MAX = 50_000
TRANSACTION_PARTITIONS_MAX = 200_000

Ending = Literal["committed", "aborted", "aborted by the coordinator", "open"]


@dataclass(slots=True)
class Transaction:
    """A transaction.

    It begins with the first request that belongs to it, and ends with the answer to EndTxn, or with
    the markers of a coordinator that aborts it by itself. If neither was recorded, it was open
    `until` then, None for the end of the story. The number of `partitions` that are kept is
    limited. Units: times in seconds since the epoch, `size` bytes of batches.
    """

    id: str
    producer_id: int
    epoch: int
    start: float
    client: str = ""
    end: float | None = None
    until: float | None = None
    ending: Ending = "open"
    partitions: set[tuple[str, int]] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    records: int = 0
    size: int = 0
    wants_commit: bool | None = None

    def seconds(self, now: float) -> float:
        """Return how long it took, or how long it has been open, in seconds."""
        until = now if self.until is None else self.until
        return max(0.0, (until if self.end is None else self.end) - self.start)


@dataclass(slots=True)
class TransactionalId:
    """A transactional id and its transactions."""

    id: str
    producer_id: int = -1
    epoch: int = -1
    clients: set[str] = field(default_factory=set)
    current: Transaction | None = None
    ended: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    longest: float = 0.0
    total: float = 0.0
    records: int = 0
    size: int = 0
    commits: list[Transaction] = field(default_factory=list)
    commit_count: int = 0
    commit_end: float = 0.0


APIS = frozenset(
    {
        "AddOffsetsToTxn",
        "AddPartitionsToTxn",
        "EndTxn",
        "InitProducerId",
        "Produce",
        "TxnOffsetCommit",
        "WriteTxnMarkers",
    }
)
_CLIENTS_MAX = 16
_PARTITIONS_SHOWN = 4


class TransactionStory:
    """Gathers the story of all transactional ids.

    Order: requests and responses as they come, then `finish` once.
    """

    def __init__(self, names: TopicNames, recordings: Recordings | None = None) -> None:
        """Begin a story. `recordings` are those of the exchanges, and grow while these come."""
        self.events = Events()
        self._recordings = recordings or Recordings()
        # The time of the latest request or response.
        self._latest = 0.0
        self.ids: dict[str, TransactionalId] = {}
        self.transactions: list[Transaction] = []
        self.overflow = 0
        self._names = names
        self._by_producer: dict[int, TransactionalId] = {}
        self._partition_count = 0

    # -- what is seen --------------------------------------------------------------------------

    def on_request(self, exchange: ObservedExchange) -> None:
        """Add a request."""
        self._pass_to(exchange.request_time)
        if exchange.api == "EndTxn":
            known = self._known(exchange.request_body.transactional_id)
            if known is not None and known.current is not None:
                known.current.wants_commit = exchange.request_body.committed

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add a response."""
        self._pass_to(exchange.response_time)
        if exchange.request_body is not None:
            _READERS[exchange.api](self, exchange)

    def on_init(self, exchange: ObservedExchange) -> None:
        """Add an InitProducerId, which gives a transactional id its producer."""
        request, response = exchange.request_body, exchange.response_body
        known = self._known(request.transactional_id)
        if known is None:
            return
        self._note_client(known, exchange)
        if response.error_code:
            self._refuse(known, exchange, response.error_code)
            return
        remarks = [f"client {exchange.client_id}"] if exchange.client_id else []
        if known.current is not None:
            self._end(known, exchange.response_time, "aborted by the coordinator")
        self._flush(known)
        self._learn(known, response.producer_id, response.producer_epoch)
        text = f"gets producer {response.producer_id} epoch {response.producer_epoch}"
        details = {"producerId": response.producer_id, "producerEpoch": response.producer_epoch}
        text = with_remarks(text, remarks)
        self._add_event(known, exchange.response_time, "producer", text, details)

    def on_partitions(self, exchange: ObservedExchange) -> None:
        """Add the partitions of AddPartitionsToTxn, sent by a producer or by a broker for it."""
        request, response = exchange.request_body, exchange.response_body
        if not request.transactions:
            known = self._known(request.v3_and_below_transactional_id)
            if known is not None:
                self._learn(
                    known, request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
                )
                results = response.results_by_topic_v3_and_below
                self._add(known, exchange, request.v3_and_below_topics, results)
            return
        results = {each.transactional_id: each for each in response.results_by_transaction}
        for each in request.transactions:
            known = self._known(each.transactional_id)
            result = results.get(each.transactional_id)
            # A broker may also verify that a partition is in the transaction; that adds nothing.
            if known is not None and result is not None and not each.verify_only:
                self._learn(known, each.producer_id, each.producer_epoch)
                self._add(known, exchange, each.topics, result.topic_results)

    def _add(
        self, known: TransactionalId, exchange: ObservedExchange, topics: Any, results: Any
    ) -> None:
        codes = {
            each.partition_error_code
            for result in results
            for each in result.results_by_partition
            if each.partition_error_code
        }
        if codes:
            for code in sorted(codes):
                self._refuse(known, exchange, code)
            return
        current = self._begin(known, exchange)
        for topic in topics:
            for partition in topic.partitions:
                self._add_partition(current, topic.name, partition)

    def on_produce(self, exchange: ObservedExchange) -> None:
        """Add the records of a transactional Produce."""
        request = exchange.request_body
        known = self._known(request.transactional_id)
        if known is None:
            return
        codes = [
            each.error_code
            for topic in exchange.response_body.responses
            for each in topic.partition_responses
            if each.error_code
        ]
        for code in dict.fromkeys(codes):
            self._refuse(known, exchange, code)
        if codes:
            return
        current = self._begin(known, exchange)
        for each in produced_records(request, self._names):
            current.records += each.records
            current.size += each.size
            self._add_partition(current, each.topic, each.partition)

    def on_offsets(self, exchange: ObservedExchange) -> None:
        """Add the group of AddOffsetsToTxn or TxnOffsetCommit."""
        request, response = exchange.request_body, exchange.response_body
        known = self._known(request.transactional_id)
        if known is None:
            return
        self._learn(known, request.producer_id, request.producer_epoch)
        codes = [getattr(response, "error_code", 0)]
        codes += [
            p.error_code for topic in getattr(response, "topics", ()) for p in topic.partitions
        ]
        if any(codes):
            self._refuse(known, exchange, next(filter(None, codes)))
            return
        current = self._begin(known, exchange)
        if len(current.groups) < _CLIENTS_MAX:
            current.groups.add(request.group_id)

    def on_end(self, exchange: ObservedExchange) -> None:
        """Add the end of a transaction: EndTxn."""
        request, response = exchange.request_body, exchange.response_body
        known = self._known(request.transactional_id)
        if known is None:
            return
        verb = "commit" if request.committed else "abort"
        if response.error_code:
            self._refuse(known, exchange, response.error_code, verb)
        else:
            self._end(
                known, exchange.response_time, "committed" if request.committed else "aborted"
            )
            if getattr(response, "producer_id", -1) >= 0:
                self._learn(known, response.producer_id, response.producer_epoch)

    def on_markers(self, exchange: ObservedExchange) -> None:
        """Add WriteTxnMarkers, which end transactions that no producer has ended."""
        for each in exchange.request_body.markers:
            known = self._by_producer.get(each.producer_id)
            current = known.current if known is not None else None
            if known is None or current is None or current.wants_commit is not None:
                continue
            if not each.transaction_result:
                self._end(known, exchange.request_time, "aborted by the coordinator")

    # -- transactions --------------------------------------------------------------------------

    def _known(self, id: str | None) -> TransactionalId | None:
        """Return the state of an id, which is added if new; None if empty or beyond the limit."""
        if not id:
            return None
        known = self.ids.get(id)
        if known is None:
            if len(self.ids) >= TRANSACTIONAL_IDS_MAX:
                self.overflow += 1
                return None
            known = self.ids[id] = TransactionalId(id)
        return known

    def _learn(self, known: TransactionalId, producer_id: int, epoch: int) -> None:
        known.producer_id, known.epoch = producer_id, epoch
        if producer_id in self._by_producer or len(self._by_producer) < TRANSACTIONAL_IDS_MAX:
            self._by_producer[producer_id] = known

    def _note_client(self, known: TransactionalId, exchange: ObservedExchange) -> None:
        if exchange.client_id and len(known.clients) < _CLIENTS_MAX:
            known.clients.add(exchange.client_id)

    def _begin(self, known: TransactionalId, exchange: ObservedExchange) -> Transaction:
        if known.current is None:
            known.current = Transaction(
                known.id, known.producer_id, known.epoch, exchange.request_time, exchange.client_id
            )
        known.current.start = min(known.current.start, exchange.request_time)
        return known.current

    def _add_partition(self, current: Transaction, topic: str, partition: int) -> None:
        if self._partition_count < TRANSACTION_PARTITIONS_MAX:
            self._partition_count += (topic, partition) not in current.partitions
            current.partitions.add((topic, partition))

    def _end(self, known: TransactionalId, time: float, ending: Ending) -> None:
        current = known.current
        known.current = None
        if current is None:
            return
        current.end, current.ending = time, ending
        self._count(known, current, time)
        if ending == "committed":
            self._note_commit(known, current)
            return
        self._flush(known)
        verb = "aborts" if ending == "aborted" else "is aborted by the coordinator"
        text = f"{verb} after {duration_text(current.seconds(time))}"
        text = with_remarks(text, _content(current))
        self._add_event(known, time, "abort", text, {"seconds": current.seconds(time)})

    def _count(self, known: TransactionalId, current: Transaction, now: float) -> None:
        known.ended[current.ending] += 1
        seconds = current.seconds(now)
        known.longest = max(known.longest, seconds)
        known.total += seconds
        known.records += current.records
        known.size += current.size
        if len(self.transactions) < TRANSACTIONS_MAX:
            self.transactions.append(current)
        else:
            self._partition_count -= len(current.partitions)

    def finish(self, holes: Sequence[TimeSpan]) -> None:
        """Report commits that are not reported yet, transactions that are open at the end, and the
        times of which nothing was recorded.
        """
        self.events.note_holes(holes)
        for known in self.ids.values():
            self._leave_open(known, None)

    # -- events --------------------------------------------------------------------------------

    def _note_commit(self, known: TransactionalId, current: Transaction) -> None:
        """Add a commit to those that share a line because they follow each other."""
        known.commits = [*known.commits[:1], current]
        known.commit_count += 1
        known.commit_end = current.end or 0.0

    def _pass_to(self, time: float) -> None:
        """Leave transactions open that may have ended in a time without a recording."""
        if self._latest and self._recordings.holes(self._latest, time, REST_S):
            for known in self.ids.values():
                self._leave_open(known, self._latest)
        self._latest = max(self._latest, time)

    def _leave_open(self, known: TransactionalId, until: float | None) -> None:
        """Report a transaction whose end is not recorded, and which was recorded until a time."""
        self._flush(known)
        current, known.current = known.current, None
        if current is None:
            return
        current.until = until
        text = with_remarks("has a transaction open when the recording ends", _content(current))
        self._add_event(known, current.start, "open", text, {})
        known.ended["open"] += 1
        if until is None or len(self.transactions) < TRANSACTIONS_MAX:
            self.transactions.append(current)

    def _flush(self, known: TransactionalId) -> None:
        """Report the commits gathered so far."""
        if not known.commits:
            return
        first, count = known.commits[0], known.commit_count
        known.commits, known.commit_count = [], 0
        if count == 1:
            seconds = first.seconds(known.commit_end)
            text = with_remarks(f"commits after {duration_text(seconds)}", _content(first))
            time = first.end or first.start
        else:
            seconds = max(0.0, known.commit_end - first.start)
            text = f"commits {count_text(count, 'transaction')} in {duration_text(seconds)}"
            time = first.start
        self._add_event(known, time, "commit", text, {"seconds": seconds, "count": count})

    def _refuse(
        self, known: TransactionalId, exchange: ObservedExchange, code: int, what: str = ""
    ) -> None:
        known.refused += 1
        self._flush(known)
        verb = f" to {what}" if what else ""
        text = f"{exchange.api}{verb} is refused: {error_name(code)}"
        details = {"api": exchange.api, "error": error_name(code), "client": exchange.client_id}
        event = Event(exchange.response_time, "error", known.id, text, "", known.epoch, details)
        self.events.add(event)

    def _add_event(
        self, known: TransactionalId, time: float, kind: str, text: str, details: dict[str, Any]
    ) -> None:
        self.events.add(Event(time, kind, known.id, text, "", known.epoch, details))


def _content(current: Transaction) -> list[str]:
    """Describe the content of a transaction."""
    remarks = []
    if current.records:
        records = count_text(current.records, "record")
        remarks.append(f"{records}, {size_text(current.size)}")
    shown = sorted(current.partitions)[:_PARTITIONS_SHOWN]
    if shown:
        more = len(current.partitions) - len(shown)
        names = [f"{topic}-{partition}" for topic, partition in shown]
        remarks.append(listed(names) + (f" and {more} more" if more else ""))
    if current.groups:
        remarks.append(f"offsets of {listed(sorted(current.groups))}")
    return remarks


_READERS = {
    "AddOffsetsToTxn": TransactionStory.on_offsets,
    "AddPartitionsToTxn": TransactionStory.on_partitions,
    "EndTxn": TransactionStory.on_end,
    "InitProducerId": TransactionStory.on_init,
    "Produce": TransactionStory.on_produce,
    "TxnOffsetCommit": TransactionStory.on_offsets,
    "WriteTxnMarkers": TransactionStory.on_markers,
}
