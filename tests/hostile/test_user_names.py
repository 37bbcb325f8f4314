"""A stranger looks for names of SCRAM users: SEC-LOGIN, SEC-S33.

Three nodes of one cluster, each of which has read the same log, are asked for known and unknown
names, as tools of attackers do: over restarts, from snapshots, while users come and go.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing

from kraftwire.controller.image import DECOY_SECRET_CONFIG
from kraftwire.controller.step import config_record
from kraftwire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftwire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.node.config import load
from kraftwire.node.controller import Controller
from kraftwire.node.guard import Guard
from kraftwire.node.logins import guards_of
from kraftwire.node.scram_quorum import ScramUsers
from kraftwire.protocol.config_resources import BROKER_RESOURCE
from kraftwire.protocol.payloads import decode_response
from kraftwire.records.batch import RecordBatch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.security import scram
from kraftwire.security.credentials import SCRAM_SHA_256, PasswordCredentials
from kraftwire.security.decoys import SALT_RANDOM_BYTES, salt_of
from kraftwire.security.sasl_server import LoginEnd, LoginStep, SaslServer
from kraftwire.security.scram import ScramClient
from kraftwire.security.scram_argument import parse_scram_argument
from kraftwire.wire.message import Message
from tests.hostile.test_logins import payload_of
from tests.support.nodes.stub import (
    StubNode,
    answer_of,
    control_batch,
    in_virtual_time,
    raw_batch,
    request_of,
)
from tests.unit.node.test_logins import PROPERTIES, TOKEN

LEVEL = (FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
KNOWN = ("alice", "bob", "carol")
UNKNOWN = tuple(f"stranger-{number}" for number in range(40))
_FIRST = re.compile(rb"r=client([^,]+),s=([^,]+),i=(\d+)")


class Shown(NamedTuple):
    """What a node's first answer shows of a name."""

    salt: bytes
    iterations: int


class Node(NamedTuple):
    """A node and the guard of its listener."""

    stub: StubNode
    guard: Guard


def config_of(folder: Path) -> Any:
    """That of a controller whose clients log in by SCRAM, also with delegation tokens."""
    path = folder / "node.properties"
    path.write_text(PROPERTIES + "delegation.token.secret.key=secret\n")
    return load(str(path))


def node_of(config: Any, node_id: int, users: ScramUsers | None = None) -> Node:
    """A node that has just started; `users` are those of its log."""
    stub = StubNode(node_id, security=config.security)
    quorum: Any = stub
    stub.controller = Controller(stub.config, quorum, bootstrap=[LEVEL])
    return Node(stub, guards_of(config, quorum, {}, users)["CONTROLLER"])


def restarted(config: Any, node: Node) -> Node:
    """Another process with the same log."""
    new = node_of(config, node.stub.key.id)
    for batch in node.stub.batches:
        new.stub.commit(batch)
    return new


class _Snapshot(tuple[RecordBatch, ...]):
    id = OffsetAndEpoch(100, 1)


def from_snapshot(config: Any, node: Node) -> Node:
    """Another process, of whose log only a snapshot is left."""
    new = node_of(config, node.stub.key.id)
    snapshot: Any = _Snapshot((raw_batch(list(node.stub.controller.freeze()), 0),))
    new.stub.controller.load(snapshot)
    new.stub.raft.high_watermark = new.stub.raft.end_offset = _Snapshot.id.offset
    return new


async def led(node: Node) -> None:
    """Let a node lead until it has written what comes first."""
    stub = node.stub
    stub.raft.epoch += 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stub.controller.run)
        stub.commit(control_batch(stub.raft.end_offset, epoch=stub.raft.epoch))
        stub.controller.leadership(stub.key.id, stub.raft.epoch, stub.raft.end_offset)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def cluster(config: Any, *users: Message) -> list[Node]:
    """Three nodes that have followed the first one."""
    nodes = [node_of(config, node_id) for node_id in (1, 2, 3)]
    await led(nodes[0])
    for node in nodes[1:]:
        for batch in nodes[0].stub.batches:
            node.stub.commit(batch)
    commit(nodes, *users)
    return nodes


def commit(nodes: list[Node], *records: Message) -> None:
    """Commit records that every node reads."""
    for node in nodes:
        if records:
            node.stub.commit_records(*((record, 0) for record in records))


def user(name: str, more: str = "", salt: bytes = b"") -> Message:
    """A user with a password, as Kafka's tools make one."""
    salt = salt or salt_of(Random(name).randbytes(SALT_RANDOM_BYTES))
    return parse_scram_argument(f"{SCRAM_SHA_256}=[name={name},password=p{more}]", salt)


