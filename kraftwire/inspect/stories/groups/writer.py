"""The outputs of `kraftwire story groups`."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from kraftwire.capture.connections.frame_queue import Ending
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.names import partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.errors import WireError
from kraftwire.inspect.stories.groups.json_form import groups_to_json
from kraftwire.inspect.stories.groups.text import write_groups
from kraftwire.inspect.stories.writer import StoryWriter, write_json
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.records.json_form import decode_record
from kraftwire.records.reader import Batch
from kraftwire.story.groups.story import APIS, ENDS, GroupStory
from kraftwire.story.observed_exchange import Talk
from kraftwire.wire.json_form import uuid_from_text

__all__ = ["GroupsJsonWriter", "GroupsWriter"]

_NS = 1_000_000_000
_MS = 1000
_GROUP, _METADATA = "group", "metadata"
_FAMILIES = (_GROUP, _METADATA)


class GroupsWriter(StoryWriter):
    """Writes the story of groups as text."""

    apis = APIS

    def __init__(self, stream: TextIO, *, topics: TopicNames, **options: object) -> None:
        """Write to a stream. Arguments: as for `StoryWriter`."""
        super().__init__(stream, topics=topics, **options)
        self.story = GroupStory(topics)

    def see_request(self, talk: Talk) -> None:
        """Pass a request to the story."""
        self.story.see_request(talk)

    def see_response(self, talk: Talk) -> None:
        """Pass a response to the story."""
        self.story.see_response(talk)

    def unwanted(self, decoded: DecodedFrame, /) -> None:
        """Take the ends of partitions also from frames that are not wanted."""
        if decoded.api_name in ENDS:
            self.frame(decoded)

    def ending(self, ending: Ending) -> None:
        """Pass the end of a connection to the story."""
        self.story.see_ending(ending.connection, ending.time_ns / _NS)

    def file_line(self, line: FileLine) -> None:
        """Pass a coordinator's records, ids of topics and ends of partitions to the story."""
        if line.kind is FileKind.PARTITION_METADATA:
            self._see_topic_id(line)
        batch = line.batch
        if batch is None or line.kind is not FileKind.LOG:
            return
        if line.family in _FAMILIES:
            self._see_records(batch, line.family)
        elif (found := partition_of(Path(line.json["file"]))) is not None:
            time = batch.max_timestamp / _MS
            self.story.lag.note_end((found.topic, found.index), batch.last_offset + 1, time)

    def _see_records(self, batch: Batch, family: str) -> None:
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
                self.story.see_record(record, row.timestamp / _MS)

    def _see_topic_id(self, line: FileLine) -> None:
        """Learn a topic's id from a file in a partition's folder, which has the topic's name."""
        data, found = line.json["data"], partition_of(Path(line.json["file"]))
        text = data.get("topic_id") if isinstance(data, dict) else None
        if found is not None and isinstance(text, str):
            try:
                self._topics.note(found.topic, uuid_from_text(text))
            except ValueError:
                return

    def write(self, stream: TextIO) -> None:
        """Write the story as text."""
        self.story.finish()
        write_groups(self.story, self.start or self.end, self.end, stream)


class GroupsJsonWriter(GroupsWriter):
    """Writes the story of groups as one JSON object."""

    def write(self, stream: TextIO) -> None:
        """Write the story as JSON."""
        self.story.finish()
        write_json(stream, lambda: groups_to_json(self.story, self.start or self.end, self.end))
