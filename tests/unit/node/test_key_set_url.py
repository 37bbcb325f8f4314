"""A provider's key set at a URL: fetched at the start, at times, and for an unknown key."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from joserfc import jwk, jwt

from kraftwire.node.key_set_url import KeySetUrl
from kraftwire.security.errors import NotKnownYet
from kraftwire.security.jwks import KeyRefresh, TokenChecks, UnknownKeyError
from kraftwire.security.tls import provider_tls
from tests.support.security.certificates import authority, identity, node_context, pem

REFRESH = KeyRefresh(3_600_000, 100, 10_000)


class Provider:
    """A provider on loopback; `keys` are those that it publishes, None for an error."""

    def __init__(self) -> None:
        self.keys: list[jwk.ECKey] | None = [jwk.ECKey.generate_key("P-256", {"kid": "old"})]
        self.asked = 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked += 1
                known = provider.keys
                self.send_response(503 if known is None else 200)
                self.end_headers()
                entries = [key.as_dict(private=False) for key in known or ()]
                self.wfile.write(json.dumps({"keys": entries}).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider that answers."""
    found = Provider()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


class Clock:
    """Time that a test moves, and fetches that wait until it lets them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waiting: list[Callable[[], None]] = []

    def keys(self, provider: Provider) -> KeySetUrl:
        """A key set that uses both."""
        start = self.waiting.append
        return KeySetUrl(provider.url, REFRESH, start=start, clock=lambda: self.now)

    def fetch(self) -> None:
        """Let one fetch happen, the only one that waits."""
        (one,) = self.waiting
        self.waiting.clear()
        one()


def name_of(keys: KeySetUrl, key: jwk.ECKey) -> str:
    """Who a token of this key is for."""
    now = int(time.time())
    claims = {"sub": "alice", "iat": now, "exp": now + 60}
    token = jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key)
    return keys.validate(token, TokenChecks(), now * 1000).name


def test_nobody_is_judged_before_there_are_keys(provider: Provider) -> None:
    """Logins do not wait, and one fetch is on its way at a time."""
    clock = Clock()
    keys = clock.keys(provider)
    assert provider.keys is not None
    (key,) = provider.keys
    for _ in range(3):
        with pytest.raises(NotKnownYet, match="has not been fetched yet"):
            name_of(keys, key)
    clock.fetch()
    assert name_of(keys, key) == "alice"
    assert (provider.asked, clock.waiting) == (1, [])


def test_a_new_key_of_the_provider_is_fetched(provider: Provider) -> None:
    """Once a minute at most: anybody can make up the name of a key."""
    clock = Clock()
    keys, new = clock.keys(provider), jwk.ECKey.generate_key("P-256", {"kid": "new"})
    clock.fetch()
    with pytest.raises(UnknownKeyError):
        name_of(keys, new)
    provider.keys = [new]
    clock.now += 61
    with pytest.raises(NotKnownYet, match="for an unknown key"):
        name_of(keys, new)
    clock.fetch()
    assert name_of(keys, new) == "alice"
    with pytest.raises(UnknownKeyError):
        name_of(keys, jwk.ECKey.generate_key("P-256", {"kid": "other"}))
    assert provider.asked == 2


def test_a_provider_that_is_away(provider: Provider) -> None:
    """The old keys stay; it is asked again soon, and not at every login."""
    clock = Clock()
    keys = clock.keys(provider)
    assert provider.keys is not None
    (key,) = provider.keys
    clock.fetch()
    provider.keys = None
    clock.now += 3601
    assert name_of(keys, key) == "alice"
    clock.fetch()
    assert name_of(keys, key) == "alice"
    assert not clock.waiting
    clock.now += 0.1
    assert name_of(keys, key) == "alice"
    provider.keys = [key]
    clock.fetch()
    clock.now += 3599
    assert name_of(keys, key) == "alice"
    assert (provider.asked, clock.waiting) == (3, [])


def test_a_thread_fetches_unless_told_otherwise(provider: Provider) -> None:
    """That of a node is not held up by it."""
    keys = KeySetUrl(provider.url, REFRESH)
    for thread in threading.enumerate():
        if thread.name == "key-set":
            thread.join(30)
    assert provider.keys is not None
    assert name_of(keys, provider.keys[0]) == "alice"


def test_a_provider_may_have_an_authority_of_its_own(provider: Provider, tmp_path: Path) -> None:
    """The `ssl.*` options of the listener's JAAS entry name it."""
    context = node_context(identity(), tmp_path)
    provider.server.socket = context.wrap_socket(provider.server.socket, server_side=True)
    url = provider.url.replace("http:", "https:")
    authorities = pem(authority().certificate)
    options = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    tls = provider_tls(options, "node.properties:3: sasl.jaas.config")
    assert provider.keys is not None
    (key,) = provider.keys
    with pytest.raises(NotKnownYet):
        name_of(KeySetUrl(url, REFRESH, start=lambda fetch: fetch()), key)
    assert name_of(KeySetUrl(url, REFRESH, tls, start=lambda fetch: fetch()), key) == "alice"
    assert provider_tls({"unsecuredLoginStringClaim_sub": "a"}, "") is None
