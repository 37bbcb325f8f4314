"""SEC-SECRETS of a node itself: what it writes at its most talkative, while everybody logs in.

One node with every mechanism, its keys encrypted, at level debug; logins by each mechanism, right
and wrong ones; then every line and every file is searched for every secret, in every usual form.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from joserfc import jwk, jws

from kraftwire.testing import Quorum, quorum
from kraftwire.testing.ports import free_ports
from tests.support.kafka.quorum_tools import ours
from tests.support.nodes.secured import (
    LISTENERS,
    MECHANISMS,
    NODE_PASSWORD,
    secured_client,
    secured_properties,
)
from tests.support.security.certificates import (
    KEY_PASSWORD,
    PASSWORD,
    authority,
    identity,
    trust_pkcs12,
)
from tests.support.security.kafka import MODULES, USER, USER_PASSWORD, write_properties

BEARER = "OAUTHBEARER"
WRONG_PASSWORD = "not-the-secret"
# The private number of a P-256 key in PKCS 8 is 32 bytes from here on; what is before and behind it
# is public. A line of PEM text has 64 characters, and the second begins inside of the number.
_NUMBER, _LINE = 36, 64
_PIECE = 24
_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


@dataclass
class Talk:
    """A node that has been talked to, and what it and the clients have said."""

    folder: Path
    nodes: Quorum
    metrics: int
    provider: jwk.RSAKey
    tokens: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def token(self, **claims: object) -> str:
        """A signed token."""
        now = int(time.time())
        whole = {"sub": USER, "iat": now, "exp": now + 3600} | claims
        header = {"alg": "RS256", "kid": "rsa"}
        made = jws.serialize_compact(header, json.dumps(whole).encode(), self.provider)
        self.tokens.append(made)
        return made

    def describe(self, values: dict[str, str]) -> int:
        """Run a command with these client properties; returns its exit code."""
        path = write_properties(self.folder / "client.properties", values)
        there = ("--bootstrap-controller", self.nodes.bootstrap_controllers)
        done = ours(*there, "--command-config", path, "describe", "--status")
        self.said.append(done.stdout + done.stderr)
        return done.returncode

    def secrets(self) -> dict[str, bytes]:
        """Every secret by its name."""
        holder = identity()
        body = "".join(holder.key_pem().splitlines()[1:-1])
        assert base64.b64decode(body) == holder.key_der
        found = {
            "the password of the node": NODE_PASSWORD.encode(),
            "the password of alice": USER_PASSWORD.encode(),
            "a wrong password": WRONG_PASSWORD.encode(),
            "the password of the stores": PASSWORD.encode(),
            "the password of the key": KEY_PASSWORD.encode(),
            "the key": holder.key_der[_NUMBER : _NUMBER + _PIECE],
            "the key's text": body[_LINE : _LINE + _PIECE].encode(),
        }
        for number, token in enumerate(self.tokens):
            claims, signature = token.split(".")[1:]
            found[f"the claims of token {number}"] = claims[:_PIECE].encode()
            found[f"the signature of token {number}"] = signature[:_PIECE].encode()
        return found


def _properties(folder: Path, provider: jwk.RSAKey) -> dict[str, object]:
    values = secured_properties(folder)
    (folder / "node.pem").write_text(identity().key_pem(KEY_PASSWORD) + identity().chain_pem)
    (folder / "ca.p12").write_bytes(trust_pkcs12(authority().certificate))
    (folder / "keys.json").write_text(json.dumps({"keys": [provider.as_dict(private=False)]}))
    values |= {
        "ssl.key.password": KEY_PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": folder / "ca.p12",
        "ssl.truststore.password": PASSWORD,
        "sasl.enabled.mechanisms": ",".join((*MECHANISMS, BEARER)),
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri(),
        "sasl.oauthbearer.allow.unverified.audience": "true",
        "sasl.oauthbearer.allow.unverified.issuer": "true",
        "kraftwire.log.level": "debug",
    }
    for listener in LISTENERS:
        key = f"listener.name.{listener}.oauthbearer.sasl"
        values[f"{key}.jaas.config"] = f"{MODULES[BEARER]} required;"
        values[f"{key}.server.callback.handler.class"] = _VALIDATOR
    return values


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """All the logins, and some bytes that are none."""
    folder = tmp_path_factory.mktemp("silence")
    provider = jwk.RSAKey.generate_key(2048, parameters={"kid": "rsa"})
    (port,) = free_ports(1)
    properties = _properties(folder, provider)
    properties["kraftwire.prometheus.listener"] = f"localhost:{port}"
    users = [f"{name}=[name={USER},password={USER_PASSWORD}]" for name in MECHANISMS[1:]]
    (folder / "tmp").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / "tmp"))
        client = secured_client(folder)
        place = folder / "quorum"
        with quorum(
            1, folder=place, properties=properties, security=client, users=users
        ) as nodes:
            talk = Talk(folder, nodes, port, provider)
            _talk(talk)
            yield talk


def _talk(talk: Talk) -> None:
    for mechanism in MECHANISMS:
        values = secured_client(talk.folder, mechanism)
        assert talk.describe(values) == 0, talk.said[-1]
        wrong = values["sasl.jaas.config"].replace(USER_PASSWORD, WRONG_PASSWORD)
        assert talk.describe({**values, "sasl.jaas.config": wrong}) == 1, talk.said[-1]
    file = talk.folder / "token"
    values = secured_client(talk.folder) | {
        "sasl.mechanism": BEARER,
        "sasl.jaas.config": f"{MODULES[BEARER]} required;",
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
    }
    good = talk.token()
    expired = talk.token(exp=int(time.time()) - 3600)
    head, claims, signature = talk.token(sub="root").split(".")
    for token, code in ((good, 0), (expired, 1), (f"{head}.{claims}.{signature[::-1]}", 1)):
        file.write_text(token)
        assert talk.describe(values) == code, talk.said[-1]
    talk.tokens.append(f"{head}.{claims}.{signature[::-1]}")
    _send_passwords_out_of_place(int(talk.nodes.bootstrap_controllers.rpartition(":")[2]))


def _send_passwords_out_of_place(port: int) -> None:
    """Where no login has begun, in clear and inside TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    token = b"\0alice\0" + USER_PASSWORD.encode()
    for data in (token, len(token).to_bytes(4) + token, b"\0\0\0\x30\0\x24" + token * 4):
        for is_tls in (False, True):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 30) as plain:
                stream = context.wrap_socket(plain) if is_tls else plain
                with stream:
                    stream.sendall(data)
                    stream.settimeout(30)
                    while stream.recv(4096):
                        pass


