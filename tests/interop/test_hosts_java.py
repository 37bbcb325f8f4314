"""A client takes a certificate for the hosts for which the JVM below Kafka's client takes it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kraftwire.security.host_check import is_for_host
from tests.support.kafka.java import JavaPeer
from tests.support.security.certificates import (
    PASSWORD,
    Identity,
    authority,
    identity,
    pem,
    shaken,
    trust_pkcs12,
)
from tests.unit.security.test_host_check import IS_FOR, IS_NOT_FOR

# Java 17 takes a star in any label, later versions in the first alone.
STARS_OF_OLD = [("a.*.svc", "a.b.svc"), ("*.*.svc", "a.b.svc")]


def _shown(holder: Identity, folder: Path) -> Mapping[str, Any]:
    context = ssl.create_default_context(cadata=pem(authority().certificate))
    context.check_hostname = False
    return shaken(context, holder, folder).getpeercert() or {}


def test_hosts_are_those_that_java_takes(tmp_path: Path) -> None:
    """Both see the certificate that a node shows in a handshake."""
    trusted = tmp_path / "trusted.p12"
    trusted.write_bytes(trust_pkcs12(authority().certificate))
    pairs = [each for each in (*IS_FOR, *IS_NOT_FOR) if all(each) and each not in STARS_OF_OLD]
    pairs.append(("127.0.0.1", "node"))
    questions = []
    for at, (name, host) in enumerate(pairs):
        store = tmp_path / f"{at}.p12"
        store.write_bytes(identity("node", hosts=(name,)).pkcs12())
        question = {"op": "host", "store": str(store), "trusted": str(trusted), "host": host}
        questions.append(question | {"password": PASSWORD})
    with JavaPeer(folder="security", program="Security") as java:
        answers = java.ask(questions)
    found = [
        is_for_host(_shown(identity("node", hosts=(name,)), tmp_path), host) for name, host in pairs
    ]
    assert [answer["accepted"] for answer in answers] == found
    assert sum(found) == len(IS_FOR) + 1
