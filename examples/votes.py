"""The votes in a capture, requests with their answers: `python -m examples.votes CAPTURE`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import kraftwire.decode
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse


def votes(capture: str) -> Iterator[str]:
    """A line for each vote in a capture; bodies are typed messages with Kafka's field names."""
    for exchange in kraftwire.decode.exchanges(capture):
        frame, request, response = exchange.request, exchange.request_body, exchange.response_body
        if frame and isinstance(request, VoteRequest) and isinstance(response, VoteResponse):
            wanted = request.topics[0].partitions[0]
            result = response.topics[0].partitions[0]
            time = datetime.fromtimestamp(frame.time, UTC)
            yield (
                f"{time:%H:%M:%S.%f}  epoch {wanted.replica_epoch}: node {wanted.replica_id} asks"
                f" node {request.voter_id} for a {'pre-vote' if wanted.pre_vote else 'vote'},"
                f" with its log at {wanted.last_offset}:"
                f" {'granted' if result.vote_granted else 'refused'}"
            )


if __name__ == "__main__":
    print("\n".join(votes(sys.argv[1])))
