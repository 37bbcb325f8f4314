"""The story of groups in print: for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TextIO

from kraftwire.capture.framing.frames import Ending
from kraftwire.capture.recorded import Recordings
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.files.kinds import FileKind, partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.text import GREEN, RED, YELLOW, count_text, duration_text
from kraftwire.errors import WireError
from kraftwire.inspect.attributes_json import attributes_to_json
from kraftwire.inspect.stories.writer import StoryWriter
from kraftwire.inspect.tables import Table
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.records.json_form import decode_record
from kraftwire.records.reader import Batch
from kraftwire.story.groups.model import Generation, Group, Member, assigned
from kraftwire.story.groups.story import APIS, ENDS, GroupStory
from kraftwire.wire.json_form import uuid_from_text


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


def _group(story: GroupStory, group: Group) -> dict[str, Any]:
    return {
        "group": group.id,
        "kind": group.kind,
        "members": [_member_json(each) for each in group.members.values()],
        "generations": [_generation(each) for each in group.generations],
        "offsets": [_offsets(story, group, place) for place in sorted(group.offsets)],
    }


def _member_json(each: Member) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "memberId=id member=label clientId host instanceId joined lastSeen ended ending? "
        "assignment acquired redelivered acknowledged",
    )


def _generation(each: Generation) -> dict[str, Any]:
    keys = "number start end seconds reasons members=size leader? protocol?"
    return attributes_to_json(each, keys)


def _offsets(story: GroupStory, group: Group, place: tuple[str, int]) -> dict[str, Any]:
    offsets = group.offsets[place]
    end = story.lag.ends.get(place)
    return attributes_to_json(
        offsets,
        "topic partition committed end done lag lagMax lagMaxTime? commits lastBy=client?",
        topic=place[0],
        partition=place[1],
        end=end,
        lag=offsets.lag(end),
    )


_NS = 1_000_000_000
_MS = 1000
_GROUP, _METADATA = "group", "metadata"
_FAMILIES = (_GROUP, _METADATA)


class GroupsWriter(StoryWriter):
    """Writes the story of groups."""

    apis = APIS
    title = "Groups"
    noun = "group"
    styles: ClassVar = {"error": RED, "gone": RED, "leave": YELLOW, "rebalance": GREEN}
    event_keys = "time kind group=subject member=who? generation=number text details count last"
    rows_max = 200

    def __init__(self, stream: TextIO, *, topics: TopicNames, as_json: bool = False) -> None:
        """Write to a stream. `topics` are names from frames."""
        recordings = Recordings()
        self.story = GroupStory(topics, recordings)
        super().__init__(stream, self.story, recordings, as_json=as_json)
        self._topics = topics

    @property
    def _seen(self) -> list[Group]:
        return [each for each in self.story.groups.by_id.values() if each.kind or each.offsets]

    @property
    def count(self) -> int:
        """How many groups there were."""
        return len(self._seen)

    @property
    def overflow_text(self) -> str:
        """The number of groups and members that were left out."""
        count = self.story.groups.overflow
        kept = "There were more groups or members than are kept"
        return f"{kept}: {count_text(count, 'time')}." if count else ""

    def tables(self) -> Sequence[Table]:
        """Return the groups, their members, the records of share groups, and offsets with lag."""
        groups, start = self._seen, self.start
        tables = (
            _groups(self.story, groups),
            _members(groups, start),
            _shares(groups),
            _lag(self.story, groups, start),
        )
        for table in tables:
            table.rows = list(_once(table.rows))
        return tables

    def rows_to_json(self) -> dict[str, Any]:
        """Return the groups."""
        return {"groups": [_group(self.story, each) for each in self._seen]}

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
