"""Produce, versions 0 to 11: refused with TOPIC_AUTHORIZATION_FAILED for every partition.

Only the quorum writes its topic. The API is offered from version 0 because librdkafka uses
compression only with brokers that offer it. A producer with acks 0 gets no answer, so an error
closes its connection, as in Kafka.

Source: Kafka's `KafkaApis.handleProduceRequest`.
"""

from __future__ import annotations

from kraftwire.messages.produce_request import ProduceRequest
from kraftwire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import NO_TOPICS_TEXT, body
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]

_WITH_MESSAGE = 8


async def handle(request: Request, _: Context) -> ProduceResponse | None:
    """Refuse, or close the connection if the producer expects no answer."""
    message = body(request, ProduceRequest)
    if message.acks == 0:
        return None
    text = NO_TOPICS_TEXT if request.version >= _WITH_MESSAGE else None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(
                        index=partition.index,
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        base_offset=-1,
                        error_message=text,
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in message.topic_data
        ]
    )
