"""FindCoordinator, versions 0 to 6: refused, as there are no groups and no transactions.

On COORDINATOR_NOT_AVAILABLE Java's admin client would retry as fast as it can; NOT_COORDINATOR
makes it give up. Consumers, which need a group name even if they read by assignment, retry at
intervals and read on; librdkafka would report other codes to its user. For transactions the code is
final.

Source: KIP-699 (several keys in one request).
"""

from __future__ import annotations

from kraftwire.messages.find_coordinator_request import FindCoordinatorRequest
from kraftwire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]

_WITH_KEYS = 4
_WITH_MESSAGE = 1

# Groups, transactions, share groups.
_CODES = {
    0: ErrorCode.NOT_COORDINATOR,
    1: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    2: ErrorCode.NOT_COORDINATOR,
}
_TEXT = "this quorum has no group coordinators: assign partitions instead of subscribing"


async def handle(request: Request, _: Context) -> FindCoordinatorResponse:
    """Refuse every key."""
    message = body(request, FindCoordinatorRequest)
    code = _CODES.get(message.key_type, ErrorCode.INVALID_REQUEST)
    if request.version < _WITH_KEYS:
        text = _TEXT if request.version >= _WITH_MESSAGE else ""
        return FindCoordinatorResponse(
            error_code=code, error_message=text, node_id=-1, host="", port=-1
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key=key, node_id=-1, host="", port=-1, error_code=code, error_message=_TEXT
            )
            for key in message.coordinator_keys
        ]
    )
