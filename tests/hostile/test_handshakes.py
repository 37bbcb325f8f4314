"""Handshakes that never end, and floods of them: SEC-HANDSHAKE on a real node."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from kraftwire.testing import Quorum, quorum
from tests.support.security.certificates import authority, identity, pem

HOST = "127.0.0.1"
# The start of a ClientHello that is never finished.
BEGUN = b"\x16\x03\x01\x02\x00\x01"
# More than may be unfinished.
STALLED = 400


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """A quorum of one, whose listeners and connections are TLS."""
    folder = tmp_path_factory.mktemp("tls")
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}
    (folder / "ca.pem").write_text(pem(authority().certificate))
    path = folder / "node.pem"
    path.write_text(identity().key_pem() + identity().chain_pem)
    path.chmod(0o600)
    properties = trust | {
        "listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:SSL",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
    }
    client = trust | {"security.protocol": "SSL"}
    with quorum(1, folder=folder / "quorum", properties=properties, security=client) as made:
        yield made


def _port(nodes: Quorum) -> int:
    return int(nodes.bootstrap_controllers.rpartition(":")[2])


def test_handshakes_that_stop_keep_nobody_out(nodes: Quorum) -> None:
    """Silent ones and begun ones, many more than may be unfinished, stay open all the while."""
    before = nodes.admin().describe_quorum()
    with ExitStack() as stack:
        for number in range(STALLED):
            one = stack.enter_context(socket.create_connection((HOST, _port(nodes)), 30))
            if number % 4:
                one.sendall(BEGUN)
        for _ in range(5):
            found = nodes.admin().describe_quorum()
    assert (found.leader_id, found.leader_epoch) == (before.leader_id, before.leader_epoch)
    assert "too many others have begun" in nodes.log(1)


def test_a_flood_of_handshakes_costs_no_election(nodes: Quorum) -> None:
    """Four clients do nothing but shake hands, while an honest one asks and is answered."""
    before = nodes.admin().describe_quorum()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    is_over = threading.Event()
    counts = [0] * 4

    def flood(number: int) -> None:
        while not is_over.is_set():
            with suppress(OSError), socket.create_connection((HOST, _port(nodes)), 30) as plain:
                context.wrap_socket(plain).close()
                counts[number] += 1

    threads = [threading.Thread(target=flood, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            found = nodes.admin().describe_quorum()
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert min(counts) > 0
    assert (found.leader_id, found.leader_epoch) == (before.leader_id, before.leader_epoch)
    assert nodes.is_running(1)


def test_plaintext_and_garbage_leave_the_node_alone(nodes: Quorum) -> None:
    """Requests in clear, HTTP, and noise: closed, with a line at most."""
    request = b"\x00\x00\x00\x14" + b"x" * 20
    for data in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 64, request):
        with socket.create_connection((HOST, _port(nodes)), 30) as one:
            one.sendall(data)
            one.shutdown(socket.SHUT_WR)
            with suppress(OSError):
                while one.recv(4096):
                    pass
    assert nodes.admin().describe_quorum().leader_id == 1
    assert "Traceback" not in nodes.log(1)
