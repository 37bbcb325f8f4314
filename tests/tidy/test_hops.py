"""READMEs follow requests through the code: they name what is called, in that order."""

from __future__ import annotations

import contextlib
import io
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
import trio

from kraftwire import engine
from kraftwire.cli.main import main
from kraftwire.client import AsyncAdmin
from kraftwire.controller.versions import SUPPORTED_FEATURES
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
)
from kraftwire.messages.broker_registration_request import Listener as BrokerListener
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.create_topics_response import CreateTopicsResponse
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftwire.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftwire.node.app import Node
from kraftwire.node.config import load
from kraftwire.protocol.topic_names import METADATA_TOPIC_ID
from kraftwire.testing.ports import free_ports
from tests.support.captures import payloads
from tests.support.captures.builder import Session, frame, pcap_of
from tests.support.logs.batches import batch
from tests.support.nodes.fake_core import Listener
from tests.support.suite.engines import use
from tests.tidy.sources import ROOT

PACKAGE = f"{ROOT / 'kraftwire'}/"
VERSION = 17


@pytest.fixture(autouse=True)
def _in_python() -> Iterator[None]:
    """Calls into the engine in C cannot be seen; it does what the generated modules would do."""
    before = engine.name()
    use(engine.PYTHON)
    yield
    use(before)


@contextlib.contextmanager
def calls() -> Iterator[list[str]]:
    """The modules whose functions are called meanwhile, one after the other."""
    found: list[str] = []

    def note(called: FrameType, event: str, _: object) -> None:
        place = called.f_code.co_filename
        if event == "call" and place.startswith(PACKAGE) and called.f_code.co_name != "<module>":
            module = place.removeprefix(PACKAGE)
            if found[-1:] != [module]:
                found.append(module)

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def section(title: str, package: str = "") -> str:
    """A section of a package's README."""
    readme = ROOT / "kraftwire" / package / "README.md"
    return readme.read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def modules(text: str) -> list[str]:
    """The modules that a text names, in order."""
    return re.findall(r"`([a-z_/]+\.py)`", text)


def follows(names: list[str], sequence: list[str]) -> str:
    """The first of the names that is not called after those before it; empty if all are."""
    rest = iter(sequence)
    return next((name for name in names if name not in rest), "")


def fetch_request() -> FetchRequest:
    """A replica that has nothing yet."""
    partition = FetchPartition(partition=0, current_leader_epoch=1, fetch_offset=0)
    partition.last_fetched_epoch = 0
    return FetchRequest(
        replica_state=ReplicaState(replica_id=2),
        max_bytes=1 << 20,
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


async def _serve_a_fetch(folder: Path) -> list[str]:
    """What a node that leads alone calls for one Fetch."""
    (port,) = free_ports(1)
    config = folder / "node.properties"
    config.write_text(
        f"node.id=1\nlisteners=PLAINTEXT://127.0.0.1:{port}\n"
        f"controller.quorum.voters=1@127.0.0.1:{port}\nlog.dirs={folder / 'data'}\n"
        "metadata.max.idle.interval.ms=0\n"
    )
    # Without a controller nothing else is written meanwhile.
    node, stop = Node(load(str(config)), state_machine=Listener()), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.run, stop)
        await node.ready.wait()
        await node.driver.waiters.above(0, 60_000)
        request = frame(payloads.request("Fetch", VERSION, fetch_request()))
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            with calls() as found:
                await stream.send_all(request)
                answer = await stream.receive_some()
        assert struct.unpack_from(">i", answer)[0] == len(answer) - 4 > 150
        stop.set()
    return found


def test_a_fetch_goes_through_a_node_as_the_readme_says(tmp_path: Path) -> None:
    """A newcomer follows the list; a wrong hop costs an hour."""
    text = section("A Fetch through a node, in six hops")
    hops, others = text.split("Called on the way")
    found = trio.run(_serve_a_fetch, tmp_path)
    assert follows(modules(hops), found) == ""
    folders = tuple(re.findall(r"`([a-z]+/)`", others))
    named = {*modules(text), "node/app.py", "node/listener.py"}  # the two that accept connections
    unnamed = {module for module in found if module not in named}
    assert {module for module in unnamed if not module.startswith(folders)} == set()
    assert set(modules(text)) - set(found) == set()


