"""The progress of groups: committed offsets, ends of partitions, records of share groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire.capture.recorded import REST_S
from kraftwire.decode.body.context import TopicNames
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.groups.members import Groups
from kraftwire.story.groups.model import Group, Member, Offsets, TopicPartition
from kraftwire.story.observed_exchange import ObservedExchange, count_records

# The partitions that groups commit, over all of a story; further ones are only counted.
GROUP_OFFSETS_MAX = 100_000

_LATEST = -1


class Lag:
    """Gathers committed offsets, ends of partitions, and the lag between them."""

    def __init__(self, groups: Groups, names: TopicNames) -> None:
        self.ends: dict[TopicPartition, int] = {}
        # Partition -> when its end was seen last.
        self._seen: dict[TopicPartition, float] = {}
        self._groups = groups
        self._names = names
        self._count = 0
        # Partition -> the offsets that groups have committed for it.
        self._interested: dict[TopicPartition, list[Offsets]] = {}

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add the offsets in a response."""
        if exchange.request_body is not None:
            _READERS[exchange.api](self, exchange)

    # -- what groups commit --------------------------------------------------------------------

    def on_commit(self, exchange: ObservedExchange) -> None:
        """Add the offsets of OffsetCommit or TxnOffsetCommit."""
        request = exchange.request_body
        group = self._groups.group(request.group_id)
        if group is None:
            return
        member = (
            self._groups.present(group, request.member_id, exchange) if request.member_id else None
        )
        errors = _errors(exchange.response_body)
        for topic, each in _pairs(request.topics):
            error = errors.get((_key(topic), each.partition_index), 0)
            if error:
                self._groups.refuse(group, member, exchange, error_name(error))
                continue
            place = self._name(topic), each.partition_index
            offsets = self.note_commit(group, place, each.committed_offset, exchange.response_time)
            if offsets is not None:
                offsets.commits += 1
                offsets.client = member.label if member else exchange.client_id

    def on_fetched_offsets(self, exchange: ObservedExchange) -> None:
        """Add the offsets in an answer to OffsetFetch."""
        response = exchange.response_body
        found = [(each.group_id, each.topics) for each in response.groups]
        for id, topics in found or [(exchange.request_body.group_id, response.topics)]:
            group = self._groups.group(id)
            for topic, each in _pairs(topics) if group is not None else ():
                place = self._name(topic), each.partition_index
                if group is not None and each.committed_offset >= 0 and not each.error_code:
                    self.note_commit(group, place, each.committed_offset, exchange.response_time)

    def on_share_state(self, exchange: ObservedExchange) -> None:
        """Add the start offsets of WriteShareGroupState: all records before them are done.

        Brokers write these to the share coordinator, so only traffic among brokers shows them.
        """
        group = self._groups.group(exchange.request_body.group_id, "share")
        errors = {
            (topic.topic_id, each.partition): each.error_code
            for topic in exchange.response_body.results
            for each in topic.partitions
        }
        for topic, each in _pairs(exchange.request_body.topics) if group is not None else ():
            error = errors.get((topic.topic_id, each.partition))
            if group is None or error or each.start_offset < 0:
                continue
            name = self._names.name(None, topic.topic_id) or topic.topic_id.hex()
            offsets = self.note_commit(
                group, (name, each.partition), each.start_offset, exchange.response_time,
                done=max(0, each.delivery_complete_count),
            )
            if offsets is not None:
                offsets.commits += 1

    def note_commit(
        self, group: Group, place: TopicPartition, offset: int, time: float, *, done: int = 0
    ) -> Offsets | None:
        """Note an offset that a group has committed; return None beyond the limit of partitions."""
        offsets = self._offsets(group, place)
        if offsets is not None:
            offsets.committed, offsets.done, offsets.time = offset, done, time
            self._compare(offsets, self._seen.get(place, time))
            self._measure(offsets, self.ends.get(place), time)
        return offsets

    def _offsets(self, group: Group, place: TopicPartition) -> Offsets | None:
        found = group.offsets.get(place)
        if found is None:
            if self._count >= GROUP_OFFSETS_MAX:
                return None
            self._count += 1
            found = group.offsets[place] = Offsets()
            self._interested.setdefault(place, []).append(found)
        return found

    # -- where partitions end ------------------------------------------------------------------

    def on_fetch(self, exchange: ObservedExchange) -> None:
        """Add the high watermarks in an answer to Fetch."""
        for topic in exchange.response_body.responses:
            name = self._names.name(topic.topic, topic.topic_id)
            for each in topic.partitions if name else ():
                if not each.error_code and name:
                    self.note_end(
                        (name, each.partition_index), each.high_watermark, exchange.response_time
                    )

    def on_list(self, exchange: ObservedExchange) -> None:
        """Add the latest offsets in an answer to ListOffsets."""
        timestamps = {
            (topic.name, each.partition_index): each.timestamp
            for topic, each in _pairs(exchange.request_body.topics)
        }
        for topic, each in _pairs(exchange.response_body.topics):
            place = topic.name, each.partition_index
            if timestamps.get(place) == _LATEST and not each.error_code:
                self.note_end(
                    place, (each.old_style_offsets or [each.offset])[0], exchange.response_time
                )

    def on_produce(self, exchange: ObservedExchange) -> None:
        """Add the ends of acknowledged batches."""
        counts = {
            (_key(topic), part.index): count_records("", part.index, part.records).records
            for topic in exchange.request_body.topic_data
            for part in topic.partition_data
        }
        for topic in exchange.response_body.responses:
            name = self._names.name(topic.name, topic.topic_id)
            for each in topic.partition_responses if name else ():
                count = counts.get((_key(topic), each.index), 0)
                if name and count and not each.error_code and each.base_offset >= 0:
                    self.note_end(
                        (name, each.index), each.base_offset + count, exchange.response_time
                    )

    def note_end(self, place: TopicPartition, end: int, time: float) -> None:
        """Note the end of a partition, if it is larger than the known one."""
        known = self.ends.get(place, -1)
        if end < 0 or end < known or (known < 0 and len(self.ends) >= GROUP_OFFSETS_MAX):
            return
        self.ends[place] = end
        before, self._seen[place] = self._seen.get(place, time), time
        if end == known and time - before <= REST_S:
            return
        for offsets in self._interested.get(place, ()):
            self._compare(offsets, time)
            self._measure(offsets, end, time)

    def _compare(self, offsets: Offsets, seen: float) -> None:
        """Determine whether a committed offset and the end of its partition belong together."""
        first, last = sorted((offsets.time, seen))
        offsets.is_old = offsets.committed is not None and not self._groups.is_together(first, last)

    def _measure(self, offsets: Offsets, end: int | None, time: float) -> None:
        lag = offsets.lag(end)
        if lag is not None and (offsets.lag_max is None or lag > offsets.lag_max):
            offsets.lag_max, offsets.lag_max_time = lag, time

    def _name(self, topic: Any) -> str:
        id = getattr(topic, "topic_id", None)
        return self._names.name(topic.name, id) or (id.hex() if id else "")


