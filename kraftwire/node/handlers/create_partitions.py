"""CreatePartitions, versions 0 to 3: refused for the quorum's topic; others do not exist.

Source: KIP-195.
"""

from __future__ import annotations

from kraftwire.messages.create_partitions_request import CreatePartitionsRequest
from kraftwire.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, topic_refusal

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> CreatePartitionsResponse:
    """Refuse each topic."""
    results = []
    for topic in body(request, CreatePartitionsRequest).topics:
        code, text = topic_refusal(request, context, topic.name)
        results.append(
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=text)
        )
    return CreatePartitionsResponse(results=results)