def _forms(secret: bytes) -> Iterator[bytes]:
    """How a program might write it."""
    yield secret
    yield secret.hex().encode()
    yield secret.hex(" ").encode()
    for shift, spoilt in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(shift) + secret).rstrip(b"=")
        yield encoded[spoilt:-1]
        yield encoded[spoilt:-1].translate(bytes.maketrans(b"+/", b"-_"))


def _found(data: bytes, secrets: dict[str, bytes]) -> list[str]:
    return [name for name, one in secrets.items() if any(form in data for form in _forms(one))]


def _own_files(folder: Path) -> Iterable[Path]:
    """What the node has written: all but its properties."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".properties":
            yield path


def test_no_line_and_no_file_has_a_secret(talk: Talk) -> None:
    """Log, metrics, what commands print, the metadata log and all else in the node's folder."""
    secrets = talk.secrets()
    log = talk.nodes.log(1)
    for words in ("level=debug", "logged-in", "login-refused", "allowed", "tls-failed"):
        assert words in log, "the node was not talkative"
    with urllib.request.urlopen(f"http://127.0.0.1:{talk.metrics}/metrics", timeout=30) as answer:
        assert _found(answer.read(), secrets) == []
    assert _found("".join(talk.said).encode(), secrets) == []
    files = list(_own_files(talk.folder / "quorum"))
    assert {"node-1.log", "quorum-state"} <= {path.name for path in files}
    for path in files:
        assert _found(path.read_bytes(), secrets) == [], path


def test_the_search_finds_what_is_there(talk: Talk) -> None:
    """Or it would pass whatever a node writes."""
    secrets = talk.secrets()
    properties = (talk.folder / "quorum" / "node-1.properties").read_bytes()
    assert {"the password of alice", "the password of the key"} <= set(
        _found(properties, secrets)
    )
    assert _found(identity().key_pem().encode(), secrets) == ["the key's text"]
    assert _found(identity().key_der, secrets) == ["the key"]
    for token in talk.tokens:
        assert len(_found(token.encode(), secrets)) >= 2


def test_keys_are_in_no_file_that_can_be_seen(talk: Talk) -> None:
    """Neither in the folder for temporary files, nor open in the process."""
    assert list((talk.folder / "tmp").iterdir()) == []
    pid = talk.nodes.pid(1)
    opened = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    assert opened
    assert [each for each in opened if "memfd" in each or ".pem" in each] == []
