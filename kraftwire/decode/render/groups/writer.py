"""The outputs of ``--groups``."""

from __future__ import annotations

from typing import TextIO

from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.pairing.outbox import Ending
from kraftwire.decode.render.groups.json_form import groups_to_json
from kraftwire.decode.render.groups.story import APIS, GroupStory
from kraftwire.decode.render.groups.text import write_groups
from kraftwire.decode.render.story.talk import Talk
from kraftwire.decode.render.story.writer import StoryWriter, write_json
from kraftwire.decode.run.sinks import HearsEndings

__all__ = ["GroupsJsonWriter", "GroupsWriter"]

_NS = 1_000_000_000


class GroupsWriter(StoryWriter, HearsEndings):
    """Writes the story of groups as text."""

    apis = APIS

    def __init__(self, stream: TextIO, *, topics: TopicNames, **options: object) -> None:
        """Write to a stream. Shape: as of `StoryWriter`."""
        super().__init__(stream, topics=topics, **options)
        self.story = GroupStory(topics)

    def see_request(self, talk: Talk) -> None:
        """Tell the story."""
        self.story.see_request(talk)

    def see_response(self, talk: Talk) -> None:
        """Tell the story."""
        self.story.see_response(talk)

    def ending(self, ending: Ending) -> None:
        """Tell the story of a connection that ends."""
        self.story.see_ending(ending.connection, ending.time_ns / _NS)

    def write(self, stream: TextIO) -> None:
        """Write the story."""
        self.story.finish()
        write_groups(self.story, self.start or self.end, self.end, stream)


class GroupsJsonWriter(GroupsWriter):
    """Writes the story of groups as one JSON object."""

    def write(self, stream: TextIO) -> None:
        """Write the object."""
        self.story.finish()
        write_json(stream, lambda: groups_to_json(self.story, self.start or self.end, self.end))
