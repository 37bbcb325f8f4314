"""SCRAM: RFC vectors, both sides against each other, and what each side refuses (SEC-S30 to 34)."""

from __future__ import annotations

import base64

import pytest

from kraftwire.security.credentials import SCRAM_SHA_256, SCRAM_SHA_512, PasswordCredentials
from kraftwire.security.errors import SERVER, Refused, SaslError
from kraftwire.security.scram import (
    ITERATIONS_MAX,
    ScramClient,
    ScramCredential,
    ScramServer,
    ScramUser,
    mechanism_number,
    mechanism_of,
    salted_password,
)
from tests.support.security.scram_decoys import decoys

SALT = b"a salt of 16 byt"


def credential(mechanism: str, password: str, iterations: int = 4096) -> ScramCredential:
    """What a server keeps of a user."""
    salted = salted_password(mechanism, password, SALT, iterations)
    return ScramCredential.of(mechanism, salted, SALT, iterations)


def server(mechanism: str, users: dict[str, ScramUser], **tokens: ScramUser) -> ScramServer:
    """A server that knows these users and delegation tokens."""
    return ScramServer(
        mechanism,
        lambda name, is_token: (tokens if is_token else users).get(name),
        nonce="server",
        decoy_of=decoys(mechanism),
    )


def alice(mechanism: str = SCRAM_SHA_256) -> dict[str, ScramUser]:
    """A user whose password is `open`."""
    return {"alice": ScramUser("alice", credential(mechanism, "open"))}


def test_the_exchange_of_rfc_7677() -> None:
    """Byte for byte."""
    client = ScramClient(
        SCRAM_SHA_256, PasswordCredentials("user", "pencil"), "rOprNGfwEbeRWgbNEkqO"
    )
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = client.answer(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == (f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode())
    assert not client.is_complete
    assert client.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    assert client.is_complete


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
@pytest.mark.parametrize(
    ("name", "password"), [("alice", "open"), ("a,b=c", "p,=\0"), ("x", "sof\xadt ǆ ① \xa0")]
)
def test_both_sides(mechanism: str, name: str, password: str) -> None:
    """Names are escaped, passwords are plain UTF-8 (SEC-S31)."""
    sides = server(mechanism, {name: ScramUser(name, credential(mechanism, password))})
    client = ScramClient(mechanism, PasswordCredentials(name, password), "nonce")
    token: bytes | None = client.first()
    while token is not None:
        token = client.answer(sides.answer(token))
    assert client.is_complete
    assert (sides.name, sides.is_token, sides.lifetime_end_ms) == (name, False, None)


def test_a_delegation_token_stands_for_its_owner() -> None:
    """User is the token's id, password its HMAC."""
    owner = ScramUser("owner", credential(SCRAM_SHA_512, "hmac"), expiry_ms=1000)
    sides = server(SCRAM_SHA_512, {}, tokenId=owner)
    client = ScramClient(SCRAM_SHA_512, PasswordCredentials("tokenId", "hmac", True), "nonce")
    assert client.first().endswith(b",tokenauth=true")
    proof = client.answer(sides.answer(client.first()))
    assert proof is not None
    assert client.answer(sides.answer(proof)) is None
    assert (sides.name, sides.is_token, sides.lifetime_end_ms) == ("owner", True, 1000)


def test_unknown_users_fail_like_known_ones() -> None:
    """At the second message, with the same salt each time (SEC-S33)."""
    answers = []
    for name in ("alice", "bob", "bob", "carol"):
        sides = server(SCRAM_SHA_256, alice())
        client = ScramClient(SCRAM_SHA_256, PasswordCredentials(name, "wrong"), "nonce")
        answers.append(sides.answer(client.first()))
        proof = client.answer(answers[-1])
        assert proof is not None
        with pytest.raises(Refused) as caught:
            sides.answer(proof)
        assert (str(caught.value), caught.value.is_public) == (
            "unknown user or wrong password",
            False,
        )
        assert sides.name is None
    assert answers[1] == answers[2] != answers[3]
    assert {len(answer) for answer in answers[1:]} == {len(answers[1])}


@pytest.mark.parametrize(
    "first",
    [
        b"n,,n=alice,r=x",
        b"n,a=alice,n=alice,r=x",
        b"n,,m=new,n=alice,r=x",
        b"n,,n=alice,r=x,ext=y,other=z",
    ],
)
def test_what_a_first_message_may_have(first: bytes) -> None:
    """An authorization id equal to the user, a reserved attribute, unknown extensions."""
    assert server(SCRAM_SHA_256, alice()).answer(first).startswith(b"r=xserver,s=")


def test_a_long_message_is_not_looked_at() -> None:
    """Half a megabyte took a tenth of a second."""
    start = b"n,,n=alice,r="
    for size, is_taken in ((4096, True), (4097, False)):
        sides = server(SCRAM_SHA_256, alice())
        first = start + b"x" * (size - len(start))
        if is_taken:
            assert sides.answer(first)
        else:
            with pytest.raises(Refused, match="longer than 4096 bytes"):
                sides.answer(first)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=a=b,r=x",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=a b",
        b"n,,n=alice,r=x,1=y",
        b"n,,n=\xc3\xa4,r=x",
        b"n,,n=alice,r=x\n",
        b"n,a=bob,n=alice,r=x",
    ],
)
def test_what_it_may_not_have(first: bytes) -> None:
    """No channel binding, and no other form than Kafka's."""
    with pytest.raises(Refused):
        server(SCRAM_SHA_256, alice()).answer(first)


