"""The story of groups in print: for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from kraftwire.capture.framing.frames import Ending
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.files.kinds import FileKind, partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.text import GREEN, RED, YELLOW, count_text, duration_text
from kraftwire.errors import WireError
from kraftwire.inspect.stories.text import (
    event_lines,
    events_to_json,
    head_line,
    spans_to_json,
    write_lines,
)
from kraftwire.inspect.stories.writer import StoryWriter, write_json
from kraftwire.inspect.tables import Table, wants_colour, width_of, write_table
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.records.json_form import decode_record
from kraftwire.records.reader import Batch
from kraftwire.story.groups.model import Generation, Group, Member, assigned
from kraftwire.story.groups.story import APIS, ENDS, GroupStory
from kraftwire.story.observed_exchange import ObservedExchange
from kraftwire.wire.json_form import uuid_from_text

# The largest number of rows of a table; the JSON form has all that are kept.
_ROWS_MAX = 200
_STYLES = {"error": RED, "gone": RED, "leave": YELLOW, "rebalance": GREEN}


def write_groups(story: GroupStory, start: float, end: float, stream: TextIO) -> None:
    """Write all sections of the story."""
    is_coloured, width = wants_colour(stream), width_of(stream)
    groups = [each for each in story.groups.by_id.values() if each.kind or each.offsets]
    if not groups:
        write_lines(stream, ["Groups: none was seen"])
        return
    head = head_line("Groups", start, end, story.events, is_coloured=is_coloured)
    write_lines(stream, [f"{head}; {count_text(len(groups), 'group')}", ""])
    events = event_lines(
        story.events.in_order(), start, width=width, overflow=story.events.overflow,
        styles=_STYLES if is_coloured else None,
    )
    if events:
        write_lines(stream, [*events, ""])
    tables = (
        _groups(story, groups), _members(groups, start), _shares(groups), _lag(story, groups, start)
    )
    for table in tables:
        if table.rows:
            table.rows = list(_once(table.rows))
            write_table(table, stream, width, rows_max=_ROWS_MAX)
    if story.groups.overflow:
        more = count_text(story.groups.overflow, "time")
        write_lines(stream, [f"There were more groups or members than are kept: {more}."])


def _groups(story: GroupStory, groups: list[Group]) -> Table:
    head = (
        "group", "kind", "members", "epoch", "rebalances", "longest", "in all", "lag", "commits"
    )
    table = Table("Groups at the end", head, right=(2, 3, 4, 5, 6, 7, 8), names=(0,))
    for each in sorted(groups, key=lambda group: group.id):
        took = [generation.seconds for generation in each.generations if generation.seconds]
        ends = story.lag.ends
        lags = [offsets.lag(ends.get(place)) for place, offsets in each.offsets.items()]
        known = [lag for lag in lags if lag is not None]
        count = len(each.generations) + each.generation_overflow
        table.rows.append(
            (
                each.id,
                each.kind or "no members",
                f"{len(each.present)} of {len(each.members)}" if each.members else "",
                _epoch(each),
                f"{count:,}" if count else "",
                duration_text(max(took)) if took else "",
                duration_text(sum(took)) if took else "",
                f"{sum(known):,}" if known else "",
                f"{sum(offsets.commits for offsets in each.offsets.values()):,}",
            )
        )
    return table


def _epoch(group: Group) -> str:
    """Return the last generation, or the members' own where none began during the capture."""
    numbers = [each.number for each in group.generations[-1:]]
    numbers = numbers or [each.number for each in group.members.values() if each.number >= 0]
    return str(max(numbers)) if numbers else ""


def _members(groups: list[Group], start: float) -> Table:
    head = ("group", "member", "from", "to", "how it ended", "assignment at the end")
    table = Table("Members", head, right=(2, 3), names=(0, 1), lists=(4, 5))
    for group in sorted(groups, key=lambda each: each.id):
        for each in group.members.values():
            table.rows.append((group.id, *_member(each, group, start)))
    return table


def _member(each: Member, group: Group, start: float) -> tuple[str, ...]:
    is_tasks = group.kind == "streams"
    return (
        each.label,
        f"{each.joined - start:+.1f}",
        "" if each.ended is None else f"{each.ended - start:+.1f}",
        each.ending or f"last heard at {each.last_seen - start:+.1f}",
        "" if each.assignment is None else assigned(each.assignment, is_tasks=is_tasks),
    )


def _shares(groups: list[Group]) -> Table:
    head = ("group", "member", "acquired", "again", "accepted", "released", "rejected", "others")
    table = Table(
        "Records of share groups (again: acquired once more)",
        head, right=range(2, 8), names=(0, 1),
    )
    for group in groups:
        for each in group.members.values():
            if not each.acquired and not each.acknowledged:
                continue
            done = dict(each.acknowledged)
            named = [done.pop(name, 0) for name in ("accepted", "released", "rejected")]
            counts = [each.acquired, each.redelivered, *named, sum(done.values())]
            table.rows.append(
                (group.id, each.label, *(f"{count:,}" if count else "" for count in counts))
            )
    return table


def _lag(story: GroupStory, groups: list[Group], start: float) -> Table:
    head = ("group", "partition", "committed", "end", "lag", "largest lag", "at", "commits")
    table = Table("Offsets and lag, in records", head, right=range(2, 8), names=(0, 1))
    for group in sorted(groups, key=lambda each: each.id):
        for place, offsets in sorted(group.offsets.items()):
            end = story.lag.ends.get(place)
            lag = offsets.lag(end)
            table.rows.append(
                (
                    group.id,
                    f"{place[0]}-{place[1]}",
                    "" if offsets.committed is None else str(offsets.committed),
                    "" if end is None else str(end),
                    "" if lag is None else f"{lag:,}",
                    f"{offsets.lag_max:,}" if offsets.lag_max is not None else "",
                    f"{offsets.lag_max_time - start:+.1f}" if offsets.lag_max else "",
                    f"{offsets.commits:,}",
                )
            )
    return table


