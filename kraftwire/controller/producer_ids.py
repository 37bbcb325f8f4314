"""AllocateProducerIds: blocks of producer ids for brokers. Rules: C-PID.

Source: Kafka's `ProducerIdControlManager`.
"""

from __future__ import annotations

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.step import StepResult
from kraftwire.errors import ApiError
from kraftwire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftwire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kraftwire.messages.producer_ids_record import ProducerIdsRecord
from kraftwire.protocol.error_codes import ErrorCode

BLOCK = 1000
_LAST = 2**63 - 1 - BLOCK


def allocate_producer_ids(cluster: Cluster, request: AllocateProducerIdsRequest) -> StepResult:
    """Allocate the next block of ids, none of them again, to a broker. Raises: ApiError."""
    broker = cluster.image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return StepResult(AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    start = cluster.image.next_producer_id
    if start > _LAST:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "there are no producer ids left")
    record = ProducerIdsRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=start + BLOCK
    )
    response = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK)
    return StepResult(response, [(record, 0)])
