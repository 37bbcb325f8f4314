"""CreateTopics, versions 2 to 7: refused for every topic.

An invalid name is INVALID_TOPIC_EXCEPTION and the quorum's topic INVALID_REQUEST, as in Kafka;
everything else is POLICY_VIOLATION.

Source: KIP-4; Kafka's `ControllerApis.createTopics`.
"""

from __future__ import annotations

from kraftwire.messages.create_topics_request import CreateTopicsRequest
from kraftwire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, is_topic_name, refusal
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> CreateTopicsResponse:
    """Refuse each topic."""
    message = body(request, CreateTopicsRequest)
    return CreateTopicsResponse(
        topics=[_refused(request, context, topic.name) for topic in message.topics]
    )


def _refused(request: Request, context: Context, name: str) -> CreatableTopicResult:
    code, text = refusal(request, context)
    if code != ErrorCode.NOT_CONTROLLER:
        if name == context.config.topic.name:
            code, text = ErrorCode.INVALID_REQUEST, f"{name} is the quorum's own topic"
        elif not is_topic_name(name):
            code = ErrorCode.INVALID_TOPIC_EXCEPTION
            text = f"{name!r} is not a topic name: 1 to 249 ASCII letters, digits, . _ -"
    return CreatableTopicResult(name=name, error_code=code, error_message=text)
