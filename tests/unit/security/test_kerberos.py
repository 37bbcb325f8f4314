"""GSSAPI's exchange around a context, without a library (SEC-S50, SEC-S51)."""

from __future__ import annotations

import pytest

from kraftwire.errors import ApiError
from kraftwire.security.credentials import GSSAPI
from kraftwire.security.errors import PROTOCOL, TICKET, Refused, SaslError
from kraftwire.security.jaas import JaasError, parse_entry
from kraftwire.security.kerberos import (
    KerberosAccount,
    KerberosClient,
    KerberosCredentials,
    KerberosError,
    KerberosServer,
)
from kraftwire.security.sasl_client import mechanism_client

KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"


class FakeContext:
    """An end that is complete after so many steps, and signs by a letter."""

    initiator = "alice@R"

    def __init__(self, *answers: bytes | KerberosError | None) -> None:
        self._answers = list(answers)

    @property
    def is_complete(self) -> bool:
        """Whether no step is left."""
        return not self._answers

    def step(self, _token: bytes | None) -> bytes | None:
        """Return the next answer."""
        answer = self._answers.pop(0)
        if isinstance(answer, KerberosError):
            raise answer
        return answer

    def wrap(self, data: bytes) -> bytes:
        """Sign."""
        return b"w" + data

    def unwrap(self, data: bytes) -> bytes:
        """Verify."""
        if not data.startswith(b"w"):
            raise KerberosError("not signed")
        return data[1:]


def client(*answers: bytes | KerberosError | None) -> KerberosClient:
    """The client's side."""
    made = mechanism_client(GSSAPI, KerberosCredentials(FakeContext(*answers)), "")
    assert isinstance(made, KerberosClient)
    return made


def server(*answers: bytes | KerberosError | None) -> KerberosServer:
    """The listener's side; names are shortened at the @."""
    return KerberosServer(FakeContext(*answers), lambda name: name.partition("@")[0])


def test_a_client_with_proof_of_the_server() -> None:
    """Request, nothing, the choice of no layer; then it is done."""
    one = client(b"request", None)
    assert one.first() == b"request"
    assert one.answer(b"proof") == b""
    assert not one.is_complete
    assert one.answer(b"w\x07\x00\x10\x00") == b"w\x01\0\0\0"
    assert one.is_complete
    assert one.answer(b"") is None


@pytest.mark.parametrize("offer", [b"w\x06\x00\x10\x00", b"w\x01\0\0", b"w"])
def test_a_server_that_wants_another_layer(offer: bytes) -> None:
    """It is not given one; TLS is for that."""
    one = client(b"request", None)
    one.first()
    one.answer(b"proof")
    with pytest.raises(SaslError, match="security layer") as failed:
        one.answer(offer)
    assert failed.value.check == PROTOCOL


def test_an_offer_that_is_not_signed() -> None:
    """Whoever sends it is not the server that was proved."""
    one = client(b"request", None)
    one.first()
    one.answer(b"proof")
    with pytest.raises(SaslError, match="not signed"):
        one.answer(b"\x01\0\0\0")


def test_what_the_library_refuses() -> None:
    """It is final, unless no KDC could be asked."""
    with pytest.raises(SaslError, match="unknown") as failed:
        client(KerberosError("unknown")).first()
    assert failed.value.check == TICKET
    with pytest.raises(ApiError) as lost:
        client(KerberosError("away", is_transient=True)).first()
    assert not isinstance(lost.value, SaslError)


@pytest.mark.parametrize("proof", [b"proof", None])
def test_a_listener(proof: bytes | None) -> None:
    """A client that wants no proof gets the offer in its place; whom to act as has no effect."""
    one = server(proof)
    if proof:
        assert one.answer(b"request") == proof
        assert one.name is None
    assert one.answer(b"" if proof else b"request") == b"w\x01\0\0\0"
    assert one.name is None
    assert one.answer(b"w\x01\0\0\0somebody") == b""
    assert one.name == "alice"
    assert (one.is_token, one.lifetime_end_ms) == (False, None)


@pytest.mark.parametrize("chosen", [b"w\x02\0\0\0", b"w\x05\0\0\0", b"w\x01\0", b"\x01\0\0\0"])
def test_what_a_listener_refuses(chosen: bytes) -> None:
    """Another layer, too little, what is not signed."""
    one = server(b"proof")
    one.answer(b"request")
    one.answer(b"")
    with pytest.raises(Refused):
        one.answer(chosen)
    assert one.name is None


def test_a_token_out_of_turn() -> None:
    """After the proof a client has nothing to say."""
    one = server(b"proof")
    one.answer(b"request")
    with pytest.raises(Refused, match="nothing to say"):
        one.answer(b"w\x01\0\0\0")


def test_accounts() -> None:
    """Where keys and tickets come from; paths are spelled as for Java."""

    def account(options: str, *, is_server: bool = False) -> KerberosAccount:
        return KerberosAccount.of(parse_entry(f"{KRB5} {options};"), is_server=is_server)

    keys = 'useKeyTab=TRUE keyTab="file:///k" principal="a@R"'
    assert account(keys) == KerberosAccount("a@R", "/k")
    assert account("useTicketCache=true") == KerberosAccount(None, None, "")
    assert account(f'{keys} useTicketCache=true ticketCache="FILE:/c"') == KerberosAccount(
        "a@R", "/k", "/c"
    )
    for options, is_server, text in (
        ("", False, "or useTicketCache"),
        ("useTicketCache=true", True, "expected useKeyTab=true with keyTab and principal$"),
        ("useKeyTab=true principal=a", False, "keyTab is missing"),
        ("useKeyTab=true keyTab=k", True, "principal is missing"),
    ):
        with pytest.raises(JaasError, match=text):
            account(options, is_server=is_server)
