"""Many metadata records at once: client quotas, which any active Java controller accepts."""

from __future__ import annotations

import functools

from kraftwire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftwire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.kafka.mixed_quorum.quorum import MixedQuorum
from tests.support.kafka.mixed_quorum.waiting import wait_until
from tests.support.nodes.process import ask

# Few users, whose quotas change again and again: a long log with a small state.
_USERS = 500

# The error during a change of leader, when the outcome is unknown.
_AGAIN = {ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT}


def fill(quorum: MixedQuorum, count: int) -> None:
    """Append this many records or a few more, one for each change of an invented user's quota."""
    for rate in range(-(-count // _USERS)):
        wait_until(functools.partial(_alter, quorum, 1e6 + rate), "changed quotas")


def _alter(quorum: MixedQuorum, rate: float) -> bool:
    entries = [
        EntryData(
            entity=[EntityData(entity_type="user", entity_name=f"user-{number}")],
            ops=[OpData(key="producer_byte_rate", value=rate, remove=False)],
        )
        for number in range(_USERS)
    ]
    port = quorum.members[quorum.leader()].port
    answer = ask(port, AlterClientQuotasRequest(entries=entries), 1)
    assert isinstance(answer, AlterClientQuotasResponse)
    codes = {entry.error_code for entry in answer.entries}
    assert codes <= {ErrorCode.NONE, *_AGAIN}, codes
    return codes == {ErrorCode.NONE}