_READERS = {
    "Fetch": Lag.on_fetch,
    "ListOffsets": Lag.on_list,
    "OffsetCommit": Lag.on_commit,
    "OffsetFetch": Lag.on_fetched_offsets,
    "Produce": Lag.on_produce,
    "TxnOffsetCommit": Lag.on_commit,
    "WriteShareGroupState": Lag.on_share_state,
}


def _pairs(topics: Any) -> Iterator[tuple[Any, Any]]:
    """Yield topics with each of their partitions."""
    return ((topic, each) for topic in topics or () for each in topic.partitions)


def _key(topic: Any) -> tuple[str | None, bytes]:
    """Return the name or id of a topic, which match it in request and response."""
    return topic.name or None, bytes(getattr(topic, "topic_id", b""))


def _errors(body: Any) -> dict[tuple[Any, int], int]:
    return {
        (_key(topic), each.partition_index): each.error_code
        for topic, each in _pairs(body.topics)
    }


# Types of acknowledgements; a gap is an offset without a record.
_TYPES = {0: "gap", 1: "accepted", 2: "released", 3: "rejected", 4: "renewed"}


class ShareProgress:
    """Counts records by member."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add a ShareFetch or ShareAcknowledge."""
        request, response = exchange.request_body, exchange.response_body
        group = None if request is None else self._groups.group(request.group_id, "share")
        if group is None:
            return
        member = self._groups.present(group, request.member_id, exchange)
        if response.error_code:
            self._groups.refuse(group, member, exchange, error_name(response.error_code))
        if member is None:
            return
        for topic in request.topics:
            for part in topic.partitions:
                _acknowledge(member, part.acknowledgement_batches)
        for topic in response.responses:
            for part in topic.partitions:
                _acquire(member, getattr(part, "acquired_records", ()))
                if part.error_code:
                    self._groups.refuse(group, member, exchange, error_name(part.error_code))


def _acquire(member: Member, acquired: Any) -> None:
    for each in acquired:
        count = each.last_offset - each.first_offset + 1
        member.acquired += count
        if each.delivery_count > 1:
            member.redelivered += count


def _acknowledge(member: Member, batches: Any) -> None:
    for each in batches:
        types = each.acknowledge_types
        # A single type stands for all records of the batch.
        count = each.last_offset - each.first_offset + 1 if len(types) == 1 else 1
        for kind in types:
            name = _TYPES.get(kind, f"type {kind}")
            member.acknowledged[name] = member.acknowledged.get(name, 0) + count
