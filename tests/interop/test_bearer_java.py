"""Signed tokens of OAUTHBEARER between Kafka and nodes of ours: over SASL_SSL, from one provider.

Controllers of both kinds know each other by tokens, and so do the tools of both. Ours has the
provider's keys from a URL, Java's from a file, as each is told.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from joserfc import jwk, jwt

from tests.support.kafka.java import JavaTools
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum
from tests.support.kafka.mixed_quorum.stores import MemberStores
from tests.support.kafka.quorum_tools import check_same_status, ours
from tests.support.security.kafka import MODULES, write_properties

NODE = 3
NODES = (1, 2, NODE)
_LISTENER = "listener.name.controller"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_LOGIN = f"{_PACKAGE}.OAuthBearerLoginCallbackHandler"
_VALIDATOR = f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler"
_JAAS = f"{MODULES['OAUTHBEARER']} required;"


class Provider:
    """A provider: its keys at a URL and in a file, and a token for each user in one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = jwk.RSAKey.generate_key(2048, {"kid": "one"})
        keys = {"keys": [self._key.as_dict(private=False)]}
        self.keys = folder / "keys.json"
        self.keys.write_text(json.dumps(keys))

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(keys).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"

    def token(self, user: str, *, seconds: int = 3600, audience: str = "kafka") -> str:
        """The URL of a file with a token, which ends in so many seconds."""
        now = int(time.time())
        claims = {"sub": user, "aud": audience, "iat": now - 100, "exp": now + seconds}
        path = self.folder / f"{user}-{seconds}-{audience}.jwt"
        path.write_text(jwt.encode({"alg": "RS256", "kid": "one"}, claims, self._key))
        return path.as_uri()


@dataclass(frozen=True)
class Realm:
    """Two Java controllers and one of ours, who makes tokens for all, and Kafka's tools, which may
    fetch them."""

    provider: Provider
    quorum: MixedQuorum
    stores: MemberStores
    tools: JavaTools

    def client(self, token: str) -> str:
        """A client's file with a token."""
        values = _client(self.stores, token)
        return write_properties(self.provider.folder / "client.properties", values)


def _client(stores: MemberStores, token: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": _JAAS,
        "sasl.login.callback.handler.class": _LOGIN,
        "sasl.oauthbearer.token.endpoint.url": token,
        **stores.trust,
    }


def _properties(provider: Provider, stores: MemberStores) -> dict[str, object]:
    bearer = f"{_LISTENER}.oauthbearer.sasl"
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        f"{_LISTENER}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{bearer}.jaas.config": _JAAS,
        f"{bearer}.server.callback.handler.class": _VALIDATOR,
        f"{bearer}.login.callback.handler.class": _LOGIN,
        "sasl.oauthbearer.token.endpoint.url": provider.token("node"),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.allow.unverified.issuer": "true",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node;User:alice",
        "metadata.max.idle.interval.ms": 200,
        **stores.trust,
    }


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """One quorum for all tests: each leaves all members running."""
    folder = tmp_path_factory.mktemp("bearer")
    provider, stores = Provider(folder), MemberStores(folder, NODES)
    special: dict[int, dict[str, object]] = {number: {**stores.key(number)} for number in NODES}
    for number in NODES:
        place = provider.url if number == NODE else provider.keys.as_uri()
        special[number]["sasl.oauthbearer.jwks.endpoint.url"] = place
    client = _client(stores, provider.token("alice"))
    # Java's own list of what it may fetch.
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={_allowed(provider)}"
    thread = threading.Thread(target=provider.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            MixedQuorum(
                folder,
                {1: JAVA, 2: JAVA, NODE: OURS},
                _properties(provider, stores),
                special,
                client=client,
                host="localhost",
            ) as quorum,
        ):
            patch.setenv("JAVA_TOOL_OPTIONS", allowed)
            quorum.start()
            quorum.wait_commit(0, *NODES)
            with JavaTools() as tools:
                yield Realm(provider, quorum, stores, tools)
    finally:
        provider.server.shutdown()
        thread.join()
        provider.server.server_close()


def _allowed(provider: Provider) -> str:
    tokens = (provider.token(user) for user in ("node", "alice", "bob"))
    others = (provider.token("alice", seconds=-60), provider.token("alice", audience="web"))
    return ",".join((provider.keys.as_uri(), *tokens, *others))


def test_both_tools_log_in_at_both_kinds(realm: Realm) -> None:
    """With one file, and with the same output."""
    path = realm.client(realm.provider.token("alice"))
    for number in (1, NODE):
        check_same_status(realm.tools, realm.quorum.address(number), path)


@pytest.mark.parametrize(
    ("wrong", "code"), [({"seconds": -60}, 1), ({"audience": "web"}, 1)], ids=["expired", "other"]
)
def test_a_token_that_is_not_valid_is_refused_by_both_kinds(
    realm: Realm, wrong: dict[str, object], code: int
) -> None:
    """At once, in one line, and without the token."""
    token = realm.provider.token("alice", **wrong)  # type: ignore[arg-type]
    words = ("--command-config", realm.client(token), "describe", "--status")
    for number in (1, NODE):
        refused = ours("--bootstrap-controller", realm.quorum.address(number), *words)
        assert (refused.returncode, refused.stdout) == (code, "")
        (line,) = refused.stderr.splitlines()
        assert "invalid_token" in line
        assert "eyJ" not in line
    where = ("--bootstrap-controller", realm.quorum.address(NODE))
    assert realm.tools.run("quorum", *where, *words).returncode == 1


def test_each_in_turn_is_killed(realm: Realm) -> None:
    """Ours leads Java's and the other way round, over logins by tokens; the logs are equal."""
    quorum = realm.quorum
    for number in NODES:
        mark = quorum.wait_commit(0)
        quorum.members[number].kill()
        rest = [one for one in NODES if one != number]
        quorum.leader(among=rest)
        mark = quorum.wait_commit(mark, *rest)
        quorum.start(number)
        quorum.wait_commit(mark, *NODES)
    former = quorum.depose(NODE)
    quorum.start(former)
    quorum.wait_commit(quorum.wait_commit(0), *NODES)
    assert quorum.check_logs_agree() > 0
    assert "Traceback" not in "\n".join(quorum.members[NODE].lines)