def test_a_final_message_is_checked() -> None:
    """Its form, its nonce, the length of its proof; a replayed one fails, as the nonce is new."""
    client = ScramClient(SCRAM_SHA_256, PasswordCredentials("alice", "open"), "nonce")
    proof = client.answer(server(SCRAM_SHA_256, alice()).answer(client.first()))
    assert proof is not None
    head = proof.partition(b",p=")[0]
    other = head.replace(b"r=nonceserver", b"r=nonceother")
    long_proof = base64.b64encode(bytes(33))
    for bad in (b"", head, other + proof[len(head) :], head + b",p=", head + b",p=" + long_proof):
        sides = server(SCRAM_SHA_256, alice())
        sides.answer(client.first())
        with pytest.raises(Refused):
            sides.answer(bad)
    replayed = ScramServer(
        SCRAM_SHA_256,
        lambda *_: alice()["alice"],
        nonce="new",
        decoy_of=decoys(SCRAM_SHA_256),
    )
    replayed.answer(client.first())
    with pytest.raises(Refused, match="nonce"):
        replayed.answer(proof)
    weak = {"alice": ScramUser("alice", credential(SCRAM_SHA_256, "open", 4095))}
    with pytest.raises(Refused, match="4095 iterations"):
        server(SCRAM_SHA_256, weak).answer(client.first())


@pytest.mark.parametrize(
    ("challenge", "text"),
    [
        (b"r=other,s=QUFB,i=4096", "does not continue"),
        (b"r=nonceS,s=QUFB,i=4095", "4095"),
        (f"r=nonceS,s=QUFB,i={ITERATIONS_MAX + 1}".encode(), "expected 4096 to"),
        (b"r=nonceS,s=QUFB,i=" + b"9" * 5000, "expected 4096 to"),
        (b"r=nonceS,s=QUF,i=4096", "another form"),
        (b"", "another form"),
    ],
)
def test_the_client_checks_the_server(challenge: bytes, text: str) -> None:
    """A server that cannot prove itself, or would keep the client busy, is left (SEC-S34)."""
    client = ScramClient(SCRAM_SHA_256, PasswordCredentials("alice", "open"), "nonce")
    client.first()
    with pytest.raises(SaslError, match=text):
        client.answer(challenge)


@pytest.mark.parametrize("last", [b"v=" + base64.b64encode(bytes(32)), b"e=other-error", b"v=QQ=="])
def test_the_client_wants_a_signature(last: bytes) -> None:
    """Whoever does not know the credential cannot pose as the server."""
    client = ScramClient(SCRAM_SHA_256, PasswordCredentials("alice", "open"), "nonce")
    client.answer(server(SCRAM_SHA_256, alice()).answer(client.first()))
    with pytest.raises(SaslError) as caught:
        client.answer(last)
    assert caught.value.check == SERVER
    assert not client.is_complete


def test_numbers_of_mechanisms() -> None:
    """As in UserScramCredentialRecord (SEC-S35)."""
    assert [mechanism_number(name) for name in (SCRAM_SHA_256, SCRAM_SHA_512)] == [1, 2]
    assert [mechanism_of(number) for number in (1, 2, 3)] == [SCRAM_SHA_256, SCRAM_SHA_512, None]
    assert "open" not in repr(PasswordCredentials("alice", "open"))
    assert "salt" not in repr(credential(SCRAM_SHA_256, "x")).replace("ScramCredential", "")
