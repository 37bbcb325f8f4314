"""Logins attacked: SEC-LOGIN. Whatever is sent, nobody gets in without a credential.

The seed of a run is printed; KRAFTWIRE_SEED replays one.
"""

from __future__ import annotations

import random

import pytest

from kraftwire.errors import WireError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.protocol.payloads import encode_request
from kraftwire.security.credentials import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    PasswordCredentials,
)
from kraftwire.security.errors import SaslError
from kraftwire.security.oauth import OAuthServer, UnsecuredValidator
from kraftwire.security.plain import PlainServer
from kraftwire.security.sasl_client import SaslClient
from kraftwire.security.sasl_server import LoginEnd, LoginSettings, SaslServer
from kraftwire.security.scram import ScramCredential, ScramServer, ScramUser, salted_password
from kraftwire.wire.message import Message
from tests.support.messages.random_messages import SEED_VARIABLE, fresh_seed
from tests.support.security.scram_decoys import decoys

ROUNDS = 3_000
EPOCH_MS = 1_700_000_000_000
_SALTED = {
    name: salted_password(name, "secret", b"salt", 4096) for name in (SCRAM_SHA_256, SCRAM_SHA_512)
}
_CREDENTIALS = {
    name: ScramCredential.of(name, salted, b"salt", 4096) for name, salted in _SALTED.items()
}


def user_of(mechanism: str, name: str) -> ScramUser | None:
    """One user."""
    return ScramUser(name, _CREDENTIALS[mechanism]) if name == "alice" else None


def settings() -> LoginSettings:
    """A listener with every mechanism, for one user whose password nobody here knows."""
    keys = [ApiVersion(api_key=key, max_version=high) for key, high in ((17, 1), (18, 4), (36, 2))]
    validator = UnsecuredValidator(required_scopes=("unheard-of",))
    return LoginSettings(
        {
            PLAIN: lambda: PlainServer({"alice": "secret"}.get),
            SCRAM_SHA_256: lambda: _scram(SCRAM_SHA_256),
            SCRAM_SHA_512: lambda: _scram(SCRAM_SHA_512),
            OAUTHBEARER: lambda: OAuthServer(lambda token: validator.validate(token, EPOCH_MS)),
        },
        dict.fromkeys(MECHANISMS, 1_000),
        lambda _: ApiVersionsResponse(api_keys=keys),
    )


def _scram(mechanism: str) -> ScramServer:
    return ScramServer(
        mechanism,
        lambda name, _: user_of(mechanism, name),
        nonce="server",
        decoy_of=decoys(mechanism),
    )


def payload_of(message: Message, version: int) -> bytes:
    """A request."""
    header = RequestHeader(request_api_key=message.API_KEY, request_api_version=version)
    return encode_request(header, message)


def wrong_login(source: random.Random) -> list[bytes]:
    """The requests of a login with another password, whole or in part, and in any order."""
    mechanism = source.choice(MECHANISMS)
    version = source.choice((0, 1, 1))
    tokens = {
        PLAIN: [b"\0alice\0wrong", b"alice\0alice\0", b"\0\0\0\0", b""],
        OAUTHBEARER: [b"n,,\x01auth=Bearer e30.e30.\x01\x01", b"\x01", b""],
    }.get(
        mechanism, [b"n,,n=alice,r=x", b"c=biws,r=xserver,p=AAAA", b"n,,n=bob,r=x,tokenauth=true"]
    )
    requests = [payload_of(ApiVersionsRequest(), source.randint(0, 2))]
    requests.append(payload_of(SaslHandshakeRequest(mechanism=mechanism), version))
    for token in source.choices(tokens, k=source.randint(1, 4)):
        wrapped = payload_of(SaslAuthenticateRequest(auth_bytes=token), source.randint(0, 2))
        requests.append(token if version == 0 else wrapped)
    if source.random() < 0.3:
        source.shuffle(requests)
    return requests


def damaged(data: bytes, source: random.Random) -> bytes:
    """The same, or with some bytes changed, cut or added."""
    if source.random() < 0.5:
        return data
    found = bytearray(data)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(found) + 1)
        kind = source.randrange(3)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << source.randrange(8)
        elif kind == 1:
            del found[at:]
        else:
            found[at:at] = source.randbytes(source.randint(1, 8))
    return bytes(found)


@pytest.fixture
def source() -> random.Random:
    """Random values of this run, whose seed is printed."""
    seed = fresh_seed()
    print(f"{SEED_VARIABLE}={seed}")
    return random.Random(seed)


def test_no_bytes_log_in(source: random.Random) -> None:
    """Each payload has an answer or ends the connection, and none makes anybody a principal."""
    listener_settings = settings()
    ends = dict.fromkeys(LoginEnd, 0)
    for _ in range(ROUNDS):
        listener = SaslServer(listener_settings)
        for number, request in enumerate(wrong_login(source)):
            payload = damaged(request, source)
            assert listener.is_of_login(payload)
            step = listener.receive(payload, now_ms=number, epoch_ms=EPOCH_MS)
            assert (listener.principal, listener.is_ready, step.has_logged_in) == (
                None,
                False,
                False,
            )
            assert b"secret" not in (step.reply or b"")
            assert "secret" not in step.problem
            ends[step.end] += 1
            if step.end is not LoginEnd.OPEN:
                break
    assert min(ends.values()) > ROUNDS // 20


def test_a_renewal_does_not_change_who_somebody_is(source: random.Random) -> None:
    """A session that began well cannot be turned into another's."""
    listener_settings = settings()
    for _ in range(ROUNDS // 3):
        listener = SaslServer(listener_settings)
        login = SaslClient(PLAIN, PasswordCredentials("alice", "secret"), "n")
        request = login.next_request()
        while request is not None:
            step = listener.receive(request, now_ms=0, epoch_ms=EPOCH_MS)
            request = login.next_request(step.reply)
        before = listener.principal
        assert before is not None
        for number, payload in enumerate(wrong_login(source)[1:]):
            if not listener.is_of_login(payload):
                continue
            step = listener.receive(damaged(payload, source), now_ms=number, epoch_ms=EPOCH_MS)
            assert listener.principal is before
            if step.end is not LoginEnd.OPEN:
                break


def test_a_client_believes_no_server_without_the_credential(source: random.Random) -> None:
    """Answers of a server that knows another password, damaged or not."""
    wrong = ScramCredential.of(SCRAM_SHA_256, _SALTED[SCRAM_SHA_512][:32], b"salt", 4096)
    listener_settings = LoginSettings(
        {
            SCRAM_SHA_256: lambda: ScramServer(
                SCRAM_SHA_256,
                lambda name, _: ScramUser(name, wrong),
                nonce="s",
                decoy_of=decoys(SCRAM_SHA_256),
            )
        },
        {},
        settings().versions,
    )
    for _ in range(ROUNDS // 30):
        listener = SaslServer(listener_settings)
        login = SaslClient(SCRAM_SHA_256, PasswordCredentials("alice", "secret"), "n")
        with pytest.raises((SaslError, WireError)) as caught:
            talk(listener, login, source)
        assert "secret" not in str(caught.value)


def talk(listener: SaslServer, login: SaslClient, source: random.Random) -> None:
    """Let a client and a listener talk without end; answers are damaged sometimes."""
    request = login.next_request()
    while request is not None:
        step = listener.receive(request, now_ms=0, epoch_ms=EPOCH_MS)
        request = login.next_request(damaged(step.reply or b"", source))
