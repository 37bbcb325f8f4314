"""Changes of ACLs, users and tokens, from the request to what a node allows then."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from kraftwire.messages import alter_client_quotas_request as quotas
from kraftwire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from kraftwire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftwire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftwire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftwire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftwire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftwire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftwire.node.config_security import AuthorizerSettings, ListenerSecurity, NodeSecurity
from kraftwire.properties import Properties
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.acls import ALLOW, CLUSTER_NAME, LITERAL, Operation, ResourceType
from kraftwire.security.principal import Principal
from kraftwire.security.settings import SecuritySettings
from kraftwire.security.tokens import TokenSettings
from tests.support.nodes.stub import StubNode, answer_of, deciding, request_of

pytestmark = pytest.mark.trio

ALICE = Principal("User", "alice")
TOKEN_OF_ALICE = Principal("User", "alice", is_token=True)
CLUSTER = (ResourceType.CLUSTER, CLUSTER_NAME)
AUTHORIZED = NodeSecurity(authorizer=AuthorizerSettings(frozenset(), False))

CREATION = CreateAclsRequest(
    creations=[
        AclCreation(
            resource_type=ResourceType.CLUSTER,
            resource_name=CLUSTER_NAME,
            resource_pattern_type=LITERAL,
            principal="User:alice",
            host="*",
            operation=Operation.ALTER,
            permission_type=ALLOW,
        )
    ]
)
DELETION = DeleteAclsRequest(
    filters=[
        DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
    ]
)


async def test_acls_take_effect_once_they_are_committed() -> None:
    """The authorizer asks the image (C-ACL-2, C-ACL-3)."""
    async with deciding(security=AUTHORIZED) as node:
        await answer_of(node, request_of(CREATION, 3, to="peer"))
        decision = node.image.acls.find_decision(ALICE, "1.2.3.4", Operation.ALTER, CLUSTER)
        assert decision is not None
        assert decision.is_allowed
        answer = await answer_of(node, request_of(DELETION, 3, to="peer"))
        assert len(answer.filter_results[0].matching_acls) == 1
        assert node.image.acls.find_decision(ALICE, "1.2.3.4", Operation.ALTER, CLUSTER) is None


async def test_acls_that_would_have_no_effect_are_refused() -> None:
    """Also where another node leads (C-ACL-1)."""
    for node, code in (
        (StubNode(), ErrorCode.SECURITY_DISABLED),
        (StubNode(security=AUTHORIZED), ErrorCode.NOT_CONTROLLER),
    ):
        created = await answer_of(node, request_of(CREATION, 3, to="peer"))
        deleted = await answer_of(node, request_of(DELETION, 3, to="peer"))
        assert created.results[0].error_code == deleted.filter_results[0].error_code == code


USERS = AlterUserScramCredentialsRequest(
    deletions=[ScramCredentialDeletion(name="alice", mechanism=1)],
    upsertions=[ScramCredentialUpsertion(name="bob", mechanism=1)],
)
QUOTAS = AlterClientQuotasRequest(
    entries=[
        quotas.EntryData(
            entity=[quotas.EntityData(entity_type="user", entity_name="alice")],
            ops=[quotas.OpData(key="producer_byte_rate", value=1.0)],
        )
    ]
)


async def test_other_nodes_refuse_each_user_and_each_entity() -> None:
    """A client finds its own names in the answer (C-ERR-5)."""
    node = StubNode()
    answer = await answer_of(node, request_of(USERS, 0, to="peer"))
    code = ErrorCode.NOT_CONTROLLER
    found = [(one.user, one.error_code) for one in answer.results]
    assert found == [("alice", code), ("bob", code)]
    answer = await answer_of(node, request_of(QUOTAS, 1, to="peer"))
    (refused,) = answer.entries
    assert refused.error_code == code
    assert [(part.entity_type, part.entity_name) for part in refused.entity] == [("user", "alice")]


async def test_a_read_only_listener_changes_neither_users_nor_quotas() -> None:
    """The error stands in every element: the responses have no other place."""
    node = StubNode()
    for message, version, results in ((USERS, 0, "results"), (QUOTAS, 1, "entries")):
        request = request_of(message, version, to="peer", from_read_only_listener=True)
        found = getattr(await answer_of(node, request), results)
        assert {one.error_code for one in found} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


async def test_a_request_without_users_needs_no_controller() -> None:
    """As in Kafka (C-API-3)."""
    request = request_of(AlterUserScramCredentialsRequest(), 0, to="peer")
    assert (await answer_of(StubNode(), request)).results == []


TOKENS = TokenSettings(b"secret", 1000, 100, 50)
TOKEN_REQUESTS = (
    (CreateDelegationTokenRequest(), 3),
    (RenewDelegationTokenRequest(hmac=b"x"), 2),
    (ExpireDelegationTokenRequest(hmac=b"x"), 2),
)


def with_listener(protocol: str, **more: Any) -> NodeSecurity:
    """A node whose controllers' listener has a protocol."""
    security = ListenerSecurity(SecuritySettings(protocol, Properties([], "node.properties")))
    return NodeSecurity({"CONTROLLER": security}, **more)


@pytest.mark.parametrize(
    ("security", "more", "is_allowed"),
    [
        (NodeSecurity(), {}, False),
        (NodeSecurity(), {"is_forwarded": True}, True),
        (NodeSecurity(), {"principal": TOKEN_OF_ALICE, "is_forwarded": True}, False),
        (with_listener("SSL"), {}, False),
        (with_listener("SSL"), {"principal": ALICE}, True),
        (with_listener("SASL_PLAINTEXT"), {"principal": ALICE}, True),
        (with_listener("SASL_SSL"), {"principal": TOKEN_OF_ALICE}, False),
    ],
)
async def test_tokens_are_for_those_who_log_in(
    security: NodeSecurity, more: dict[str, Any], is_allowed: bool
) -> None:
    """And not by a token: nobody could take their rights away (C-TOK-1)."""
    async with deciding(security=security) as node:
        for message, version in TOKEN_REQUESTS:
            answer = await answer_of(node, request_of(message, version, to="peer", **more))
            code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            expected = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED if is_allowed else code
            assert answer.error_code == expected
            assert answer.expiry_timestamp_ms == (-1 if not is_allowed or version == 2 else 0)


async def test_a_token_is_given_and_taken_away() -> None:
    """By request, and in the end by the controller itself (C-TOK-2, C-TOK-6)."""
    async with deciding(security=with_listener("SASL_SSL", tokens=TOKENS)) as node:
        request = request_of(CreateDelegationTokenRequest(), 3, to="peer", principal=ALICE)
        answers = [await answer_of(node, request) for _ in range(2)]
        assert [answer.error_code for answer in answers] == [0, 0]
        assert set(node.image.tokens) == {answer.token_id for answer in answers}
        expiry = ExpireDelegationTokenRequest(hmac=answers[0].hmac, expiry_time_period_ms=-1)
        taken = await answer_of(node, request_of(expiry, 2, to="peer", principal=ALICE))
        assert taken.error_code == 0
        assert list(node.image.tokens) == [answers[1].token_id]
        node.clock_ms += 101
        await answer_of(node, request)
        await wait_all_tasks_blocked()
        assert answers[1].token_id not in node.image.tokens
        assert len(node.image.tokens) == 1


async def test_a_read_only_listener_gives_no_tokens() -> None:
    """They are records of the log."""
    for message, version in TOKEN_REQUESTS:
        request = request_of(message, version, to="peer", from_read_only_listener=True)
        answer = await answer_of(StubNode(), request)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
