"""SCRAM-SHA-256 and SCRAM-SHA-512: keys, and both sides of the exchange.

Rules SEC-S30 to SEC-S34. Source: RFC 5802 and 7677 as `ScramSaslClient`, `ScramSaslServer` and
`ScramFormatter` follow them: no SASLprep, no channel binding, and ``tokenauth=true`` for delegation
tokens. A password costs its iterations once per login, milliseconds to half a second: callers with
an event loop run `ScramClient.answer` in a thread.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kraftwire.security.credentials import SCRAM_SHA_256, SCRAM_SHA_512, PasswordCredentials
from kraftwire.security.errors import PROTOCOL, SERVER, NotKnownYet, Refused, SaslError

ITERATIONS_MIN = 4096
# Kafka's client has no upper bound, so that a server could keep it busy for hours.
ITERATIONS_MAX = 1_000_000
# The iterations that Kafka stores for new users, and the most that it stores (SEC-S36).
ITERATIONS_DEFAULT = 4096
STORED_ITERATIONS_MAX = 16384

# The mechanism's number in records and requests, and its hash.
_NUMBERS = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}
_HASHES = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}

_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-+\--\x7f]+"
_NONCE = r"[!-+\--~]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_RESERVED = rf"(?:m={_VALUE},)?"
_CLIENT_FIRST = re.compile(
    rf"n,(?:a=({_NAME}))?,{_RESERVED}(n=({_NAME}),r=({_NONCE})({_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(rf"{_RESERVED}r=({_NONCE}),s=({_BASE64}),i=([0-9]+){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(rf"c=({_BASE64}),r=({_NONCE}){_EXTENSIONS},p=({_BASE64})")
_SERVER_FINAL = re.compile(rf"(?:e=([\x01-+\--<>-\x7f]+))|(?:v=({_BASE64})){_EXTENSIONS}")
_HEADER = "n,,"
# A name and two nonces; matching a message takes time in proportion to its length.
_CLIENT_BYTES_MAX = 4096
_ITERATION_DIGITS_MAX = 10


def mechanism_number(mechanism: str) -> int:
    """Return the number of a mechanism in Kafka's records and requests."""
    return _NUMBERS[mechanism]


def mechanism_of(number: int) -> str | None:
    """Return the mechanism that has a number in Kafka's records, None if there is none."""
    return next((name for name, known in _NUMBERS.items() if known == number), None)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return PBKDF2 of a password, which is taken as plain UTF-8 (SEC-S31)."""
    hash_name = _HASHES[mechanism]
    return hashlib.pbkdf2_hmac(hash_name, _utf8(password), salt, iterations)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server keeps of a user: enough to verify a password, not to log in with it."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def of(cls, mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
        """Return the credential that a salted password gives."""
        stored_key = _hash(mechanism, _hmac(mechanism, salted, b"Client Key"))
        return cls(salt, stored_key, _hmac(mechanism, salted, b"Server Key"), iterations)


class ScramClient:
    """The client's side: `first`, then `answer` for each token of the server.

    `nonce`: printable ASCII without commas, new for each login. `is_complete` means that the
    server proved that it knows the credential.
    """

    is_complete = False

    def __init__(self, mechanism: str, credentials: PasswordCredentials, nonce: str) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce = nonce
        self._server_signature: bytes | None = None
        name = credentials.username.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}" + (",tokenauth=true" if credentials.is_token else "")

    def first(self) -> bytes:
        """Return the first token."""
        return _utf8(_HEADER + self._first)

    def answer(self, challenge: bytes) -> bytes | None:
        """Take a token of the server; return the proof of the password, None after the last one.

        Raises: SaslError if the server asks for too few or too many iterations, does not continue
        our nonce, or cannot prove that it knows the credential.
        """
        if self._server_signature is None:
            return self._final(challenge)
        self._verify(challenge)
        return None

    def _final(self, challenge: bytes) -> bytes:
        text = _text(challenge)
        match = _SERVER_FIRST.fullmatch(text)
        if match is None:
            raise SaslError(PROTOCOL, "the server's first SCRAM message has another form")
        nonce, salt, iterations = match[1], base64.b64decode(match[2]), _count(match[3])
        if not nonce.startswith(self._nonce):
            raise SaslError(SERVER, "the server's SCRAM nonce does not continue the client's")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            wanted = f"expected {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            raise SaslError(SERVER, f"the server asks for {iterations} SCRAM iterations: {wanted}")
        salted = salted_password(self._mechanism, self._credentials.password, salt, iterations)
        without_proof = f"c={_base64(_HEADER.encode())},r={nonce}"
        signed = _utf8(f"{self._first},{text},{without_proof}")
        client_key = _hmac(self._mechanism, salted, b"Client Key")
        credential = ScramCredential.of(self._mechanism, salted, salt, iterations)
        self._server_signature = _hmac(self._mechanism, credential.server_key, signed)
        proof = _xor(client_key, _hmac(self._mechanism, credential.stored_key, signed))
        return _utf8(f"{without_proof},p={_base64(proof)}")

    def _verify(self, challenge: bytes) -> None:
        match = _SERVER_FINAL.fullmatch(_text(challenge))
        if match is None:
            raise SaslError(PROTOCOL, "the server's final SCRAM message has another form")
        if match[1] is not None:
            raise SaslError(SERVER, f"the server ends SCRAM with the error {match[1]}")
        assert self._server_signature is not None
        if not hmac.compare_digest(base64.b64decode(match[2]), self._server_signature):
            raise SaslError(
                SERVER, "the server's signature is wrong: it does not know the password"
            )
        self.is_complete = True


@dataclass(frozen=True, slots=True)
class ScramUser:
    """Whom a SCRAM name stands for: `name` is the owner's, for a token; `expiry_ms` its end."""

    name: str
    credential: ScramCredential
    expiry_ms: int | None = None


