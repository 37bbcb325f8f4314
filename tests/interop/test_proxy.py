"""`kraftwire proxy` before real brokers: other clients notice nothing but the rules."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.testing.ports import free_ports
from tests.interop.clients.brokers import STEPS, brokers_on, use
from tests.interop.clients.matrix import CLIENTS
from tests.support.commands.run import run_decode, run_kraftwire
from tests.support.kafka.maven import unavailable
from tests.support.kafka.mixed_quorum import kind_under_test
from tests.support.kafka.process import KafkaNode, quorum
from tests.support.nodes.process import describe
from tests.support.proxy.process import ProxyProcess, write_rules
from tests.support.security.kafka import (
    HOST,
    USER,
    USER_PASSWORD,
    SecuredNode,
    client_properties,
    secured_cluster,
    write_properties,
)

# Sessions end during a test.
_SESSION_MS = 2000
_NAMES = ("kafka-python", "Kafka's Java clients", "Kafka's tools")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two brokers on three controllers."""
    with brokers_on(kind_under_test(), tmp_path_factory.mktemp("brokers")) as found:
        yield found


@pytest.mark.parametrize("name", _NAMES)
def test_a_client_does_everything_through_the_proxy(
    servers: str, name: str, tmp_path: Path
) -> None:
    """And nothing beside it: a capture has every request twice."""
    client = next(each for each in CLIENTS if each.name == name)
    if missing := client.missing():
        unavailable(f"{name} needs {missing}")
    capture = tmp_path / "out.pcapng"
    with ProxyProcess("--upstream", servers, "--capture", capture) as proxy:
        outcome = use(client, proxy.bootstrap)
    failed = {step: each.detail for step, each in outcome.steps.items() if not each.is_ok}
    assert not failed
    assert {"cluster", "topics", "produce", "classic"} <= outcome.steps.keys() <= set(STEPS)
    assert [line[:11] for line in proxy.lines[1:3]] == ["broker 101 ", "broker 102 "]
    assert "Produce" in proxy.said
    requests = [frame for frame in Capture(str(capture)) if frame.is_request]
    here = [one for one in requests if int(one.connection.rpartition(":")[2]) in proxy.ports]
    assert len(requests) == 2 * len(here)
    decoded = run_decode(str(capture), "-q")
    assert decoded.code == 0, decoded.err


def _python(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of other people's libraries, which warn of this and that."""
    command = [sys.executable, "-W", "ignore", "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


_PRODUCE_ONCE = """
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
address, *topics = sys.argv[1:]
first = KafkaProducer(bootstrap_servers=address, client_id="first")
for topic in topics:
    first.send(topic, b"a", partition=0).get(60)
producer = KafkaProducer(
    bootstrap_servers=address, client_id="tested", retries=0, enable_idempotence=False
)
for topic in topics:
    try:
        producer.send(topic, b"a", partition=0).get(30)
        print(topic, "acknowledged")
    except KafkaError as error:
        print(topic, "failed")
consumer = KafkaConsumer(bootstrap_servers=address)
for topic in topics:
    print(topic, consumer.end_offsets([TopicPartition(topic, 0)])[TopicPartition(topic, 0)])
"""


def test_what_a_rule_says_is_what_the_log_shows(servers: str, tmp_path: Path) -> None:
    """A lost answer leaves the record, a lost request none; each rule counts what it did."""
    # Topics are new, and their leaders are not known everywhere at once.
    tested = {"api": "Produce", "client_id": "tested"}
    rules = write_rules(
        tmp_path / "rules.toml",
        {**tested, "topic": "after", "drop": "after"},
        {**tested, "topic": "before", "drop": "before"},
        {**tested, "topic": "refused", "refuse": "NOT_ENOUGH_REPLICAS"},
    )
    with ProxyProcess("--upstream", servers, "--rules", rules) as proxy:
        topics = ("passed", "after", "before", "refused")
        found = _python(_PRODUCE_ONCE, proxy.bootstrap, *topics)
    assert found.stdout.splitlines() == [
        "passed acknowledged", "after failed", "before failed", "refused failed",
        "passed 2", "after 2", "before 1", "refused 1",
    ], found.stderr  # fmt: skip
    for number in (1, 2, 3):
        (line,) = [one for one in proxy.said.splitlines() if f"rule {number} (" in one]
        assert line.endswith("): 1 requests")


def _control(url: str, path: str, row: object = None) -> Any:
    """What the control interface answers; a row is posted."""
    data = None if row is None else json.dumps(row).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def test_a_rule_that_is_posted_refuses_a_client(servers: str) -> None:
    """Whoever waits for the request gets it, and the record is not in the log."""
    with ProxyProcess("--upstream", servers, "--control", "127.0.0.1:0") as proxy:
        url = proxy.read_line().removeprefix("control ")
        row = {"api": "Produce", "client_id": "tested", "refuse": "INVALID_REQUIRED_ACKS"}
        rule = _control(url, "/rules", row)
        with ThreadPoolExecutor() as pool:
            client = pool.submit(_python, _PRODUCE_ONCE, proxy.bootstrap, "posted")
            found: list[dict[str, Any]] = []
            after = 0
            while not any(one["rule"] == rule["id"] for one in found):
                answer = _control(url, f"/requests?api=Produce&after={after}&timeout_s=100")
                assert answer["requests"], client.result()
                found += answer["requests"]
                after = answer["after"]
        assert client.result().stdout.splitlines() == ["posted failed", "posted 1"]
        assert [one["client_id"] for one in found] == ["first", "tested"]
        assert _control(url, "/rules")["rules"] == [{**rule, "count": 1}]


_PRODUCE_TWICE = """
import sys
from confluent_kafka import Producer
address = sys.argv[1]
for name, is_idempotent in (("once", True), ("twice", False)):
    producer = Producer(
        {"bootstrap.servers": address, "client.id": name, "enable.idempotence": is_idempotent}
    )
    offsets = []
    producer.produce(name, b"a", on_delivery=lambda error, found: offsets.append(found.offset()))
    assert not producer.flush(60)
    print(name, *offsets)
"""


def test_the_story_tells_what_became_of_a_lost_answer(servers: str, tmp_path: Path) -> None:
    """The retry of an idempotent producer is a duplicate that Kafka recognises, others are not."""
    pytest.importorskip("confluent_kafka")
    lost = {"api": "Produce", "drop": "after", "times": 1}
    rules = write_rules(
        tmp_path / "rules.toml", *({**lost, "client_id": name} for name in ("once", "twice"))
    )
    capture = tmp_path / "out.pcapng"
    with ProxyProcess("--upstream", servers, "--rules", rules, "--capture", capture) as proxy:
        found = _python(_PRODUCE_TWICE, proxy.bootstrap)
    assert found.stdout.splitlines() == ["once 0", "twice 1"], found.stderr
    story = json.loads(run_kraftwire("story", "clients", str(capture), "--json", "-q").out)
    produced = {one["client"]: one for one in story["requests"] if one["api"] == "Produce"}
    assert {name: (one["ending"], one["count"]) for name, one in produced.items()} == {
        "once": ("duplicate", 2), "twice": ("appended-twice", 2),
    }  # fmt: skip
    assert all(one["tries"][0]["answers"][0]["baseOffset"] == 0 for one in produced.values())
    # A request counts once, though the capture has it on both sides.
    for client in story["clients"]:
        (line,) = [each for each in proxy.said.splitlines() if f" {client['id']}: " in each]
        counts = [int(word.rstrip(",")) for word in line.split() if word.rstrip(",").isdigit()]
        assert sum(counts) == client["requests"]


def test_a_broker_gives_on_no_address_behind_its_proxy(tmp_path: Path) -> None:
    """Its controller is a proxy's, to which it forwards DescribeQuorum in an Envelope."""
    (port,) = free_ports(1)
    with quorum(tmp_path, 1, is_dynamic=False) as cluster:
        (controller,) = cluster.controllers
        address = f"127.0.0.1:{controller.listeners['CONTROLLER']}"
        with ProxyProcess("--upstream", address) as proxy:
            here = proxy.read_line().removeprefix("controller 1 ")
            voters = {"controller.quorum.voters": f"1@{here}"}
            broker = KafkaNode(101, tmp_path / "broker", {"PLAINTEXT": port}, voters)
            broker.format(cluster.cluster_id)
            try:
                broker.start()
                broker.wait_ready()
                answer = describe(port)
            finally:
                broker.stop()
    assert "Envelope 1" in proxy.said
    assert [f"{one.host}:{one.port}" for one in answer.nodes[0].listeners] == [here]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SecuredNode, Path]]:
    """A node of Kafka with logins, and its stores."""
    folder = tmp_path_factory.mktemp("secured")
    with secured_cluster(folder, session_ms=_SESSION_MS) as cluster:
        (node,) = cluster.nodes
        assert isinstance(node, SecuredNode)
        yield node, folder / "stores"


