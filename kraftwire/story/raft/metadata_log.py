"""The content of the metadata log: each batch once, and descriptions of the records that matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kraftwire.controller.check import Contradiction
from kraftwire.decode.body.secrets import REDACTED, is_secret_setting
from kraftwire.decode.text import count_text, double_text, duration_text, listed, with_remarks
from kraftwire.errors import WireError
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.protocol.config_resources import RESOURCE_NAMES, TOPIC_RESOURCE
from kraftwire.records.json_form import decode_record
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import Batch, read_batches
from kraftwire.records.record import Record
from kraftwire.story.raft.coverage import Backwards, Coverage, Extent
from kraftwire.story.raft.model import Highlight, LogSummary, RaftEvent
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

# The Raft timeline quotes this many records of the metadata log and counts the rest.
RAFT_HIGHLIGHT_COUNT_MAX = 2_000

# Topics whose names and sizes the Raft timeline keeps; a cluster is designed for fewer.
RAFT_TOPIC_COUNT_MAX = 200_000

# Characters of all names of topics, of their first settings, and of all records that are quoted.
_NAMES_MAX = 8 * 1024 * 1024
_SETTINGS_MAX = _QUOTED_MAX = 1024 * 1024

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
# BrokerRegistrationChange: -1 and 1 for the two directions, 0 for no change.
_FENCED = {-1: "is unfenced", 1: "is fenced"}

# The settings of a new topic are in the batch that creates it or in the next one.
_CREATION_S = 0.5


@dataclass(slots=True)
class _Topic:
    name: str
    created: float
    partitions: int = 0
    replicas: int = 0
    configs: list[str] = field(default_factory=list)


class Topics:
    """Gathers names, sizes and initial settings of the topics that the log creates."""

    def __init__(self) -> None:
        self._by_id: dict[bytes, _Topic] = {}
        self._by_name: dict[str, _Topic] = {}
        self._names_size = self._settings_size = 0

    def on_record(self, record: Message, time: float) -> None:
        """Add a record of a topic or a partition."""
        if isinstance(record, TopicRecord):
            self._names_size += len(record.name)
            if len(self._by_id) >= RAFT_TOPIC_COUNT_MAX or self._names_size > _NAMES_MAX:
                return
            topic = _Topic(record.name, time)
            self._by_id[record.topic_id] = self._by_name[record.name] = topic
        elif isinstance(record, PartitionRecord) and record.topic_id in self._by_id:
            topic = self._by_id[record.topic_id]
            topic.partitions += 1
            topic.replicas = max(topic.replicas, len(record.replicas))

    def take_config(self, topic_name: str, text: str, time: float) -> bool:
        """Add a setting to a topic that is being created; return whether it is."""
        topic = self._by_name.get(topic_name)
        if topic is None or abs(time - topic.created) > _CREATION_S:
            return False
        self._settings_size += len(text)
        if self._settings_size > _SETTINGS_MAX:
            return False
        topic.configs.append(text)
        return True

    def name(self, topic_id: bytes) -> str:
        """Return the name of a topic, or its id where no record has the name."""
        topic = self._by_id.get(topic_id)
        return topic.name if topic else uuid_to_text(topic_id)

    def complete(self, topic: str) -> str:
        """Return the name of a topic with its size and initial settings."""
        known = self._by_name.get(topic)
        if known is None or not known.partitions:
            return topic
        remarks = [count_text(known.partitions, "partition")]
        if known.replicas > 1:
            remarks.append(count_text(known.replicas, "replica"))
        return with_remarks(topic, remarks + known.configs)


def highlight(
    record: Message, time: float, topics: Topics, *, show_secrets: bool
) -> tuple[str, str, str] | None:
    """Return kind, subject and text of a record; None if it is only counted."""
    if record.NAME == "ConfigRecord":
        return _config(record, time, topics, show_secrets=show_secrets)
    if record.NAME == "RemoveTopicRecord":
        name = topics.name(record.topic_id)  # type: ignore[attr-defined]
        return "topic", "", f"{name} is deleted"
    if record.NAME not in _WORDS:
        return None
    kind, function = _WORDS[record.NAME]
    text = function(record)
    return None if text is None else (kind, "", text)


def _config(
    record: Any, time: float, topics: Topics, *, show_secrets: bool
) -> tuple[str, str, str] | None:
    resource = RESOURCE_NAMES.get(record.resource_type, f"resource type {record.resource_type}")
    subject = f"{resource} {record.resource_name or '(default)'}"
    if record.value is None:
        return "config", subject, f"{record.name} is reset"
    is_secret = is_secret_setting(
        record.name, record.value, resource_type=record.resource_type
    )
    value = REDACTED if is_secret and not show_secrets else record.value
    text = f"{record.name}={value}"
    is_topic = record.resource_type == TOPIC_RESOURCE
    if is_topic and topics.take_config(record.resource_name, text, time):
        return None
    return "config", subject, text


def _endpoints(record: Any) -> str:
    return listed(f"{each.name}://{each.host}:{each.port}" for each in record.end_points)


def _register_broker(record: Any) -> str:
    remarks = [_endpoints(record)]
    if record.rack:
        remarks.append(f"rack {record.rack}")
    return with_remarks(f"{record.broker_id} registers", remarks)


def _registration_change(record: Any) -> str | None:
    changes = [_FENCED[record.fenced]] if record.fenced in _FENCED else []
    if record.in_controlled_shutdown > 0:
        changes.append("begins a controlled shutdown")
    return f"{record.broker_id} {' and '.join(changes)}" if changes else None


def _acl(record: Any) -> str:
    verb = "denied" if record.permission_type == 2 else "allowed"
    return f"{record.principal} from {record.host} {verb} {record.resource_name}"


def _quota(record: Any) -> str:
    entity = listed(f"{e.entity_type} {e.entity_name or '(default)'}" for e in record.entity)
    value = " is removed" if record.remove else f"={double_text(record.value)}"
    return f"{entity} {record.key}{value}"


def _scram(record: Any) -> str:
    return f"{record.name} ({MECHANISMS.get(record.mechanism, record.mechanism)})"


_WORDS: dict[str, tuple[str, Callable[[Any], str | None]]] = {
    "AbortTransactionRecord": ("metadata transaction", lambda r: f"aborted: {r.reason}"),
    "AccessControlEntryRecord": ("ACL", _acl),
    "BrokerRegistrationChangeRecord": ("broker", _registration_change),
    "ClientQuotaRecord": ("quota", _quota),
    "DelegationTokenRecord": ("delegation token", lambda r: f"{r.token_id} of {r.owner}"),
    "FeatureLevelRecord": ("feature", lambda r: f"{r.name}={r.feature_level}"),
    "FenceBrokerRecord": ("broker", lambda r: f"{r.id} is fenced"),
    "KRaftVersionRecord": ("feature", lambda r: f"kraft.version={r.kraft_version}"),
    "RegisterBrokerRecord": ("broker", _register_broker),
    "RegisterControllerRecord": (
        "controller", lambda r: with_remarks(f"{r.controller_id} registers", [_endpoints(r)])
    ),
    "RemoveUserScramCredentialRecord": ("user", lambda r: f"{_scram(r)} is removed"),
    "TopicRecord": ("topic", lambda r: str(r.name)),
    "UnfenceBrokerRecord": ("broker", lambda r: f"{r.id} is unfenced"),
    "UnregisterBrokerRecord": ("broker", lambda r: f"{r.broker_id} is unregistered"),
    "UnregisterControllerRecord": (
        "controller", lambda r: f"{r.controller_id} is unregistered"
    ),
    "UserScramCredentialRecord": ("user", _scram),
}


_FAMILY = "metadata"
# The record that an active controller writes at intervals if there is nothing else.
IDLE_RECORD = "NoOpRecord"
_PROBLEM_COUNT_MAX = 20

# New records reach the first follower at once; records fetched later than this are history.
_HISTORY_S = 5.0


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """The place of a record in the log, and the time when it was written.

    A record `is_new` unless another replica showed it, or a later epoch replaced it.
    """

    offset: int
    epoch: int
    time: float
    is_new: bool = True


class MetadataLog:
    """Reads batches in the order in which they are seen, and passes control records on.

    `on_control` gets every control record as it comes, also again from another replica, and
    `on_truncation` the offset, epoch and time at which a newer epoch overwrote the log. With
    `show_secrets`, values of secret configuration keys are shown.
    """

    def __init__(
        self,
        on_control: Callable[[Decoded, RecordPosition], None],
        on_truncation: Callable[[int, int, float], None] | None = None,
        *,
        show_secrets: bool = False,
    ) -> None:
        self.events: list[RaftEvent] = []
        self._on_control = on_control
        self._on_truncation = on_truncation
        self._show_secrets = show_secrets
        self._counts: Counter[str] = Counter()
        self._summary = LogSummary()
        self._topics = Topics()
        self._quoted_size = 0
        self.coverage = Coverage()

    @property
    def is_empty(self) -> bool:
        """Whether no batch has been read yet."""
        return not self.coverage.spans

    def on_bytes(self, data: bytes | memoryview, time: float) -> int:
        """Read the records field of a Fetch response; return its end offset, -1 if it is empty."""
        end = -1
        try:
            for batch in read_batches(data):
                self.on_batch(batch, time)
                end = batch.last_offset + 1
        except WireError as error:
            self._note_problem(str(error))
        return end

    def on_batch(
        self,
        batch: Batch,
        time: float | None = None,
        contradictions: Sequence[Contradiction] = (),
    ) -> None:
        """Read a batch, unless it was read before; `time` is when a frame brought it.

        The records of `contradictions` are no facts, and each is an event.
        """
        epoch = batch.partition_leader_epoch
        extent = extent_of(batch, is_file=time is None)
        is_new = self._is_new(extent, time or batch.max_timestamp / 1000)
        if not is_new and not (batch.is_control and extent.is_valid):
            return
        wrong = {each.offset: each for each in contradictions}
        found = batch.iter_salvage()
        for row in found:
            written = _time_of(row.timestamp / 1000, time)
            position = RecordPosition(row.offset, epoch, written, is_new)
            self._record(row, position, wrong.get(row.offset), is_control=batch.is_control)
        if found.damage is not None:
            self._note_problem(str(found.damage))

    def on_control_records(
        self, extent: Extent, records: Iterable[tuple[Decoded, int, float]], time: float | None
    ) -> None:
        """Add the control records of a batch that was decoded elsewhere.

        `records` are (record, offset, seconds since the epoch when it was written), and `time` is
        when a frame brought the batch.
        """
        rows = list(records)
        written = rows[0][2] if rows else 0.0
        is_new = self._is_new(extent, time or written)
        for decoded, offset, at in rows:
            self._counts[decoded.type] += is_new
            position = RecordPosition(offset, extent.epoch, _time_of(at, time), is_new)
            self._on_control(decoded, position)

    def _is_new(self, extent: Extent, time: float) -> bool:
        """Return whether a batch is new; if so, it counts as read from now on."""
        if self.coverage.has(extent):
            return False
        end = self.coverage.spans[-1].end if self.coverage.spans else 0
        if self.coverage.cut(extent):
            self._note_truncation(extent, time, end)
        self.coverage.add(extent)
        self._summary.batches += 1
        return True

    def summary(self) -> LogSummary:
        """Return a summary of all batches read so far."""
        self._summary.counts = dict(self._counts.most_common())
        self._summary.highlights = [
            replace(each, text=self._topics.complete(each.text)) if each.kind == "topic" else each
            for each in sorted(self._summary.highlights, key=lambda one: one.offset)
        ]
        if self.coverage.spans:
            self._summary.first_offset = self.coverage.spans[0].base
            self._summary.end_offset = self.coverage.spans[-1].end
        self._summary.missing = self.coverage.missing
        self._summary.is_of_files = any(each.last_time for each in self.coverage.spans)
        return self._summary

    def _record(
        self,
        row: Record,
        position: RecordPosition,
        wrong: Contradiction | None,
        *,
        is_control: bool,
    ) -> None:
        try:
            decoded = decode_record(row, _FAMILY, is_control=is_control)
        except WireError as error:
            self._note_problem(f"record at offset {row.offset}: {error}")
            return
        if decoded is None:
            return
        if is_control:
            self._on_control(decoded, position)
        if not position.is_new:
            return
        self._counts[decoded.type] += 1
        if decoded.type == IDLE_RECORD:
            self.coverage.note_idle(position.time)
        if wrong is not None:
            self._note_contradiction(wrong, position)
        if decoded.message is None or wrong is not None:
            return
        message, topics = decoded.message, self._topics
        topics.on_record(message, position.time)
        found = highlight(message, position.time, topics, show_secrets=self._show_secrets)
        if found is None:
            return
        self._quoted_size += sum(map(len, found))
        is_short = self._quoted_size <= _QUOTED_MAX
        if is_short and len(self._summary.highlights) < RAFT_HIGHLIGHT_COUNT_MAX:
            self._summary.highlights.append(Highlight(position.offset, position.time, *found))
        else:
            self._summary.hidden += 1

    def _note_contradiction(self, wrong: Contradiction, position: RecordPosition) -> None:
        if len(self.events) < RAFT_EVENT_COUNT_MAX:
            self.events.append(contradiction_event(wrong, position.time, position.epoch))

    def _note_truncation(self, extent: Extent, time: float, end: int) -> None:
        offset, epoch = extent.base_offset, extent.epoch
        text = f"log is overwritten from offset {offset}: the records that were there are lost"
        if extent.last_time is not None:
            text = f"replaces records of an earlier epoch from offset {offset} on, of another log"
        details = {"offset": offset, "end": end}
        if len(self.events) < RAFT_EVENT_COUNT_MAX:
            self.events.append(RaftEvent(time, "truncation", text, epoch, None, details))
        if self._on_truncation is not None:
            self._on_truncation(offset, epoch, time)

    def _note_problem(self, text: str) -> None:
        if len(self._summary.problems) < _PROBLEM_COUNT_MAX:
            self._summary.problems.append(text)


def extent_of(batch: Batch, *, is_file: bool) -> Extent:
    """Return the extent of a batch; the times of its records count where it is from a file."""
    first, last = batch.base_timestamp, batch.max_timestamp
    has_times = is_file and last > 0
    return Extent(
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        (first if 0 < first <= last else last) / 1000 if has_times else None,
        last / 1000 if has_times else None,
        batch.is_valid if is_file else True,
    )


def contradiction_event(wrong: Contradiction, time: float, epoch: int | None) -> RaftEvent:
    """Return the event of a record that contradicts those before it."""
    text = f"the record at offset {wrong.offset} contradicts those before it: {wrong.record}"
    text += f", but {wrong.state}"
    return RaftEvent(time, "contradiction", text, epoch, None, wrong._asdict())


def clock_event(step: Backwards) -> RaftEvent:
    """Return the event of a record that is older than the one before it."""
    seconds = step.before - step.time
    text = (
        f"the record at offset {step.offset} is {duration_text(seconds)} older than the one before "
        "it: times do not order these records"
    )
    details = {"offset": step.offset, "seconds": seconds}
    return RaftEvent(step.time, "clock", text, step.epoch, None, details)


def _time_of(written: float, seen: float | None) -> float:
    """Return when a record was written: by the frames' clock, unless it is clearly older."""
    return written if seen is None or seen - written > _HISTORY_S else seen
