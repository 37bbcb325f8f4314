"""The story of topics: changes, traffic, producers and consumers, leaders, errors."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kraftwire.capture.recorded import TimeSpan
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.secrets import REDACTED, is_secret_setting
from kraftwire.decode.text import count_text, listed, with_remarks
from kraftwire.protocol.config_resources import TOPIC_RESOURCE
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.events import Event, Events
from kraftwire.story.observed_exchange import (
    ObservedExchange,
    count_records,
    produced_records,
    topic_name,
)

# Topics, their partitions, and the clients of each; further clients share one row.
TOPICS_MAX = 20_000
TOPIC_PARTITIONS_MAX = 200_000
TOPIC_CLIENTS_MAX = 20


@dataclass(slots=True)
class Partition:
    """A partition.

    `start` and `end` are its first offset and the offset after its last record, as far as any frame
    has shown; `leader` and `epoch` are those of the last Metadata answer.
    """

    start: int | None = None
    end: int | None = None
    leader: int = -1
    epoch: int = -1


@dataclass(slots=True)
class Topic:
    """A topic.

    Counts the records of acknowledged Produce requests, and those in answers to consumers; a
    consumer may get records twice, and records before the offset that it wants. `produced_by` and
    `fetched_by` count the bytes of each client. Units: sizes are bytes of batches.
    """

    name: str
    partitions: dict[int, Partition] = field(default_factory=dict)
    produced_records: int = 0
    produced_size: int = 0
    fetched_records: int = 0
    fetched_size: int = 0
    batches: int = 0
    produced_by: Counter[str] = field(default_factory=Counter)
    fetched_by: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    compression: Counter[str] = field(default_factory=Counter)


# Whether a topic, or a partition of it, is wanted.
TopicTest = Callable[[str | None, int | None], bool]

# Brokers forward these to the controller, in envelopes.
FORWARDED = frozenset(
    {"AlterConfigs", "CreatePartitions", "CreateTopics", "DeleteTopics", "IncrementalAlterConfigs"}
)
APIS = FORWARDED | {
    "DeleteRecords", "Fetch", "ListOffsets", "Metadata", "Produce", "ShareFetch",
}  # fmt: skip
# Forwarded requests that are remembered until the client gets its answer.
_FORWARDED_MAX = 64
_NO_CLIENT = "(no client id)"
_OTHERS = "(others)"
_VERBS = {0: "", 1: " is reset", 2: " gets ", 3: " loses "}
_LATEST, _EARLIEST = -1, -2


def any_topic(_topic: str | None, _partition: int | None) -> bool:
    """Want every topic."""
    return True


class TopicStory:
    """Gathers the story of all topics.

    Order: requests and responses as they come.
    """

    def __init__(
        self,
        names: TopicNames,
        *,
        show_secrets: bool = False,
        is_wanted: TopicTest = any_topic,
    ) -> None:
        """Begin a story of topics that are wanted, of which a body may name others as well."""
        self.events = Events()
        self.topics: dict[str, Topic] = {}
        self.overflow = 0
        self._names = names
        self._show_secrets = show_secrets
        self._is_wanted = is_wanted
        self._partition_count = 0
        self._forwarded: deque[ObservedExchange] = deque(maxlen=_FORWARDED_MAX)

    def on_request(self, exchange: ObservedExchange) -> None:
        """Ignore a request: it is used only with its response."""

    def finish(self, holes: Sequence[TimeSpan]) -> None:
        """Add the times of which nothing was recorded."""
        self.events.note_holes(holes)

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add a response with its request."""
        if exchange.request_body is not None and not self._is_reported(exchange):
            _READERS[exchange.api](self, exchange)

    def _is_reported(self, exchange: ObservedExchange) -> bool:
        """Whether a request was reported already, as the broker forwarded it in an envelope."""
        if exchange.is_forwarded:
            self._forwarded.append(exchange)
        elif exchange.api in FORWARDED:
            for each in self._forwarded:
                if _is_same(exchange, each):
                    self._forwarded.remove(each)
                    return True
        return False

    # -- traffic -------------------------------------------------------------------------------

    def on_produce(self, exchange: ObservedExchange) -> None:
        """Count the records of a Produce request."""
        parts = produced_records(exchange.request_body, self._names)
        sent = {(each.topic, each.partition): each for each in parts}
        for topic in exchange.response_body.responses:
            name = topic_name(topic.name, topic.topic_id, self._names)
            for each in topic.partition_responses:
                found = self._topic(name)
                if found is None:
                    continue
                if each.error_code:
                    self._refuse(found, exchange, each.error_code, each.index)
                    continue
                part = sent.get((name, each.index))
                if part is None:
                    continue
                found.produced_records += part.records
                found.produced_size += part.size
                found.batches += part.batches
                found.compression.update(part.compression)
                _count(found.produced_by, exchange, part.size)
                if each.base_offset >= 0:
                    self._note_offsets(found, each.index, end=each.base_offset + part.records)
                if each.log_start_offset >= 0:
                    self._note_offsets(found, each.index, start=each.log_start_offset)

    def on_fetch(self, exchange: ObservedExchange) -> None:
        """Count the records in an answer to Fetch or ShareFetch."""
        for topic in exchange.response_body.responses:
            name = topic_name(getattr(topic, "topic", None), topic.topic_id, self._names)
            for each in topic.partitions:
                found = self._topic(name)
                if found is None:
                    continue
                if each.error_code:
                    self._refuse(found, exchange, each.error_code, each.partition_index)
                    continue
                part = count_records(name, each.partition_index, each.records)
                found.fetched_records += part.records
                found.fetched_size += part.size
                if part.size:
                    _count(found.fetched_by, exchange, part.size)
                end = getattr(each, "high_watermark", -1)
                start = getattr(each, "log_start_offset", -1)
                self._note_offsets(found, each.partition_index, start=start, end=end)

    def on_offsets(self, exchange: ObservedExchange) -> None:
        """Note the offsets in an answer to ListOffsets."""
        timestamps = {
            (topic.name, each.partition_index): each.timestamp
            for topic in exchange.request_body.topics
            for each in topic.partitions
        }
        for topic in exchange.response_body.topics:
            for each in topic.partitions:
                found = self._topic(topic.name)
                if found is None:
                    continue
                if each.error_code:
                    self._refuse(found, exchange, each.error_code, each.partition_index)
                    continue
                offset = (each.old_style_offsets or [each.offset])[0]
                timestamp = timestamps.get((topic.name, each.partition_index))
                if timestamp == _LATEST:
                    self._note_offsets(found, each.partition_index, end=offset)
                elif timestamp == _EARLIEST:
                    self._note_offsets(found, each.partition_index, start=offset)

    # -- leaders -------------------------------------------------------------------------------

    def on_metadata(self, exchange: ObservedExchange) -> None:
        """Note the leaders in a Metadata answer; a changed leader is an event."""
        for topic in exchange.response_body.topics:
            name = topic_name(topic.name, topic.topic_id, self._names)
            found = None if topic.error_code and name not in self.topics else self._topic(name)
            for each in topic.partitions if found is not None else ():
                part = self._partition(found, each.partition_index) if found else None
                if found is None or part is None:
                    continue
                is_news = part.leader != -1 and each.leader_id not in (part.leader, -1)
                if is_news and each.leader_epoch >= part.epoch:
                    text = f"partition {each.partition_index} is led by {each.leader_id}"
                    remarks = [f"before by {part.leader}"]
                    remarks += [f"epoch {each.leader_epoch}"] if each.leader_epoch >= 0 else []
                    self._add_event(found.name, exchange, "leader", with_remarks(text, remarks))
                if each.leader_epoch >= part.epoch:
                    part.leader, part.epoch = each.leader_id, each.leader_epoch

    # -- administration ------------------------------------------------------------------------

    def on_creation(self, exchange: ObservedExchange) -> None:
        """Add the topics that CreateTopics creates."""
        results = {each.name: each for each in exchange.response_body.topics}
        for each in exchange.request_body.topics:
            result = results.get(each.name)
            count = getattr(result, "num_partitions", -1)
            count = count if count > 0 else max(each.num_partitions, len(each.assignments))
            remarks = [count_text(count, "partition")] if count > 0 else []
            replicas = each.replication_factor
            remarks += [count_text(replicas, "replica")] if replicas > 1 else []
            remarks += [self._setting(config.name, config.value) for config in each.configs]
            what = "only checked" if exchange.request_body.validate_only else "created"
            self._administer(exchange, each.name, with_remarks(f"is {what}", remarks), result)

    def on_deletion(self, exchange: ObservedExchange) -> None:
        """Add the topics that DeleteTopics deletes."""
        for each in exchange.response_body.responses:
            name = topic_name(each.name, each.topic_id, self._names)
            self._administer(exchange, name, "is deleted", each)

    def on_partitions(self, exchange: ObservedExchange) -> None:
        """Add the partitions that CreatePartitions creates."""
        results = {each.name: each for each in exchange.response_body.results}
        for each in exchange.request_body.topics:
            text = f"has {count_text(each.count, 'partition')} now"
            self._administer(exchange, each.name, text, results.get(each.name))

    def on_configs(self, exchange: ObservedExchange) -> None:
        """Add the settings that AlterConfigs or IncrementalAlterConfigs changes."""
        results = {each.resource_name: each for each in exchange.response_body.responses}
        for each in exchange.request_body.resources:
            if each.resource_type != TOPIC_RESOURCE:
                continue
            texts = []
            for config in each.configs:
                verb = _VERBS.get(getattr(config, "config_operation", 0), "")
                texts.append(self._setting(config.name, config.value, verb))
            text = f"is configured: {listed(texts)}"
            self._administer(exchange, each.resource_name, text, results.get(each.resource_name))

    def on_deleted_records(self, exchange: ObservedExchange) -> None:
        """Add the offsets up to which DeleteRecords deletes."""
        for topic in exchange.response_body.topics:
            found = self._topic(topic.name)
            for each in topic.partitions if found is not None else ():
                if found is None:
                    continue
                if each.error_code:
                    self._refuse(found, exchange, each.error_code, each.partition_index)
                    continue
                self._note_offsets(found, each.partition_index, start=each.low_watermark)
                text = f"partition {each.partition_index} begins at offset {each.low_watermark}"
                text = with_remarks(text, ["DeleteRecords"])
                self._add_event(topic.name, exchange, "records", text)

    def _administer(self, exchange: ObservedExchange, name: str, text: str, result: Any) -> None:
        found = self._topic(name)
        if found is None or result is None:
            return
        if result.error_code:
            self._refuse(found, exchange, result.error_code)
        else:
            kind = (
                "config" if "onfig" in exchange.api else exchange.api[0].lower() + exchange.api[1:]
            )
            self._add_event(name, exchange, kind, text)

    def _setting(self, name: str, value: str | None, verb: str = "") -> str:
        if value is None:
            return f"{name}{verb or ' is reset'}".rstrip()
        is_hidden = is_secret_setting(name, value) and not self._show_secrets
        shown = REDACTED if is_hidden else value
        return f"{name}{verb or '='}{shown}"

    # -- what is kept --------------------------------------------------------------------------

    def _topic(self, name: str | None) -> Topic | None:
        """Return a topic, which is added if it is new; None without a name or beyond the limit,
        and for one that is not wanted.
        """
        if not name or not self._is_wanted(name, None):
            return None
        found = self.topics.get(name)
        if found is None:
            if len(self.topics) >= TOPICS_MAX:
                self.overflow += 1
                return None
            found = self.topics[name] = Topic(name)
        return found

    def _partition(self, topic: Topic, index: int) -> Partition | None:
        found = topic.partitions.get(index)
        if found is None:
            if self._partition_count >= TOPIC_PARTITIONS_MAX:
                return None
            self._partition_count += 1
            found = topic.partitions[index] = Partition()
        return found

    def _note_offsets(self, topic: Topic, index: int, *, start: int = -1, end: int = -1) -> None:
        part = self._partition(topic, index)
        if part is None:
            return
        if start >= 0:
            part.start = max(start, part.start or 0)
        if end >= 0:
            part.end = max(end, part.end or 0)

    def _refuse(
        self, topic: Topic, exchange: ObservedExchange, code: int, partition: int | None = None
    ) -> None:
        name = error_name(code)
        topic.errors[name] += 1
        where = "" if partition is None else f" of partition {partition}"
        text = f"{exchange.api}{where} is refused: {name}"
        details = {"api": exchange.api, "error": name, "partition": partition}
        self.events.add(
            Event(
                exchange.response_time,
                "error",
                topic.name,
                with_remarks(text, _by(exchange)),
                "",
                None,
                dict(details),
            )
        )

    def _add_event(self, name: str, exchange: ObservedExchange, kind: str, text: str) -> None:
        remarks = _by(exchange) if kind != "leader" else []
        details = {"client": exchange.client_id or None}
        text = with_remarks(text, remarks)
        self.events.add(
            Event(exchange.response_time, kind, name, text, "", None, dict(details))
        )


