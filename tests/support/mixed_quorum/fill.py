"""Many metadata records at once: client quotas, which any active Java controller takes."""

from __future__ import annotations

from kraftwire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftwire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.mixed_quorum.quorum import MixedQuorum
from tests.support.mixed_quorum.waiting import wait_until
from tests.support.node_process import ask

__all__ = ["fill"]

_PER_REQUEST = 5000

# What a change of the leader answers for changes that it cannot promise.
_AGAIN = {ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT}


def fill(quorum: MixedQuorum, count: int, prefix: str = "user") -> None:
    """Append as many records, one for the quota of each made-up user.

    Repeated after a change of the leader, so that there may be more.
    """
    for first in range(0, count, _PER_REQUEST):
        users = [f"{prefix}-{i}" for i in range(first, min(first + _PER_REQUEST, count))]
        wait_until(lambda users=users: _alter(quorum, users), f"{len(users)} quotas")


def _alter(quorum: MixedQuorum, users: list[str]) -> bool:
    entries = [
        EntryData(
            entity=[EntityData(entity_type="user", entity_name=user)],
            ops=[OpData(key="producer_byte_rate", value=1e6, remove=False)],
        )
        for user in users
    ]
    port = quorum.members[quorum.leader()].port
    answer = ask(port, AlterClientQuotasRequest(entries=entries), 1)
    assert isinstance(answer, AlterClientQuotasResponse)
    codes = {entry.error_code for entry in answer.entries}
    assert codes <= {ErrorCode.NONE, *_AGAIN}, codes
    return codes == {ErrorCode.NONE}
