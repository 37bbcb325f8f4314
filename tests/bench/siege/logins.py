"""Attacks on what comes before a request: handshakes of TLS, logins, tokens.

Whoever carries them out can reach the port and knows no password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle
from pathlib import Path

import trio

from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.protocol.payloads import decode_response
from kraftwire.security.tls import unverified_tls
from tests.bench.siege.attacks import ATTACKS, Attack
from tests.bench.siege.peer import (
    HOST,
    SecuredSocket,
    again_and_again,
    exchange,
    many,
    raw,
    request,
    send,
)
from tests.bench.siege.secured import KEYS_FILE
from tests.bench.siege.target import Target
from tests.support.security.certificates import long_chain

__all__ = ["ALL_ATTACKS", "LOGIN_ATTACKS"]

_MIB = 1024 * 1024
_STALLED = 1_500
_FLOODERS = 60
# `sasl.server.max.receive.size`.
_TOKEN_BYTES = 512 * 1024
# As many as a handshake may have, and many more.
_CHAINS = (25, 110)


async def _half_open(target: Target) -> None:
    """A third says nothing, a third half a ClientHello, a third all of it and nothing more."""
    hello = _hello()

    async def talk(sock: trio.socket.SocketType, data: bytes) -> None:
        if data:
            await send(sock, data)
        await trio.sleep_forever()

    kinds = (b"", hello[: len(hello) // 2], hello)
    await _many_raw(target, _STALLED, lambda number: partial(talk, data=kinds[number % 3]))


async def _slow(target: Target) -> None:
    """A ClientHello that takes a second for each byte."""
    hello = _hello()

    async def talk(sock: trio.socket.SocketType) -> None:
        for position in range(len(hello)):
            await send(sock, hello[position : position + 1])
            await trio.sleep(1)

    await _many_raw(target, _STALLED, lambda _: talk)


async def _flood(target: Target) -> None:
    """Whole handshakes without a pause, half of them with a certificate."""
    plain, own = unverified_tls(), _with_chain(target, 1)

    async def flood(number: int) -> None:
        while True:
            await _shake_hands(target, own if number % 2 else plain)

    await many(_FLOODERS, flood)


async def _chains(target: Target) -> None:
    """Certificates with as many others above them as a handshake may have, and with more."""
    contexts = [_with_chain(target, length) for length in _CHAINS]

    async def flood(number: int) -> None:
        while True:
            await _shake_hands(target, contexts[number % 2])

    await many(_FLOODERS, flood)


async def _passwords(target: Target) -> None:
    """Wrong passwords for a known user and for unknown ones, by PLAIN and by SCRAM."""

    async def talk(sock: SecuredSocket, number: int) -> None:
        user = ("alice", f"user-{number}")[number % 2]
        if number % 4 < 2:
            await _tokens(sock, "PLAIN", [f"\0{user}\0wrong-{number}".encode()])
            return
        first = f"n={user},r=nonce{number}"
        await _scram(sock, f"n,,{first}", lambda _: base64.b64encode(os.urandom(64)).decode())

    await _many_secured(target, 400, lambda number: partial(talk, number=number))


async def _replays(target: Target) -> None:
    """The messages of another's login again, with the server's old nonce and its new one."""
    proof = base64.b64encode(hashlib.sha512(b"heard before").digest()).decode()

    async def talk(sock: SecuredSocket, number: int) -> None:
        own = "fyko+d2lbbFgONRv9qkxdawL"
        theirs = "" if number % 2 else f"{own}3rfcNHYJY1ZVvWVs7j"
        await _scram(sock, f"n,,n=alice,r={own}", lambda _: proof, nonce=theirs)

    await _many_secured(target, 200, lambda number: partial(talk, number=number))


async def _huge_tokens(target: Target) -> None:
    """Tokens as long as is allowed, half of them never finished."""
    data = request(SaslAuthenticateRequest(auth_bytes=bytes(_TOKEN_BYTES - 64)), 1)

    async def talk(sock: SecuredSocket, mechanism: str, count: int) -> None:
        await exchange(sock, request(SaslHandshakeRequest(mechanism=mechanism), 1))
        await send(sock, data[:count])
        if count < len(data):
            await trio.sleep_forever()
        await sock.recv(4096)

    names = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")

    def kind(number: int) -> Callable[[SecuredSocket], Awaitable[None]]:
        count = len(data) - (number % 2)
        return partial(talk, mechanism=names[number % 3], count=count)

    await _many_secured(target, 300, kind)


async def _jwt(target: Target) -> None:
    """Tokens whose header asks for an easier check than a signature."""
    tokens = cycle(_tricks((Path(target.folder) / KEYS_FILE).read_text()))

    async def talk(sock: SecuredSocket) -> None:
        message = f"n,,\x01auth=Bearer {next(tokens)}\x01\x01"
        await _tokens(sock, "OAUTHBEARER", [message.encode(), b"\x01"])

    await _many_secured(target, 200, lambda _: talk)


def _tricks(keys: str) -> list[str]:
    public = json.dumps(json.loads(keys)["keys"][0]).encode()
    claims = {"sub": "alice", "iat": 1_700_000_000, "exp": 4_000_000_000}
    long = {f"claim-{number}": "x" * 100 for number in range(3_000)}
    headers: list[dict[str, object]] = [
        {"alg": "none", "kid": "rsa"},
        {"alg": "HS256", "kid": "rsa"},
        {"alg": "RS256", "kid": "rsa"},
        {"alg": "ES256", "kid": "rsa"},
        {"alg": "RS256", "kid": "x" * 100_000},
        {"alg": "RS256", "jku": "http://127.0.0.1:9/keys"},
        {"alg": "RS256", "kid": "rsa", "zip": "DEF"},
        {"alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": False},
    ]
    made = [_token(header, body, public) for header in headers for body in (claims, claims | long)]
    return [*made, "." * 400_000, _part(b"[" * 200_000) + "." + _part(b"{}") + ".AAAA"]


def _token(header: object, claims: object, key: bytes) -> str:
    signed = ".".join(_part(json.dumps(one).encode()) for one in (header, claims))
    return f"{signed}.{_part(hmac.new(key, signed.encode(), hashlib.sha256).digest() * 8)}"


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


async def _tokens(sock: SecuredSocket, mechanism: str, tokens: Sequence[bytes]) -> bytes:
    """Send tokens one after the other; returns the answer's to the last one."""
    await exchange(sock, request(SaslHandshakeRequest(mechanism=mechanism), 1))
    answer = b""
    for token in tokens:
        answer = await _token_answer(sock, token)
    return answer


