"""Delegation tokens (C-TOK)."""

from __future__ import annotations

import hmac
from dataclasses import replace
from itertools import count
from typing import Any
from unittest import mock

import pytest

from kraftwire.controller import tokens as decisions
from kraftwire.controller.cluster import Cluster
from kraftwire.controller.tokens import create_token, expire_token, remove_expired, renew_token
from kraftwire.errors import ApiError
from kraftwire.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kraftwire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftwire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.principal import Principal
from kraftwire.security.tokens import DelegationTokens, TokenSettings
from tests.support.nodes.controlled_cluster import ControlledCluster

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
SECRET = b"secret"
LIFE, EXPIRY = 1000, 100


class TokenCluster(ControlledCluster):
    """A cluster with tokens, and a clock."""

    def __init__(self, level: int = 30) -> None:
        super().__init__(level, has_elr=False)
        self.now_ms = 5000
        settings = TokenSettings(SECRET, LIFE, EXPIRY, 10)
        self.tokens: DelegationTokens | None = DelegationTokens(settings)
        self._numbers = count(1)

    @property
    def view(self) -> Cluster:
        """The cluster as it is now."""
        return replace(super().view, tokens=self.tokens, epoch_ms=self.now_ms)

    def create(self, who: Principal = ALICE, *renewers: Principal, **more: Any) -> Any:
        """Create a token; returns the answer."""
        named = [CreatableRenewers(principal_type=r.type, principal_name=r.name) for r in renewers]
        request = CreateDelegationTokenRequest(renewers=named, max_lifetime_ms=-1)
        for key, value in more.items():
            setattr(request, key, value)
        new_id = lambda: f"token-{next(self._numbers)}"  # noqa: E731
        return self.do(create_token(self.view, request, who, new_id=new_id))

    def renew(self, key: bytes, who: Principal = ALICE, period_ms: int = -1) -> int:
        """Renew a token; returns when it expires."""
        request = RenewDelegationTokenRequest(hmac=key, renew_period_ms=period_ms)
        return int(self.do(renew_token(self.view, request, who)).expiry_timestamp_ms)

    def expire(self, key: bytes, who: Principal = ALICE, period_ms: int = -1) -> int:
        """Expire a token; returns when."""
        request = ExpireDelegationTokenRequest(hmac=key, expiry_time_period_ms=period_ms)
        return int(self.do(expire_token(self.view, request, who)).expiry_timestamp_ms)


def refusal(ask: Any, *arguments: Any) -> int:
    """The code with which something is refused."""
    with pytest.raises(ApiError) as raised:
        ask(*arguments)
    return raised.value.code


def test_a_token_has_an_owner_a_life_and_an_hmac() -> None:
    """The HMAC is that of its id, and in no record (C-TOK-2)."""
    cluster = TokenCluster()
    answer = cluster.create(ALICE, BOB)
    assert (answer.error_code, answer.token_id) == (0, "token-1")
    assert answer.hmac == hmac.digest(SECRET, b"token-1", "sha512")
    assert (answer.issue_timestamp_ms, answer.expiry_timestamp_ms) == (5000, 5100)
    assert answer.max_timestamp_ms == 6000
    stored = cluster.image.tokens["token-1"]
    assert stored.owner == stored.requester == "User:alice"
    assert stored.renewers == ["User:bob"]
    other = cluster.create(BOB, owner_principal_type="User", owner_principal_name="carol")
    assert (other.principal_name, other.token_requester_principal_name) == ("carol", "bob")
    assert cluster.create(max_lifetime_ms=40).expiry_timestamp_ms == 5040
    assert cluster.create(max_lifetime_ms=2**63 - 1).max_timestamp_ms == 6000
    assert b"secret" not in repr(cluster.tokens and cluster.tokens.settings).encode()


def test_tokens_that_cannot_be() -> None:
    """Checks are in Kafka's order (C-TOK-1, C-TOK-2)."""
    cluster = TokenCluster(13)
    assert cluster.create().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert refusal(cluster.renew, b"x") == ErrorCode.UNSUPPORTED_VERSION
    cluster.tokens = None
    assert cluster.create().error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert cluster.create().principal_name == "alice"
    assert refusal(cluster.renew, b"x") == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    cluster = TokenCluster(14)
    group = Principal("Group", "g")
    assert cluster.create(ALICE, BOB, group).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    untyped = cluster.create(owner_principal_name="bob", owner_principal_type=None)
    assert untyped.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert cluster.image.tokens == {}
    assert cluster.create().error_code == 0


def test_owner_and_renewers_renew_a_token() -> None:
    """Up to its longest life, as long as it lives; who asked for it may not (C-TOK-3)."""
    cluster = TokenCluster()
    asked = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    key = cluster.create(CAROL, BOB, **asked).hmac
    cluster.now_ms = 5100
    assert cluster.renew(key) == 5200
    assert cluster.renew(key, BOB, 50) == 5150
    assert cluster.renew(key, BOB, 5000) == 5200
    assert refusal(cluster.renew, key, CAROL) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert refusal(cluster.renew, b"x") == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    for cluster.now_ms in range(5200, 6000, 100):
        cluster.renew(key)
    cluster.now_ms = 5990
    assert cluster.renew(key) == 6000
    cluster.now_ms = 6001
    assert refusal(cluster.renew, key, CAROL) == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_owner_and_renewers_expire_a_token() -> None:
    """At once, or in a while; another principal is told so also when it has expired (C-TOK-3)."""
    cluster = TokenCluster()
    key, other = cluster.create(ALICE, BOB).hmac, cluster.create().hmac
    assert cluster.expire(key, BOB, 30) == 5030
    cluster.now_ms = 5031
    assert refusal(cluster.expire, key, CAROL, 1) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert refusal(cluster.expire, key, ALICE, 1) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert cluster.expire(key) == 5031
    assert refusal(cluster.expire, key) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert cluster.expire(other, period_ms=2**63 - 1) == 6000
    assert list(cluster.image.tokens) == ["token-2"]


def test_tokens_whose_life_is_over_are_removed() -> None:
    """Some at a time (C-TOK-6)."""
    cluster = TokenCluster()
    for _ in range(3):
        cluster.create()
    cluster.now_ms = 5100
    assert remove_expired(cluster.view) == []
    cluster.create()
    cluster.now_ms = 5101
    with mock.patch.object(decisions, "PERIODIC_RECORDS_MAX", 2):
        cluster.replay(remove_expired(cluster.view))
    assert list(cluster.image.tokens) == ["token-3", "token-4"]
    cluster.replay(remove_expired(cluster.view))
    assert list(cluster.image.tokens) == ["token-4"]


def test_hmacs_are_worked_out_once() -> None:
    """Also after tokens went, and after another image was loaded."""
    cluster = TokenCluster()
    keys = [cluster.create().hmac for _ in range(3)]
    tokens = cluster.tokens
    assert tokens is not None
    with mock.patch.object(tokens, "hmac", wraps=tokens.hmac) as worked_out:
        assert tokens.find(cluster.image.tokens, keys[1]) is cluster.image.tokens["token-2"]
        cluster.expire(keys[0])
        keys.append(cluster.create().hmac)
        worked_out.reset_mock()
        assert tokens.find(cluster.image.tokens, keys[3]) is cluster.image.tokens["token-4"]
        assert worked_out.call_count == 1
        assert tokens.find(cluster.image.tokens, keys[0]) is None
        assert tokens.find(dict(cluster.image.tokens), keys[2]) is not None