def gone(name: str) -> Message:
    """A user is removed."""
    return RemoveUserScramCredentialRecord(name=name, mechanism=1)


def asked(server: SaslServer, message: Message, version: int) -> LoginStep:
    """A step of a login."""
    return server.receive(payload_of(message, version), now_ms=0, epoch_ms=0)


def begun(node: Node, first: bytes) -> tuple[SaslServer, LoginStep]:
    """A login after the client's first message."""
    server = node.guard.login()
    assert server is not None
    asked(server, SaslHandshakeRequest(mechanism=SCRAM_SHA_256), 1)
    return server, asked(server, SaslAuthenticateRequest(auth_bytes=first), 2)


def token_of(step: LoginStep) -> bytes:
    """What a node answered."""
    assert step.reply is not None
    _, answer, _ = decode_response(step.reply, SaslAuthenticateRequest.API_KEY, 2)
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer.auth_bytes


def shown(node: Node, name: str, more: str = "") -> Shown:
    """What a node shows of a name."""
    _, step = begun(node, f"n,,n={name},r=client{more}".encode())
    match = _FIRST.fullmatch(token_of(step))
    assert match is not None, step
    return Shown(base64.b64decode(match[2]), int(match[3]))


def all_shown(node: Node, names: tuple[str, ...]) -> dict[str, Shown]:
    """What a node shows of names."""
    return {name: shown(node, name) for name in names}


@in_virtual_time
async def test_names_look_alike_on_all_nodes(tmp_path: Path) -> None:
    """Over restarts, from a snapshot, under another leader, and while users come and go."""
    config = config_of(tmp_path)
    nodes = await cluster(config, *map(user, KNOWN))
    known, unknown = all_shown(nodes[0], KNOWN), all_shown(nodes[0], UNKNOWN)
    for salt, iterations in (*known.values(), *unknown.values()):
        assert (len(salt) in range(20, 27), salt.isalnum(), salt.islower()) == (True,) * 3
        assert iterations == 4096
    assert len({one.salt for one in unknown.values()}) == len(UNKNOWN)
    restarts = [restarted(config, nodes[0]), from_snapshot(config, nodes[1])]
    for node in (*nodes[1:], *restarts):
        assert all_shown(node, KNOWN) == known
        assert all_shown(node, UNKNOWN) == unknown
    # A later leader finds the secret in the log.
    await led(nodes[2])
    assert nodes[2].stub.log_records().count("ConfigRecord") == 1
    commit(nodes, user("dora"), gone("carol"))
    assert all_shown(nodes[2], UNKNOWN) == all_shown(restarts[1], UNKNOWN) == unknown
    assert all_shown(nodes[0], KNOWN[:2]) == all_shown(nodes[1], KNOWN[:2])
    # A removed user has a salt like any other, the same everywhere.
    assert shown(nodes[0], "carol") == shown(nodes[1], "carol") != known["carol"]
    commit(nodes, gone("alice"), gone("bob"), gone("dora"))
    assert all_shown(nodes[0], UNKNOWN) == unknown


@in_virtual_time
async def test_names_look_alike_before_the_first_user(tmp_path: Path) -> None:
    """The first leader has written the secret; the first user changes nothing of others."""
    nodes = await cluster(config_of(tmp_path))
    unknown = all_shown(nodes[0], UNKNOWN)
    assert all_shown(nodes[1], UNKNOWN) == unknown
    commit(nodes, user("alice"))
    assert all_shown(nodes[2], UNKNOWN) == unknown


@in_virtual_time
async def test_names_look_alike_with_users_of_other_tools(tmp_path: Path) -> None:
    """Their iterations and the length of their salts are those of unknown names."""
    users = [user(name, ",iterations=8192", bytes(range(24))) for name in KNOWN]
    nodes = await cluster(config_of(tmp_path), *users)
    for found in (shown(nodes[0], "alice"), *all_shown(nodes[1], UNKNOWN).values()):
        assert (len(found.salt), found.iterations) == (24, 8192)


