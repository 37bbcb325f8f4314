"""Delegation tokens: created, renewed, expired on request, and removed when their time is over.

Rules: C-TOK. Source: Kafka's `DelegationTokenControlManager`; KIP-48, KIP-900.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.elections import PERIODIC_RECORDS_MAX
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.controller.versions import METADATA_VERSION, WITH_TOKENS
from kraftwire.errors import ApiError
from kraftwire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftwire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftwire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kraftwire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftwire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftwire.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.principal import Principal
from kraftwire.security.tokens import DelegationTokens, has_expired

_USER = "User"
_LAST_MS = 2**63 - 1
_EXPIRED = "the token's life is over"


def create_token(
    cluster: Cluster,
    request: CreateDelegationTokenRequest,
    requester: Principal,
    *,
    new_id: Callable[[], str],
) -> StepResult:
    """Create a token for its requester, or for another owner; `new_id` makes its id (C-TOK-2)."""
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    response = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
    )
    try:
        tokens = _enabled_tokens(cluster)
    except ApiError as error:
        response.error_code = error.code
        return StepResult(response)
    renewers = [Principal(one.principal_type, one.principal_name) for one in request.renewers]
    if not owner.type or any(one.type != _USER for one in renewers):
        response.error_code = ErrorCode.INVALID_PRINCIPAL_TYPE
        return StepResult(response)
    life_ms = _limited_ms(tokens.settings.max_lifetime_ms, request.max_lifetime_ms)
    record = DelegationTokenRecord(
        owner=str(owner),
        requester=str(requester),
        renewers=[str(one) for one in renewers],
        issue_timestamp=cluster.epoch_ms,
        max_timestamp=_time_after(cluster, life_ms),
        token_id=new_id(),
    )
    _expire_in(cluster, record, tokens.settings.expiry_ms)
    response.issue_timestamp_ms = record.issue_timestamp
    response.expiry_timestamp_ms = record.expiration_timestamp
    response.max_timestamp_ms = record.max_timestamp
    response.token_id, response.hmac = record.token_id, tokens.hmac(record.token_id)
    return StepResult(response, [(record, 0)])


def renew_token(
    cluster: Cluster, request: RenewDelegationTokenRequest, principal: Principal
) -> StepResult:
    """Postpone the expiry of a token. Raises: ApiError (C-TOK-3)."""
    tokens, token = _find_token(cluster, request.hmac)
    if has_expired(token, cluster.epoch_ms):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, _EXPIRED)
    _check_owner(token, principal)
    _expire_in(cluster, token, _limited_ms(tokens.settings.expiry_ms, request.renew_period_ms))
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=token.expiration_timestamp)
    return StepResult(response, [(token, 0)])


def expire_token(
    cluster: Cluster, request: ExpireDelegationTokenRequest, principal: Principal
) -> StepResult:
    """Set the period until a token expires; one below 0 removes it. Raises: ApiError (C-TOK-3)."""
    _, token = _find_token(cluster, request.hmac)
    _check_owner(token, principal)
    period_ms = request.expiry_time_period_ms
    if period_ms < 0:
        response = ExpireDelegationTokenResponse(expiry_timestamp_ms=cluster.epoch_ms)
        return StepResult(response, [_removal_record(token)])
    if has_expired(token, cluster.epoch_ms):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, _EXPIRED)
    _expire_in(cluster, token, period_ms)
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=token.expiration_timestamp)
    return StepResult(response, [(token, 0)])


def remove_expired(cluster: Cluster) -> list[VersionedRecord]:
    """Remove tokens whose life is over, some at a time (C-TOK-6)."""
    expired = [
        token
        for token in cluster.image.tokens.values()
        if has_expired(token, cluster.epoch_ms)
    ]
    return [_removal_record(token) for token in expired[:PERIODIC_RECORDS_MAX]]


def _enabled_tokens(cluster: Cluster) -> DelegationTokens:
    """Return the tokens' key and limits. Raises: ApiError if tokens are disabled."""
    if cluster.tokens is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "this node knows no secret")
    if cluster.level < WITH_TOKENS:
        text = f"tokens need {METADATA_VERSION} {WITH_TOKENS}, which is {cluster.level}"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    return cluster.tokens


def _find_token(cluster: Cluster, hmac: bytes) -> tuple[DelegationTokens, DelegationTokenRecord]:
    """Return the tokens' key and limits, and a copy of the token with an HMAC. Raises: ApiError."""
    tokens = _enabled_tokens(cluster)
    token = tokens.find(cluster.image.tokens, hmac)
    if token is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "no token has this HMAC")
    return tokens, copy(token)


def _check_owner(token: DelegationTokenRecord, principal: Principal) -> None:
    if str(principal) not in (token.owner, *token.renewers):
        text = f"{principal} neither owns the token nor renews it"
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, text)


def _limited_ms(allowed_ms: int, wanted_ms: int) -> int:
    return min(allowed_ms, wanted_ms) if wanted_ms > 0 else allowed_ms


def _expire_in(cluster: Cluster, token: DelegationTokenRecord, period_ms: int) -> None:
    """Set when a token expires, which is never after its longest life."""
    token.expiration_timestamp = min(token.max_timestamp, _time_after(cluster, period_ms))


def _time_after(cluster: Cluster, period_ms: int) -> int:
    return min(cluster.epoch_ms + period_ms, _LAST_MS)


def _removal_record(token: DelegationTokenRecord) -> VersionedRecord:
    return RemoveDelegationTokenRecord(token_id=token.token_id), 0
