"""Captures made of bytes that were sent and received: readable in full, by others too."""

from __future__ import annotations

import shutil
import subprocess
from ipaddress import ip_address
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.errors import UsageError
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest, TopicData
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.endpoint import Address
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.protocol.pcapng import TcpConnection, capture_start
from kraftwire.wire.frame import frame
from tests.support.captures.builder import MILLISECOND, START_NS, decode, request, response

CLIENT, SERVER = ("127.0.0.1", 40000), ("127.0.0.2", 9093)
CLIENT6, SERVER6 = ("::1", 40000), ("fe80::1%lo", 9093)
MAPPED = ip_address("::ffff:127.0.0.1")
DESCRIBE_QUORUM = 55


def a_request(correlation_id: int, name: str = "__cluster_metadata") -> bytes:
    """A framed DescribeQuorum request that is as long as its topic's name makes it."""
    header = RequestHeader(
        request_api_key=DESCRIBE_QUORUM,
        request_api_version=2,
        correlation_id=correlation_id,
        client_id="tester",
    )
    body = DescribeQuorumRequest(topics=[TopicData(topic_name=name)])
    return frame(encode_request(header, body))


def a_response(correlation_id: int) -> bytes:
    """A framed answer without topics."""
    header = ResponseHeader(correlation_id=correlation_id)
    return frame(encode_response(header, DescribeQuorumResponse(), 2))


def captured(client: Address = CLIENT, server: Address = SERVER, *, name: str = "t") -> bytes:
    """A capture of one exchange, from handshake to FIN."""
    connection = TcpConnection(client, server)
    return b"".join(
        (
            capture_start(),
            connection.open(START_NS),
            connection.send(START_NS + MILLISECOND, a_request(1, name), from_client=True),
            connection.send(START_NS + 3 * MILLISECOND, a_response(1), from_client=False),
            connection.close(START_NS + 4 * MILLISECOND, from_client=True),
        )
    )


def assert_undamaged(capture: Capture) -> None:
    """Nothing is missing, duplicated or left over."""
    health = capture.health
    assert not health.problem
    assert (health.skipped_packets, health.gaps, health.undecoded_bytes) == (0, 0, 0)
    assert (health.retransmissions, health.out_of_order, health.midstream_connections) == (0, 0, 0)


@pytest.mark.parametrize(
    ("client", "server", "expected"),
    [
        pytest.param(CLIENT, SERVER, "127.0.0.1:40000-127.0.0.2:9093", id="IPv4"),
        pytest.param(CLIENT6, SERVER6, "[::1]:40000-[fe80::1]:9093", id="IPv6"),
        pytest.param(CLIENT, CLIENT6, f"[{MAPPED}]:40000-[::1]:40000", id="one of each"),
    ],
)
def test_an_exchange_is_decoded_with_its_ends_and_times(
    tmp_path: Path, client: Address, server: Address, expected: str
) -> None:
    """A node's capture of its own traffic must read like a sniffed one."""
    frames, capture = decode(tmp_path / "a.pcapng", captured(client, server))
    assert [found.direction for found in frames] == ["request", "response"]
    assert [found.connection for found in frames] == [expected] * 2
    assert [found.time_ns - START_NS for found in frames] == [MILLISECOND, 3 * MILLISECOND]
    assert frames[1].latency_ms == 2.0
    assert frames[0].data == a_request(1, "t")[4:]
    assert_undamaged(capture)


def test_an_end_that_comes_early_is_not_told_again(tmp_path: Path) -> None:
    """The client sends no more, and gets its answer: a FIN of each, and the capture is whole."""
    connection = TcpConnection(CLIENT, SERVER)
    early = connection.open(START_NS) + connection.send(START_NS, a_request(1), from_client=True)
    early += connection.end(START_NS + MILLISECOND, from_client=True)
    late = connection.send(START_NS + 2 * MILLISECOND, a_response(1), from_client=False)
    end = connection.close(START_NS + 3 * MILLISECOND, from_client=True)
    frames, capture = decode(tmp_path / "a.pcapng", capture_start() + early + late + end)
    assert connection.end(START_NS, from_client=True) == b""
    assert [found.direction for found in frames] == ["request", "response"]
    assert frames[1].latency_ms == 2.0
    assert_undamaged(capture)