def _once(rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield the rows; the group is left out where it is that of the row before."""
    group = ""
    for row in rows:
        yield row if row[0] != group else ("", *row[1:])
        group = row[0]


def groups_to_json(story: GroupStory, start: float, end: float) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "start": start,
        "end": end,
        "notRecorded": spans_to_json(story.events.not_recorded),
        "events": events_to_json(story.events, subject="group", who="member", number="generation"),
        "eventOverflow": story.events.overflow,
        "groups": [
            _group(story, each)
            for each in story.groups.by_id.values()
            if each.kind or each.offsets
        ],
    }


def _group(story: GroupStory, group: Group) -> dict[str, Any]:
    return {
        "group": group.id,
        "kind": group.kind,
        "members": [_member_json(each) for each in group.members.values()],
        "generations": [_generation(each) for each in group.generations],
        "offsets": [_offsets(story, group, place) for place in sorted(group.offsets)],
    }


def _member_json(each: Member) -> dict[str, Any]:
    return {
        "memberId": each.id,
        "member": each.label,
        "clientId": each.client_id,
        "host": each.host,
        "instanceId": each.instance_id,
        "joined": each.joined,
        "lastSeen": each.last_seen,
        "ended": each.ended,
        "ending": each.ending or None,
        "assignment": each.assignment,
        "acquired": each.acquired,
        "redelivered": each.redelivered,
        "acknowledged": each.acknowledged,
    }


def _generation(each: Generation) -> dict[str, Any]:
    return {
        "number": each.number,
        "start": each.start,
        "end": each.end,
        "seconds": each.seconds,
        "reasons": each.reasons,
        "members": each.size,
        "leader": each.leader or None,
        "protocol": each.protocol or None,
    }


def _offsets(story: GroupStory, group: Group, place: tuple[str, int]) -> dict[str, Any]:
    offsets = group.offsets[place]
    end = story.lag.ends.get(place)
    return {
        "topic": place[0],
        "partition": place[1],
        "committed": offsets.committed,
        "end": end,
        "done": offsets.done,
        "lag": offsets.lag(end),
        "lagMax": offsets.lag_max,
        "lagMaxTime": offsets.lag_max_time or None,
        "commits": offsets.commits,
        "lastBy": offsets.client or None,
    }


_NS = 1_000_000_000
_MS = 1000
_GROUP, _METADATA = "group", "metadata"
_FAMILIES = (_GROUP, _METADATA)


class GroupsWriter(StoryWriter):
    """Writes the story of groups as text."""

    apis = APIS

    def __init__(self, stream: TextIO, *, topics: TopicNames) -> None:
        """Write to a stream. Arguments: as for `StoryWriter`."""
        super().__init__(stream, topics=topics)
        self.story = GroupStory(topics, self.recordings)

    def on_request(self, exchange: ObservedExchange) -> None:
        """Pass a request to the story."""
        self.story.on_request(exchange)

    def on_response(self, exchange: ObservedExchange) -> None:
        """Pass a response to the story."""
        self.story.on_response(exchange)

    def unwanted(self, decoded: Frame, /) -> None:
        """Take the ends of partitions also from frames that are not wanted."""
        if decoded.api_name in ENDS:
            self.frame(decoded)

    def ending(self, ending: Ending) -> None:
        """Pass the end of a connection to the story."""
        self.story.on_ending(ending.connection, ending.time_ns / _NS)

    def file_line(self, line: FileLine) -> None:
        """Pass a coordinator's records, ids of topics and ends of partitions to the story."""
        if line.kind is FileKind.PARTITION_METADATA:
            self._on_topic_id(line)
        batch = line.batch
        if batch is None or line.kind is not FileKind.LOG:
            return
        if line.family in _FAMILIES:
            self._on_records(batch, line.family)
        elif (found := partition_of(Path(line.json["file"]))) is not None:
            time = batch.max_timestamp / _MS
            self.story.lag.note_end((found.topic, found.index), batch.last_offset + 1, time)

    def _on_records(self, batch: Batch, family: str) -> None:
        for row in batch.iter_salvage():
            try:
                record = decode_record(row, family, is_control=batch.is_control)
            except WireError:
                continue
            if record is None or row.timestamp < 0:
                continue
            if isinstance(record.message, TopicRecord):
                self._topics.note(record.message.name, record.message.topic_id)
            elif family == _GROUP:
                self.note_time(row.timestamp / _MS)
                self.story.on_record(record, row.timestamp / _MS)

    def _on_topic_id(self, line: FileLine) -> None:
        """Learn a topic's id from a file in a partition's folder, which has the topic's name."""
        data, found = line.json["data"], partition_of(Path(line.json["file"]))
        text = data.get("topic_id") if isinstance(data, dict) else None
        if found is not None and isinstance(text, str):
            try:
                self._topics.note(found.topic, uuid_from_text(text))
            except ValueError:
                return

    def _finish(self) -> None:
        self.story.events.note_holes(self.holes)
        self.story.groups.leave_unrecorded(self.holes)
        self.story.finish()

    def write(self, stream: TextIO) -> None:
        """Write the story as text."""
        self._finish()
        write_groups(self.story, self.start or self.end, self.end, stream)


class GroupsJsonWriter(GroupsWriter):
    """Writes the story of groups as one JSON object."""

    def write(self, stream: TextIO) -> None:
        """Write the story as JSON."""
        self._finish()
        write_json(stream, lambda: groups_to_json(self.story, self.start or self.end, self.end))