class ScramServer:
    """The server's side: `answer` twice; afterwards `name` is the user, or the token's owner.

    `user_of(name, is_token)` looks up a user or a delegation token. `nonce` is new for each login.
    `decoy_of`, with the same arguments, returns what stands for the credential of an unknown user,
    so that the first answer does not show who exists: Kafka's does (SEC-S33). It is called for
    known users too, so that both take the same time. While not `are_known`, users may be missing or
    have other passwords: nobody is refused for that (SEC-S35).
    """

    def __init__(
        self,
        mechanism: str,
        user_of: Callable[[str, bool], ScramUser | None],
        *,
        nonce: str,
        decoy_of: Callable[[str, bool], ScramCredential],
        are_known: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name: str | None = None
        self.is_token = False
        self.lifetime_end_ms: int | None = None
        self._mechanism = mechanism
        self._user_of = user_of
        self._nonce = nonce
        self._decoy_of = decoy_of
        self._are_known = are_known
        self._is_final = True
        self._first = ""
        self._user: ScramUser | None = None
        self._credential: ScramCredential | None = None

    def answer(self, token: bytes) -> bytes:
        """Take a token of the client, return the answer to it.

        Raises: Refused for a message of another form, another nonce, or a wrong proof; NotKnownYet
        for a wrong proof, or an unknown user, while that is not final.
        """
        if len(token) > _CLIENT_BYTES_MAX:
            raise Refused(f"the client's SCRAM message is longer than {_CLIENT_BYTES_MAX} bytes")
        return self._begin(token) if self._credential is None else self._finish(token)

    def _begin(self, token: bytes) -> bytes:
        match = _CLIENT_FIRST.fullmatch(_text(token))
        if match is None:
            raise Refused("the client's first SCRAM message has another form")
        name = match[3].replace("=2C", ",").replace("=3D", "=")
        authorization_id = match[1] or ""
        extensions = dict(pair.split("=", 1) for pair in match[5].split(",") if pair)
        self.is_token = extensions.get("tokenauth", "").lower() == "true"
        self._is_final = self._are_known()
        self._user = self._user_of(name, self.is_token)
        if authorization_id not in ("", name):
            different = "Client requested an authorization id that is different from username"
            raise Refused(f"Authentication failed: {different}", is_public=True)
        decoy = self._decoy_of(name, self.is_token)
        self._credential = self._user.credential if self._user else decoy
        if self._credential.iterations < ITERATIONS_MIN:
            found = f"{self._credential.iterations} iterations"
            raise Refused(f"the stored credential has {found}: expected at least {ITERATIONS_MIN}")
        self._nonce = match[4] + self._nonce
        salt = _base64(self._credential.salt)
        answer = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        self._first = f"{match[2]},{answer}"
        return _utf8(answer)

    def _finish(self, token: bytes) -> bytes:
        match = _CLIENT_FINAL.fullmatch(_text(token))
        if match is None:
            raise Refused("the client's final SCRAM message has another form")
        if match[2] != self._nonce:
            raise Refused("the nonce of the client's final SCRAM message is another one")
        assert self._credential is not None
        binding = _base64(base64.b64decode(match[1]))
        signed = _utf8(f"{self._first},c={binding},r={self._nonce}")
        proof, stored_key = base64.b64decode(match[3]), self._credential.stored_key
        signature = _hmac(self._mechanism, stored_key, signed)
        is_long_enough = len(proof) == len(signature)
        client_key = _xor(signature, proof if is_long_enough else signature)
        is_same = hmac.compare_digest(_hash(self._mechanism, client_key), stored_key)
        if self._user is None or not is_same or not is_long_enough:
            if not self._is_final:
                raise NotKnownYet("this node has not read the users of the log yet")
            raise Refused("unknown user or wrong password")
        self.name, self.lifetime_end_ms = self._user.name, self._user.expiry_ms
        answer = _hmac(self._mechanism, self._credential.server_key, signed)
        return _utf8(f"v={_base64(answer)}")


def _count(digits: str) -> int:
    """Return an iteration count; one with more digits than Java's int is too large."""
    return int(digits) if len(digits) <= _ITERATION_DIGITS_MAX else ITERATIONS_MAX + 1


def _hmac(mechanism: str, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, _HASHES[mechanism])


def _hash(mechanism: str, data: bytes) -> bytes:
    return hashlib.new(_HASHES[mechanism], data).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace")