def _is_same(exchange: ObservedExchange, forwarded: ObservedExchange) -> bool:
    """Whether a request is the one that was forwarded while its client waited."""
    return (
        (exchange.api, exchange.client_id) == (forwarded.api, forwarded.client_id)
        and exchange.request_time <= forwarded.request_time
        and forwarded.response_time <= exchange.response_time
        and bool(exchange.request_body == forwarded.request_body)
    )


def _by(exchange: ObservedExchange) -> list[str]:
    return [f"by {exchange.client_id}"] if exchange.client_id else []


def _count(counter: Counter[str], exchange: ObservedExchange, size: int) -> None:
    client = exchange.client_id or _NO_CLIENT
    is_kept = client in counter or len(counter) < TOPIC_CLIENTS_MAX
    counter[client if is_kept else _OTHERS] += size


_READERS = {
    "AlterConfigs": TopicStory.on_configs,
    "CreatePartitions": TopicStory.on_partitions,
    "CreateTopics": TopicStory.on_creation,
    "DeleteRecords": TopicStory.on_deleted_records,
    "DeleteTopics": TopicStory.on_deletion,
    "Fetch": TopicStory.on_fetch,
    "IncrementalAlterConfigs": TopicStory.on_configs,
    "ListOffsets": TopicStory.on_offsets,
    "Metadata": TopicStory.on_metadata,
    "Produce": TopicStory.on_produce,
    "ShareFetch": TopicStory.on_fetch,
}