async def _token_answer(sock: SecuredSocket, token: bytes) -> bytes:
    message = SaslAuthenticateRequest(auth_bytes=token)
    told = decode_response(await exchange(sock, request(message, 1)), message.API_KEY, 1)[1]
    assert isinstance(told, SaslAuthenticateResponse)
    return told.auth_bytes


async def _scram(
    sock: SecuredSocket, first: str, proof: Callable[[bytes], str], nonce: str = ""
) -> None:
    """A login by SCRAM with another proof; with the server's nonce unless one is given."""
    answer = await _tokens(sock, "SCRAM-SHA-512", [first.encode()])
    theirs = nonce or answer.decode().partition(",")[0].removeprefix("r=")
    await _token_answer(sock, f"c=biws,r={theirs},p={proof(answer)}".encode())


def _hello() -> bytes:
    """The first bytes of a handshake."""
    outgoing = ssl.MemoryBIO()
    session = unverified_tls().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=HOST)
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def _with_chain(target: Target, length: int) -> ssl.SSLContext:
    """A client's context that shows a certificate with others above it."""
    path = Path(target.folder) / f"chain-{length}-{os.getpid()}.pem"
    holder = long_chain(length)
    path.write_text(holder.key_pem() + holder.chain_pem)
    context = unverified_tls()
    context.load_cert_chain(path)
    return context


async def _tls(port: int, context: ssl.SSLContext) -> SecuredSocket:
    """A connection after its handshake, which has not logged in."""
    sock = await raw(port)
    try:
        stream = trio.SSLStream(trio.SocketStream(sock), context, https_compatible=True)
        await stream.do_handshake()
    except BaseException:
        sock.close()
        raise
    return SecuredSocket(sock, stream)


async def _shake_hands(target: Target, context: ssl.SSLContext) -> None:
    """One handshake; the node judges a certificate after the client's part."""
    try:
        sock = await _tls(target.leader_port, context)
    except (OSError, trio.BrokenResourceError):
        await trio.sleep(0)
        return
    sock.close()


async def _many_raw(
    target: Target,
    count: int,
    talk: Callable[[int], Callable[[trio.socket.SocketType], Awaitable[None]]],
) -> None:
    async def one(number: int) -> None:
        await again_and_again(target.leader_port, talk(number), raw)

    await many(count, one)


async def _many_secured(
    target: Target, count: int, talk: Callable[[int], Callable[[SecuredSocket], Awaitable[None]]]
) -> None:
    context = unverified_tls()

    async def one(number: int) -> None:
        await again_and_again(
            target.leader_port, talk(number), lambda port: _tls(port, context)
        )

    await many(count, one)


LOGIN_ATTACKS = {
    "half-open": Attack("1,500 handshakes that stop", _half_open),
    "slow": Attack("1,500 handshakes, a byte a second", _slow),
    "handshakes": Attack("handshakes without a pause", _flood),
    "chains": Attack("chains of 25 and 110 certificates", _chains, 128 * 1024),
    "passwords": Attack("wrong passwords, by PLAIN and SCRAM", _passwords),
    "replays": Attack("logins by SCRAM, replayed", _replays),
    "tokens": Attack("tokens of 512 KiB, half unfinished", _huge_tokens, _TOKEN_BYTES),
    "jwt": Attack("tokens with tricks in their headers", _jwt, _TOKEN_BYTES),
}
ALL_ATTACKS = {**ATTACKS, **LOGIN_ATTACKS}