def _describe(address: str, *words: str) -> str:
    """What our command prints of a quorum; its own client stands for others."""
    found = run_kraftwire("quorum", "describe", "--status", "--bootstrap-server", address, *words)
    assert found.code == 0, found.err
    return found.out


@pytest.mark.parametrize("mechanism", _MECHANISMS)
def test_logins_pass_and_stay_out_of_the_capture(
    secured: tuple[SecuredNode, Path], mechanism: str, tmp_path: Path
) -> None:
    """Brokers are known after the first of them."""
    node, stores = secured
    capture = tmp_path / "out.pcapng"
    values = client_properties("SASL_PLAINTEXT", stores, mechanism)
    login = write_properties(tmp_path / "client.properties", values)
    address = f"{HOST}:{node.listeners['CLEAR_LOGIN']}"
    with ProxyProcess("--upstream", address, "--capture", capture) as proxy:
        assert "LeaderId:               1" in _describe(
            proxy.bootstrap, "--command-config", login
        )
    assert "wants a login" in proxy.said
    content = capture.read_bytes()
    assert USER_PASSWORD.encode() not in content
    assert USER.encode() not in content
    decoded = run_decode(str(capture), "-q")
    assert decoded.code == 0, decoded.err


_LIST_FOR_SECONDS = """
import sys, time
from kafka.admin import KafkaAdminClient
admin = KafkaAdminClient(bootstrap_servers=sys.argv[1])
until = time.monotonic() + 3 * float(sys.argv[2])
while time.monotonic() < until:
    admin.list_topics()
    time.sleep(0.1)
print("fine")
"""


def test_the_proxy_may_log_in_for_all(secured: tuple[SecuredNode, Path], tmp_path: Path) -> None:
    """Its own sessions are renewed, so clients do not notice their end."""
    node, stores = secured
    values = client_properties("SASL_SSL", stores, "SCRAM-SHA-512")
    login = write_properties(tmp_path / "proxy.properties", values)
    address = f"{HOST}:{node.listeners['LOGIN']}"
    with ProxyProcess("--upstream", address, "--command-config", login) as proxy:
        assert proxy.read_line().startswith("broker 1 ")
        session = str(_SESSION_MS / 1000)
        found = _python(_LIST_FOR_SECONDS, proxy.bootstrap, session)
        assert found.stdout.strip() == "fine", found.stderr
    assert "Metadata" in proxy.said
