"""The one place that authorizes requests of a node: after decoding, before the handler.

Rules SEC-A1 to SEC-A14. Every decision goes to the audit log: refusals as information, grants for
debugging. A voter's id may be pinned to a principal: then nobody else speaks for that voter, which
Kafka does not check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kraftwire import messages
from kraftwire.node.config_security import AuthorizerSettings
from kraftwire.node.context import Context, Handler, Request, has_caught_up
from kraftwire.node.logs import RateLimit, log
from kraftwire.node.turns import in_turns
from kraftwire.pieces import Pieces
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import Error, refusal
from kraftwire.protocol.versions import fetching_replica
from kraftwire.security.acls import AclIndex, Authorizer, ResourceType
from kraftwire.security.operations import Access, conceal_response, judge_request, rule_of
from kraftwire.security.principal import Principal
from kraftwire.wire.message import Message

_NO_ACLS_YET = Error(ErrorCode.UNKNOWN_SERVER_ERROR, "the authorizer has not loaded the ACLs yet")
# There is no leader without this: controllers that are no super users refuse each other's votes.
_ONLY_SUPER_USERS = "the ACLs are not loaded yet, so super.users alone are served"


class _AclsNotLoaded(Exception):
    """The ACLs are not there yet."""


class Authorization:
    """Decides about requests, by StandardAuthorizer's rules and the pins of voters.

    Without `settings` only those are refused who impersonate a voter. `refusals` bounds the log
    lines of one cause.
    """

    def __init__(
        self,
        settings: AuthorizerSettings | None,
        voter_principals: Mapping[int, Principal],
        refusals: RateLimit,
    ) -> None:
        self._voter_principals = voter_principals
        self._refusals = refusals
        self._acls: AclIndex | None = None
        self._is_loaded = False
        self._authorizer: Authorizer | None = None
        if settings is not None:
            self._authorizer = Authorizer(
                settings.super_users,
                lambda: self._acls,
                allow_if_no_acl=settings.allow_if_no_acl,
            )

    async def answer(self, request: Request, context: Context, handler: Handler) -> Message | None:
        """Answer the permitted part of a request, and refuse the rest."""
        rule = rule_of(request.message, is_controller_only=not request.from_client_listener)
        pinned = self._impersonated_voter(request)
        if pinned is not None:
            return refusal(request.message, request.version, lambda _: pinned, pinned)
        if self._authorizer is None:
            return await handler(request, context)
        self._update_acls(context)
        try:
            verdict = await in_turns(
                judge_request.in_pieces(
                    request.message,
                    request.version,
                    rule,
                    lambda access: self._allows(request, access),
                    lambda topic_id: topic_name(context, topic_id),
                )
            )
        except _AclsNotLoaded:
            self._log_refusal(request, "everything", _ONLY_SUPER_USERS)
            error = _NO_ACLS_YET
            return refusal(request.message, request.version, lambda _: error, error)
        if verdict.permitted is None:
            return None if _expects_no_answer(request) else verdict.refused
        if verdict.permitted is not request.message:
            request.message = verdict.permitted
        answer = await handler(request, context)
        if answer is None:
            return None
        await in_turns(self._conceal(request, answer))
        return verdict.joined_response(answer)

    def _conceal(self, request: Request, answer: Message) -> Pieces[None]:
        """Remove from an answer the resources that the request does not name and its principal may
        not see."""
        authorizer = self._authorizer
        assert authorizer is not None
        who, host = request.principal, request.host

        def allows(access: Access) -> bool:
            decision = authorizer.authorize(who, host, access.operation, access[1:])
            return decision is not None and decision.is_allowed

        def operations_of(kind: int, name: str) -> int:
            return authorizer.allowed_operations(who, host, (kind, name))

        return conceal_response.in_pieces(answer, allows, operations_of)

    def _allows(self, request: Request, access: Access) -> bool:
        """Return whether an access is allowed, and log the decision for audits (SEC-A7).

        Raises: _AclsNotLoaded (SEC-A4).
        """
        assert self._authorizer is not None
        if access[1:] == (ResourceType.USER, str(request.principal)):
            return True
        decision = self._authorizer.authorize(
            request.principal, request.host, access.operation, access[1:]
        )
        if decision is None:
            raise _AclsNotLoaded
        if decision.is_allowed:
            log(
                "debug",
                "allowed",
                principal=request.principal,
                operation=access,
                host=request.host,
                api=messages.API_NAMES[request.api_key],
                rule=decision.rule,
            )
        else:
            self._log_refusal(request, str(access), decision.rule)
        return decision.is_allowed

    def _log_refusal(self, request: Request, operation: str, rule: str) -> None:
        api = messages.API_NAMES[request.api_key]
        self._refusals.log(
            f"denied {api}",
            "denied",
            principal=request.principal,
            operation=operation,
            host=request.host,
            api=api,
            rule=rule,
        )

    def _update_acls(self, context: Context) -> None:
        """Use the committed ACLs, once the image has reached the high watermark (SEC-A4)."""
        self._is_loaded = self._is_loaded or has_caught_up(context)
        self._acls = context.image.acls if self._is_loaded else None

    def _impersonated_voter(self, request: Request) -> Error | None:
        """Return the error of a request in the name of a voter that belongs to somebody else."""
        for replica_id in _claimed_replicas(request.message) if self._voter_principals else ():
            owner = self._voter_principals.get(replica_id)
            if owner is not None and owner != request.principal:
                self._log_refusal(request, f"to speak for voter {replica_id}", f"it is {owner}")
                return Error(
                    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    f"voter {replica_id} belongs to another principal",
                )
        return None


def _claimed_replicas(message: Any) -> Iterator[int]:
    """Yield the replicas that a request claims to be from."""
    name = messages.API_NAMES[message.API_KEY]
    if name == "Fetch":
        yield fetching_replica(message)
    elif name == "FetchSnapshot":
        yield message.replica_id
    elif name == "UpdateRaftVoter":
        yield message.voter_id
    elif name == "ControllerRegistration":
        yield message.controller_id
    elif name in ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch"):
        for topic in message.topics:
            for partition in topic.partitions:
                yield partition.replica_id if name == "Vote" else partition.leader_id


def topic_name(context: Context, topic_id: bytes) -> str | None:
    """Return the name of the quorum's own topic, or of one in the log."""
    topic = context.config.topic
    return topic.name if topic_id == topic.topic_id else context.image.topic_name(topic_id)


def _expects_no_answer(request: Request) -> bool:
    return request.api_key == ApiKey.PRODUCE and getattr(request.message, "acks", 1) == 0
