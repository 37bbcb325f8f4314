"""The story of transactions: where each begins, what it holds, how it ends and who ended it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from kraftwire.capture.limits import (
    TRANSACTION_PARTITIONS_MAX,
    TRANSACTIONAL_IDS_MAX,
    TRANSACTIONS_MAX,
)
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.text import count_text, duration_text, listed, size_text, words
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.events import Event, Events
from kraftwire.story.observed_exchange import Talk, produced_in

Ending = Literal["committed", "aborted", "aborted by the coordinator", "open"]


@dataclass(slots=True)
class Transaction:
    """A transaction.

    It begins with the first request that belongs to it, and ends with the answer to EndTxn, or with
    the markers of a coordinator that aborts it by itself. The number of `partitions` that are kept
    is limited. Units: times in seconds since the epoch, `size` bytes of batches.
    """

    id: str
    producer_id: int
    epoch: int
    start: float
    client: str = ""
    end: float | None = None
    ending: Ending = "open"
    partitions: set[tuple[str, int]] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    records: int = 0
    size: int = 0
    wants_commit: bool | None = None

    def seconds(self, now: float) -> float:
        """Return how long it took, or how long it has been open, in seconds."""
        return max(0.0, (now if self.end is None else self.end) - self.start)


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

    def __init__(self, names: TopicNames) -> None:
        self.events = Events()
        self.ids: dict[str, TransactionalId] = {}
        self.transactions: list[Transaction] = []
        self.overflow = 0
        self._names = names
        self._by_producer: dict[int, TransactionalId] = {}
        self._partition_count = 0

    # -- what is seen --------------------------------------------------------------------------

    def see_request(self, talk: Talk) -> None:
        """Add a request."""
        if talk.api == "EndTxn":
            known = self._known(talk.request.transactional_id)
            if known is not None and known.current is not None:
                known.current.wants_commit = talk.request.committed

    def see_response(self, talk: Talk) -> None:
        """Add a response."""
        if talk.request is not None:
            _READERS[talk.api](self, talk)

    def see_init(self, talk: Talk) -> None:
        """Add an InitProducerId, which gives a transactional id its producer."""
        body, told = talk.request, talk.response
        known = self._known(body.transactional_id)
        if known is None:
            return
        self._note_client(known, talk)
        if told.error_code:
            self._refuse(known, talk, told.error_code)
            return
        remarks = [f"client {talk.client_id}"] if talk.client_id else []
        if known.current is not None:
            self._end(known, talk.answered, "aborted by the coordinator")
        self._flush(known)
        self._learn(known, told.producer_id, told.producer_epoch)
        text = f"gets producer {told.producer_id} epoch {told.producer_epoch}"
        details = {"producerId": told.producer_id, "producerEpoch": told.producer_epoch}
        self._say(known, talk.answered, "producer", words(text, remarks), details)

    def see_partitions(self, talk: Talk) -> None:
        """Add the partitions of AddPartitionsToTxn, sent by a producer or by a broker for it."""
        body, told = talk.request, talk.response
        if not body.transactions:
            known = self._known(body.v3_and_below_transactional_id)
            if known is not None:
                self._learn(known, body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
                results = told.results_by_topic_v3_and_below
                self._add(known, talk, body.v3_and_below_topics, results)
            return
        results = {each.transactional_id: each for each in told.results_by_transaction}
        for each in body.transactions:
            known = self._known(each.transactional_id)
            result = results.get(each.transactional_id)
            # A broker may also ask whether a partition is in the transaction; that adds nothing.
            if known is not None and result is not None and not each.verify_only:
                self._learn(known, each.producer_id, each.producer_epoch)
                self._add(known, talk, each.topics, result.topic_results)

    def _add(self, known: TransactionalId, talk: Talk, topics: Any, results: Any) -> None:
        codes = {
            each.partition_error_code
            for result in results
            for each in result.results_by_partition
            if each.partition_error_code
        }
        if codes:
            for code in sorted(codes):
                self._refuse(known, talk, code)
            return
        current = self._begin(known, talk)
        for topic in topics:
            for partition in topic.partitions:
                self._add_partition(current, topic.name, partition)

    def see_produce(self, talk: Talk) -> None:
        """Add the records of a transactional Produce."""
        body = talk.request
        known = self._known(body.transactional_id)
        if known is None:
            return
        codes = [
            each.error_code
            for topic in talk.response.responses
            for each in topic.partition_responses
            if each.error_code
        ]
        for code in dict.fromkeys(codes):
            self._refuse(known, talk, code)
        if codes:
            return
        current = self._begin(known, talk)
        for each in produced_in(body, self._names):
            current.records += each.records
            current.size += each.size
            self._add_partition(current, each.topic, each.partition)

    def see_offsets(self, talk: Talk) -> None:
        """Add the group of AddOffsetsToTxn or TxnOffsetCommit."""
        body, told = talk.request, talk.response
        known = self._known(body.transactional_id)
        if known is None:
            return
        self._learn(known, body.producer_id, body.producer_epoch)
        codes = [getattr(told, "error_code", 0)]
        codes += [p.error_code for topic in getattr(told, "topics", ()) for p in topic.partitions]
        if any(codes):
            self._refuse(known, talk, next(filter(None, codes)))
            return
        current = self._begin(known, talk)
        if len(current.groups) < _CLIENTS_MAX:
            current.groups.add(body.group_id)

    def see_end(self, talk: Talk) -> None:
        """Add the end of a transaction: EndTxn."""
        body, told = talk.request, talk.response
        known = self._known(body.transactional_id)
        if known is None:
            return
        verb = "commit" if body.committed else "abort"
        if told.error_code:
            self._refuse(known, talk, told.error_code, verb)
        else:
            self._end(known, talk.answered, "committed" if body.committed else "aborted")
            if getattr(told, "producer_id", -1) >= 0:
                self._learn(known, told.producer_id, told.producer_epoch)

    def see_markers(self, talk: Talk) -> None:
        """Add WriteTxnMarkers, which end transactions that no producer has ended."""
        for each in talk.request.markers:
            known = self._by_producer.get(each.producer_id)
            current = known.current if known is not None else None
            if known is None or current is None or current.wants_commit is not None:
                continue
            if not each.transaction_result:
                self._end(known, talk.asked, "aborted by the coordinator")

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

    def _note_client(self, known: TransactionalId, talk: Talk) -> None:
        if talk.client_id and len(known.clients) < _CLIENTS_MAX:
            known.clients.add(talk.client_id)

    def _begin(self, known: TransactionalId, talk: Talk) -> Transaction:
        if known.current is None:
            known.current = Transaction(
                known.id, known.producer_id, known.epoch, talk.asked, talk.client_id
            )
        known.current.start = min(known.current.start, talk.asked)
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
        text = words(f"{verb} after {duration_text(current.seconds(time))}", _content(current))
        self._say(known, time, "abort", text, {"seconds": current.seconds(time)})

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

    def finish(self) -> None:
        """Report commits that are not reported yet, and transactions that are open at the end."""
        for known in self.ids.values():
            self._flush(known)
            if known.current is not None:
                current = known.current
                text = words("leaves a transaction open", _content(current))
                self._say(known, current.start, "open", text, {})
                known.ended["open"] += 1
                self.transactions.append(current)

    # -- events --------------------------------------------------------------------------------

    def _note_commit(self, known: TransactionalId, current: Transaction) -> None:
        """Add a commit to those that share a line because they follow each other."""
        known.commits = [*known.commits[:1], current]
        known.commit_count += 1
        known.commit_end = current.end or 0.0

    def _flush(self, known: TransactionalId) -> None:
        """Report the commits gathered so far."""
        if not known.commits:
            return
        first, count = known.commits[0], known.commit_count
        known.commits, known.commit_count = [], 0
        if count == 1:
            seconds = first.seconds(known.commit_end)
            text = words(f"commits after {duration_text(seconds)}", _content(first))
            time = first.end or first.start
        else:
            seconds = max(0.0, known.commit_end - first.start)
            text = f"commits {count_text(count, 'transaction')} in {duration_text(seconds)}"
            time = first.start
        self._say(known, time, "commit", text, {"seconds": seconds, "count": count})

    def _refuse(self, known: TransactionalId, talk: Talk, code: int, what: str = "") -> None:
        known.refused += 1
        self._flush(known)
        verb = f" to {what}" if what else ""
        text = f"{talk.api}{verb} is refused: {error_name(code)}"
        details = {"api": talk.api, "error": error_name(code), "client": talk.client_id}
        event = Event(talk.answered, "error", known.id, text, "", known.epoch, details)
        self.events.add(event)

    def _say(
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
    "AddOffsetsToTxn": TransactionStory.see_offsets,
    "AddPartitionsToTxn": TransactionStory.see_partitions,
    "EndTxn": TransactionStory.see_end,
    "InitProducerId": TransactionStory.see_init,
    "Produce": TransactionStory.see_produce,
    "TxnOffsetCommit": TransactionStory.see_offsets,
    "WriteTxnMarkers": TransactionStory.see_markers,
}
