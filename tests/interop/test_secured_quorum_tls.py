"""Quorums of both kinds that know each other by certificates alone.

Whoever is killed, the others elect a leader, and nobody has lost anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.mixed_quorum.stores import MemberStores
from tests.support.kafka.quorum_tools import ours, theirs
from tests.support.security.kafka import write_properties

NODE = 3
NODES = (1, 2, NODE)
# The number in the certificate of the tests' own client.
ADMIN = 9


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> MemberStores:
    """A certificate for each node."""
    return MemberStores(tmp_path_factory.mktemp("stores"), NODES)


@pytest.fixture(scope="module")
def quorum(
    tmp_path_factory: pytest.TempPathFactory, stores: MemberStores
) -> Iterator[MixedQuorum]:
    """Two Java controllers and one of ours; each certificate speaks for one voter at ours."""
    folder = tmp_path_factory.mktemp("certificates")
    properties = {
        "listener.security.protocol.map": "CONTROLLER:SSL",
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(node-[0-9])$/$1/,DEFAULT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:node-{number}" for number in (*NODES, ADMIN)),
        **stores.trust,
    }
    special: dict[int, dict[str, object]] = {
        number: {**stores.key(number)} for number in NODES
    }
    special[NODE]["kraftwire.voter.principals"] = ";".join(
        f"{number}:User:node-{number}" for number in NODES
    )
    client = {"security.protocol": "SSL", **stores.key(f"node-{ADMIN}"), **stores.trust}
    kinds = {1: JAVA, 2: JAVA, NODE: OURS}
    with MixedQuorum(folder, kinds, properties, special, client=client) as quorum:
        quorum.start()
        quorum.wait_commit(0)
        yield quorum


def test_certificates_are_rights(
    quorum: MixedQuorum, stores: MemberStores, tmp_path: Path
) -> None:
    """That of a node describes the quorum, another one is refused: by both tools alike."""
    files = {}
    for name in (2, "somebody"):
        values = {"security.protocol": "SSL", **stores.key(name), **stores.trust}
        files[name] = write_properties(tmp_path / f"{name}.properties", values)
    # The host that the certificates name.
    address = quorum.address(NODE).replace("127.0.0.1", "localhost")
    for tool in (ours, theirs):
        for name, code in ((2, 0), ("somebody", 1)):
            words = ("--bootstrap-controller", address, "--command-config", files[name])
            described = tool(*words, "describe", "--status")
            assert described.returncode == code, described.stderr
            assert ("LeaderId:" in described.stdout) is (code == 0)
    assert any('denied principal="User:CN=somebody"' in one for one in quorum.members[NODE].lines)


def test_each_in_turn_is_killed(quorum: MixedQuorum) -> None:
    """SIGKILL, an election among the others, and the return."""
    for number in NODES:
        mark = quorum.wait_commit(0)
        quorum.members[number].kill()
        rest = [one for one in NODES if one != number]
        quorum.leader(among=rest)
        mark = quorum.wait_commit(mark, *rest)
        quorum.start(number)
        quorum.wait_commit(mark)
    assert quorum.check_logs_agree() > 0


@pytest.mark.parametrize("number", [NODE, 1], ids=["ours", "Java's"])
def test_an_expired_certificate_keeps_one_node_out(
    quorum: MixedQuorum, stores: MemberStores, number: int
) -> None:
    """Both sides say so; the others go on, and a new certificate brings the node back."""
    victim, node = quorum.members[number], quorum.members[NODE]
    mark = quorum.wait_commit(0)
    victim.kill()
    stores.expire(number)
    seen = len(node.lines)
    quorum.start(number)
    rest = [one for one in NODES if one != number]
    assert quorum.leader(among=rest) in rest
    end = victim.end_offset
    mark = quorum.wait_commit(mark, *rest)
    expected = {
        NODE: ("certificate-refused.*CN=node-3 expired", "refused this client's certificate"),
        # As it listens, or as it connects.
        1: (r"certificate has expired|certificate of CN=node-1, or one above it, has expired",),
    }
    for pattern in expected[number]:
        wait_until(
            lambda wanted=pattern: any(re.search(wanted, line) for line in node.lines[seen:]),
            f"a line with {pattern}",
            node.last_lines,
        )
    quorum.wait_commit(mark, *rest)
    assert victim.end_offset == end
    stores.renew(number)
    if number != NODE:
        # Kafka's node reads its store again when it starts; ours follows the file.
        victim.kill()
        quorum.start(number)
    quorum.wait_commit(mark, *NODES)
    assert quorum.check_logs_agree() > 0
