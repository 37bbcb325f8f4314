"""DeleteTopics, versions 1 to 6: refused for the quorum's topic; others do not exist.

Source: KIP-4, KIP-516 (topics named by id).
"""

from __future__ import annotations

from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, is_quorum_topic, refusal
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]

_WITH_IDS = 6


async def handle(request: Request, context: Context) -> DeleteTopicsResponse:
    """Refuse each topic."""
    message = body(request, DeleteTopicsRequest)
    topics = message.topics
    if request.version < _WITH_IDS:
        topics = [DeleteTopicState(name=name) for name in message.topic_names]
    return DeleteTopicsResponse(
        responses=[_refused(request, context, topic) for topic in topics]
    )


def _refused(request: Request, context: Context, topic: DeleteTopicState) -> DeletableTopicResult:
    code, text = refusal(request, context)
    if code != ErrorCode.NOT_CONTROLLER and not is_quorum_topic(
        context, topic.name, topic.topic_id
    ):
        code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name}"
        if topic.name is None:
            code, text = ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id"
    return DeletableTopicResult(
        name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=text
    )
