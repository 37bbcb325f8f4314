"""The outputs of `kraftwire story transactions`."""

from __future__ import annotations

from typing import TextIO

from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.stories.transactions.json_form import transactions_to_json
from kraftwire.inspect.stories.transactions.text import write_transactions
from kraftwire.inspect.stories.writer import StoryWriter, write_json
from kraftwire.story.observed_exchange import Talk
from kraftwire.story.transactions import APIS, TransactionStory

__all__ = ["TransactionsJsonWriter", "TransactionsWriter"]


class TransactionsWriter(StoryWriter):
    """Writes the story of transactions as text."""

    apis = APIS
    takes_files = False

    def __init__(self, stream: TextIO, *, topics: TopicNames, **options: object) -> None:
        """Write to a stream. Arguments: as for `StoryWriter`."""
        super().__init__(stream, topics=topics, **options)
        self.story = TransactionStory(topics)

    def see_request(self, talk: Talk) -> None:
        """Pass a request to the story."""
        self.story.see_request(talk)

    def see_response(self, talk: Talk) -> None:
        """Pass a response to the story."""
        self.story.see_response(talk)

    def write(self, stream: TextIO) -> None:
        """Write the story as text."""
        self.story.finish()
        write_transactions(self.story, self.start or self.end, self.end, stream)


class TransactionsJsonWriter(TransactionsWriter):
    """Writes the story of transactions as one JSON object."""

    def write(self, stream: TextIO) -> None:
        """Write the story as JSON."""
        self.story.finish()
        start = self.start or self.end
        write_json(stream, lambda: transactions_to_json(self.story, start, self.end))
