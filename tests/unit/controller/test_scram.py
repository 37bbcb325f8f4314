"""AlterUserScramCredentials (C-SCR)."""

from __future__ import annotations

import pytest

from kraftwire.controller.scram import alter_credentials
from kraftwire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.credentials import SCRAM_SHA_512, PasswordCredentials
from kraftwire.security.scram import (
    ScramClient,
    ScramCredential,
    ScramServer,
    ScramUser,
    salted_password,
)
from tests.support.nodes.controlled_cluster import ControlledCluster
from tests.support.security.scram_decoys import decoys

SHA_256, SHA_512 = 1, 2
SALT = b"salt"


def password(
    name: str, mechanism: int = SHA_512, iterations: int = 4096
) -> ScramCredentialUpsertion:
    """A user with the password of the same name."""
    salted = salted_password(SCRAM_SHA_512, name, SALT, iterations)
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=SALT,
        salted_password=salted,
    )


def gone(name: str, mechanism: int = SHA_512) -> ScramCredentialDeletion:
    """A credential that is deleted."""
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    cluster: ControlledCluster, *changes: ScramCredentialDeletion | ScramCredentialUpsertion
) -> dict[str, int]:
    """Change credentials; returns the codes by user."""
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in changes if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in changes if isinstance(one, ScramCredentialUpsertion)],
    )
    answer = cluster.do(alter_credentials(cluster.view, request))
    assert len(answer.results) == len({one.user for one in answer.results})
    return {one.user: one.error_code for one in answer.results}


def test_a_new_user_can_log_in() -> None:
    """With the password from which the salted one was made (C-SCR-2)."""
    cluster = ControlledCluster()
    assert alter(cluster, password("alice")) == {"alice": 0}
    record = cluster.image.scram.find("alice", SHA_512)
    assert record is not None
    credential = ScramCredential(
        record.salt, record.stored_key, record.server_key, record.iterations
    )
    user = ScramUser("alice", credential)
    server = ScramServer(SCRAM_SHA_512, lambda *_: user, nonce="n", decoy_of=decoys(SCRAM_SHA_512))
    client = ScramClient(SCRAM_SHA_512, PasswordCredentials("alice", "alice"), "c")
    proof = client.answer(server.answer(client.first()))
    assert proof is not None
    client.answer(server.answer(proof))
    assert (client.is_complete, server.name) == (True, "alice")


def test_a_user_is_removed_for_one_mechanism() -> None:
    """The other one stays (C-SCR-1)."""
    cluster = ControlledCluster()
    alter(cluster, password("alice", SHA_256))
    alter(cluster, password("alice", SHA_512))
    assert alter(cluster, gone("alice", SHA_512)) == {"alice": 0}
    assert cluster.image.scram.find("alice", SHA_512) is None
    assert cluster.image.scram.find("alice", SHA_256) is not None
    missing = {"alice": ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(cluster, gone("alice", SHA_512)) == missing


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (password(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (
            ScramCredentialUpsertion(name="a", mechanism=SHA_256, iterations=4096, salt=SALT),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ),
        (gone("", 9), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (password("a", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (gone("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (password("a", SHA_256, 4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (password("a", SHA_256, 16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (password("a", SHA_256, 16384), ErrorCode.NONE),
    ],
)
def test_what_kafka_refuses_is_refused_alone(
    change: ScramCredentialDeletion | ScramCredentialUpsertion, code: ErrorCode
) -> None:
    """The other users of the request are changed (C-SCR-1)."""
    cluster = ControlledCluster()
    assert alter(cluster, change, password("bob")) == {change.name: code, "bob": 0}
    assert cluster.image.scram.find("bob", SHA_512) is not None


def test_a_user_who_is_named_twice_is_not_changed() -> None:
    """Users count, not mechanisms; the first error of a user stands (C-SCR-1)."""
    cluster = ControlledCluster()
    alter(cluster, password("alice"))
    twice = {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert alter(cluster, gone("alice"), password("alice")) == twice
    assert alter(cluster, gone("alice"), gone("alice"), gone("alice")) == twice
    assert alter(cluster, password("alice", SHA_256), password("alice")) == twice
    assert cluster.image.scram.find("alice", SHA_512) is not None
    missing = {"alice": ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(cluster, gone("alice", SHA_256), password("alice")) == missing


def test_old_levels_have_no_users() -> None:
    """They came with 3.5-IV2 (C-SCR-1)."""
    code = {"alice": ErrorCode.UNSUPPORTED_VERSION}
    assert alter(ControlledCluster(10, has_elr=False), password("alice")) == code
    assert alter(ControlledCluster(11, has_elr=False), password("alice")) == {"alice": 0}
