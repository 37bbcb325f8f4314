"""ListPartitionReassignments, version 0: there are none. Source: KIP-455."""

from __future__ import annotations

from kraftwire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import NOT_CONTROLLER_TEXT, is_active
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> ListPartitionReassignmentsResponse:
    """Answer with an empty list on the active controller."""
    if not request.from_client_listener and not is_active(context):
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER_TEXT
        )
    return ListPartitionReassignmentsResponse()