async def _register_broker(admin: AsyncAdmin, cluster_id: str) -> None:
    """Register a broker that may lead partitions."""
    features = [
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    ]
    listeners = [BrokerListener(name="PLAINTEXT", host="127.0.0.1", port=9092)]
    registered = await admin.request(
        BrokerRegistrationRequest(
            broker_id=101,
            cluster_id=cluster_id,
            incarnation_id=b"1" * 16,
            listeners=listeners,
            features=features,
            log_dirs=[b"2" * 16],
        )
    )
    assert isinstance(registered, BrokerRegistrationResponse)
    epoch = registered.broker_epoch
    beat = await admin.request(
        BrokerHeartbeatRequest(broker_id=101, broker_epoch=epoch, current_metadata_offset=epoch)
    )
    assert isinstance(beat, BrokerHeartbeatResponse)
    assert not beat.is_fenced


async def _create_a_topic(config: Path, port: int, cluster_id: str) -> list[str]:
    """What a client and a controller that leads alone call for one topic."""
    node, stop = Node(load(str(config))), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.run, stop)
        await node.ready.wait()
        async with AsyncAdmin(bootstrap_controllers=f"127.0.0.1:{port}") as admin:
            await admin.describe_quorum()
            while not node.context.controller.is_active or not node.context.image.controllers:
                await node.driver.waiters.above(node.context.raft.high_watermark, 60_000)
            await _register_broker(admin, cluster_id)
            topic = CreatableTopic(name="a", num_partitions=1, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
            with calls() as found:
                created = await admin.request(request)
        assert isinstance(created, CreateTopicsResponse)
        assert created.topics[0].error_code == 0
        stop.set()
    return found


def test_a_topic_is_created_as_the_readme_says(tmp_path: Path) -> None:
    """From the client through the decision and the log to the answer."""
    (port,) = free_ports(1)
    config, cluster_id = tmp_path / "node.properties", "9CIbsF9FQuGtwD837BRpPA"
    config.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://127.0.0.1:{port}\nlog.dirs={tmp_path / 'data'}\n"
        f"controller.quorum.voters=1@127.0.0.1:{port}\nmetadata.max.idle.interval.ms=0\n"
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "super.users=User:ANONYMOUS\n"
    )
    with contextlib.suppress(SystemExit):
        main(["storage", "format", "--config", str(config), "--cluster-id", cluster_id])
    text = section("A CreateTopics through the active controller")
    hops = text.partition("\n1. ")[2]
    assert follows(modules(hops), trio.run(_create_a_topic, config, port, cluster_id)) == ""


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture of a Fetch and its response."""
    partition = PartitionData(partition_index=0, records=batch(5))
    topic = FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    session = Session().open()
    session.client(frame(payloads.request("Fetch", VERSION, fetch_request())))
    session.server(frame(payloads.response("Fetch", VERSION, FetchResponse(responses=[topic]))))
    path = tmp_path / "fetch.pcap"
    path.write_bytes(pcap_of(session.segments))
    return path


def decode(path: Path, *options: str) -> list[str]:
    """What the command calls for a capture."""
    output = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit), calls() as found:
        main(["decode", str(path), *options])
    return found


AS_JSON = ("--format", "jsonl", "--records", "full")


def test_a_captured_fetch_is_decoded_as_the_readme_says(capture: Path) -> None:
    """The same holds for the decode tool."""
    text = section("A captured Fetch, hop by hop")
    assert follows(modules(text), decode(capture, *AS_JSON)) == ""
    assert any(module.startswith("inspect/") for module in decode(capture))


def test_a_packet_becomes_an_exchange_as_the_readme_of_capture_says(capture: Path) -> None:
    """Without the list it takes a debugger to see who calls whom."""
    text = section("From a packet to an exchange", "capture")
    names = [f"capture/{name}" for name in modules(text)]
    assert len(names) > 10
    assert follows(names, decode(capture)) == ""


def test_a_frame_becomes_an_exchange_as_the_readme_of_decode_says(capture: Path) -> None:
    """Both paths: that of ordinary frames, and that of all others."""
    lines, others = section("From a frame to an exchange", "decode").split("All other frames")
    for text, options in ((lines, ()), (others, AS_JSON)):
        names = [f"decode/{name}" for name in modules(text)]
        assert len(names) > 4
        assert follows(names, decode(capture, *options)) == ""