@in_virtual_time
async def test_names_look_alike_to_a_whole_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same refusals, and the same work: as many hashes in the same order."""
    nodes = await cluster(config_of(tmp_path), *map(user, KNOWN))
    work: list[str] = []
    for name in ("_hmac", "_hash"):
        original = getattr(scram, name)

        def counted(*values: Any, name: str = name, original: Any = original) -> bytes:
            work.append(name)
            result: bytes = original(*values)
            return result

        monkeypatch.setattr(scram, name, counted)
    results: list[list[object]] = []
    for name in ("alice", "zelda"):
        client = ScramClient(SCRAM_SHA_256, PasswordCredentials(name, "wrong"), "c")
        first = client.first()
        work.clear()
        server, step = begun(nodes[0], first)
        before = len(work)
        proof = client.answer(token_of(step)) or b""
        del work[before:]
        last = asked(server, SaslAuthenticateRequest(auth_bytes=proof), 2)
        results.append([list(work), (last.reply, last.end, last.problem)])
        for bad in ("n,a=other,n={},r=c", "n,,n={},r=", "y,,n={},r=c"):
            _, step = begun(nodes[0], bad.format(name).encode())
            results[-1].append((step.reply, step.end, step.problem))
    assert results[0] == results[1]


@in_virtual_time
async def test_names_look_alike_to_a_node_without_a_quorum(tmp_path: Path) -> None:
    """As long as nobody knows what is committed, users are those of the node's log, and a login
    that fails is ended without an answer, whoever it is (SEC-S35)."""
    config = config_of(tmp_path)
    (node, *_) = await cluster(config, *map(user, KNOWN))
    log = ScramUsers(node.stub.image.scram, node.stub.image.decoy_secret)
    alone = node_of(config, 1, log)
    names = (*KNOWN, *UNKNOWN)
    assert all_shown(alone, names) == all_shown(node, names)

    def last(password: str, name: str) -> LoginStep:
        client = ScramClient(SCRAM_SHA_256, PasswordCredentials(name, password), "c")
        server, step = begun(alone, client.first())
        proof = client.answer(token_of(step)) or b""
        return asked(server, SaslAuthenticateRequest(auth_bytes=proof), 2)

    assert last("p", "alice").has_logged_in
    assert last("wrong", "alice") == last("wrong", "zelda")
    assert (last("p", "zelda").reply, last("p", "zelda").end) == (None, LoginEnd.DELAYED)
    for batch in node.stub.batches:
        alone.stub.commit(batch)
    assert last("wrong", "alice") == last("wrong", "zelda")
    assert last("p", "zelda").reply is not None


@in_virtual_time
async def test_a_token_looks_the_same_before_and_after_its_life(tmp_path: Path) -> None:
    """On each node, and not like a user of that name."""
    config = config_of(tmp_path)
    nodes = await cluster(config, user("alice", ",iterations=8192"))
    before = shown(nodes[0], "an-id", ",tokenauth=true")
    assert before.iterations == 4096
    commit(nodes, TOKEN)
    for node in (*nodes, restarted(config, nodes[0])):
        assert shown(node, "an-id", ",tokenauth=true") == before
    commit(nodes, RemoveDelegationTokenRecord(token_id="an-id"))
    assert shown(nodes[1], "an-id", ",tokenauth=true") == before != shown(nodes[1], "an-id")


@in_virtual_time
async def test_each_login_has_a_nonce_of_its_own(tmp_path: Path) -> None:
    """With a nonce that comes again, what was heard of a login could be sent again."""
    (node, *_) = await cluster(config_of(tmp_path), *map(user, KNOWN))
    tokens = [token_of(begun(node, b"n,,n=alice,r=client")[1]) for _ in range(20)]
    nonces = {match[1] for token in tokens if (match := _FIRST.fullmatch(token))}
    assert len(nonces) == len(tokens)
    assert min(map(len, nonces)) >= 24


@in_virtual_time
async def test_the_secret_is_shown_to_nobody(tmp_path: Path) -> None:
    """DescribeConfigs names it and hides its value, as Kafka's brokers do with unknown keys."""
    (node, *_) = await cluster(config_of(tmp_path), *map(user, KNOWN))
    assert len(node.stub.image.decoy_secret or "") == 64
    resources = [DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name="")]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    answer = await answer_of(node.stub, request_of(request, 4, to="both"))
    (config,) = answer.results[0].configs
    assert (config.name, config.value, config.is_sensitive) == (DECOY_SECRET_CONFIG, None, True)
    assert [synonym.value for synonym in config.synonyms] == [None]


@in_virtual_time
async def test_without_a_secret_each_node_has_one_of_its_own(tmp_path: Path) -> None:
    """As where only controllers of Kafka have led: they answer unknown names otherwise anyway."""
    config = config_of(tmp_path)
    nodes = [node_of(config, 1), node_of(config, 2)]
    commit(nodes, *map(user, KNOWN))
    assert shown(nodes[0], "zelda") == shown(nodes[0], "zelda") != shown(nodes[1], "zelda")
    record, _ = config_record(BROKER_RESOURCE, "", DECOY_SECRET_CONFIG, "shared")
    commit(nodes, record)
    assert shown(nodes[0], "zelda") == shown(nodes[1], "zelda")