@pytest.mark.parametrize("ends", [(CLIENT, SERVER), (CLIENT6, SERVER6)], ids=["IPv4", "IPv6"])
def test_a_long_frame_is_cut_into_segments_and_reassembled(
    tmp_path: Path, ends: tuple[Address, Address]
) -> None:
    """A Fetch answer of a megabyte does not fit into an IP packet."""
    long = "x" * 30_000
    frames, capture = decode(tmp_path / "a.pcapng", captured(*ends, name=long))
    assert frames[0].data == a_request(1, long)[4:]
    assert capture.health.packets > 20
    assert_undamaged(capture)


def test_connections_of_the_same_ends_are_told_apart(tmp_path: Path) -> None:
    """A client's port is used again; the second connection is not a repetition of the first."""
    first, second = TcpConnection(CLIENT, SERVER), TcpConnection(CLIENT, SERVER)
    later = START_NS + 1000 * MILLISECOND
    content = b"".join(
        (
            capture_start(),
            first.open(START_NS),
            first.send(START_NS, a_request(1), from_client=True),
            first.reset(START_NS, from_client=False),
            second.open(later),
            second.send(later, a_request(1), from_client=True),
            second.send(later, a_response(1), from_client=False),
            second.close(later, from_client=False),
        )
    )
    frames, capture = decode(tmp_path / "a.pcapng", content)
    assert [found.direction for found in frames] == ["request", "request", "response"]
    assert capture.health.connections == 2
    assert_undamaged(capture)


def test_connections_may_be_interleaved(tmp_path: Path) -> None:
    """A node has many connections and one capture file."""
    ends = [(("127.0.0.1", 40000 + n), SERVER) for n in range(3)]
    connections = [TcpConnection(*pair) for pair in ends]
    content = capture_start() + b"".join(c.open(START_NS) for c in connections)
    for number in range(4):
        for connection in connections:
            content += connection.send(START_NS, a_request(number), from_client=True)
        for connection in reversed(connections):
            content += connection.send(START_NS, a_response(number), from_client=False)
    frames, capture = decode(tmp_path / "a.pcapng", content)
    assert len(frames) == 3 * 4 * 2
    assert_undamaged(capture)


@pytest.mark.parametrize(
    "address", [("localhost", 9092), ("127.0.0.1", 70000), ("127.0.0.1", -1), ("", 1)]
)
def test_an_impossible_end_is_refused(address: Address) -> None:
    """A name has no bytes for an IP header."""
    with pytest.raises(UsageError, match=r"not a numeric address|not a port"):
        TcpConnection(address, SERVER)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("ends", [(CLIENT, SERVER), (CLIENT6, SERVER6)], ids=["IPv4", "IPv6"])
def test_wireshark_finds_nothing_to_complain_about(
    tmp_path: Path, ends: tuple[Address, Address]
) -> None:
    """Checksums, sequence numbers and lengths are right for a reader that is not ours."""
    path = tmp_path / "a.pcapng"
    connection = TcpConnection(*ends)
    asked = request(7, b"\0\0\0\1" + b"\x13\x88" + b"x" * 5_000)  # the name of a topic
    content = capture_start() + connection.open(START_NS)
    content += connection.send(START_NS, asked, from_client=True)
    content += connection.send(START_NS, response(7, bytes(12)), from_client=False)
    path.write_bytes(content + connection.close(START_NS, from_client=True))
    checks = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
    warnings = "_ws.malformed or _ws.expert.severity >= 6291456 or tcp.analysis.flags"
    read = ["tshark", "-r", str(path), *checks, "-d", "tcp.port==9093,kafka"]
    complaints = subprocess.run(
        [*read, "-Y", warnings], capture_output=True, text=True, check=True
    ).stdout
    assert not complaints
    found = subprocess.run(
        [*read, "-Y", "kafka", "-T", "fields", "-e", "kafka.api_key"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert len(found) == 2


@pytest.mark.parametrize(("client", "server"), [(CLIENT, SERVER), (CLIENT6, ("::1", 9))])
def test_a_connection_that_passes_on_another_says_so(client: Address, server: Address) -> None:
    """By the names that a reader gives to both; other comments are passed over."""
    came, passed = TcpConnection(client, server), TcpConnection(("127.0.0.3", 1), SERVER)
    asked = a_request(1)
    capture = Capture(
        [
            capture_start()
            + came.open(START_NS)
            + passed.open(START_NS, passes_on=came)
            + came.send(START_NS, asked, from_client=True)
            + passed.send(START_NS, asked, from_client=True)
        ]
    )
    names = [frame.connection for frame in capture]
    assert capture.health.passed_on == {names[1]: names[0]}
    assert not capture.health.bytes.unaccounted
