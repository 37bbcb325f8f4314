"""The outputs of `kraftwire story topics`."""

from __future__ import annotations

from typing import TextIO

from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.stories.topics.json_form import topics_to_json
from kraftwire.inspect.stories.topics.text import write_topics
from kraftwire.inspect.stories.writer import StoryWriter, write_json
from kraftwire.story.observed_exchange import Talk
from kraftwire.story.topics import APIS, FORWARDED, TopicStory, TopicTest, any_topic

__all__ = ["TopicsJsonWriter", "TopicsWriter"]


class TopicsWriter(StoryWriter):
    """Writes the story of topics as text."""

    apis = APIS
    forwarded = FORWARDED
    takes_files = False

    def __init__(
        self,
        stream: TextIO,
        *,
        topics: TopicNames,
        show_secrets: bool = False,
        is_wanted_topic: TopicTest = any_topic,
        **options: object,
    ) -> None:
        """Write to a stream. Other arguments: as for `StoryWriter`."""
        super().__init__(stream, topics=topics, **options)
        self.story = TopicStory(topics, show_secrets=show_secrets, is_wanted=is_wanted_topic)

    def see_request(self, talk: Talk) -> None:
        """Ignore a request: it is used only with its response."""

    def see_response(self, talk: Talk) -> None:
        """Pass a response to the story."""
        self.story.see_response(talk)

    def write(self, stream: TextIO) -> None:
        """Write the story as text."""
        write_topics(self.story, self.start or self.end, self.end, stream)


class TopicsJsonWriter(TopicsWriter):
    """Writes the story of topics as one JSON object."""

    def write(self, stream: TextIO) -> None:
        """Write the story as JSON."""
        start = self.start or self.end
        write_json(stream, lambda: topics_to_json(self.story, start, self.end))
