"""What security costs a controller, beside plaintext and beside Kafka's: CPU time of its process.

Both controllers run alone and take turns: answers of 64 KiB of the log, with TLS and without, full
handshakes of TLS, logins by SCRAM. Decisions by ACLs are the section `authorizer`.
"""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import trio

from kraftwire.protocol.payloads import decode_response
from kraftwire.security.credentials import SCRAM_SHA_256, PasswordCredentials
from kraftwire.security.sasl_client import SaslClient
from kraftwire.testing.ports import free_ports
from kraftwire.wire.frame import frame
from tests.bench.java_reader import has_java
from tests.bench.report import Bar, console, microseconds, print_table
from tests.bench.siege.honest import lengthen_log
from tests.bench.siege.peer import request
from tests.support.kafka.mixed_quorum import JAVA, OURS
from tests.support.kafka.mixed_quorum.member import Member
from tests.support.kafka.process import kafka_uuid
from tests.support.raft.messages import fetch
from tests.support.security.kafka import (
    MODULES,
    USER,
    USER_PASSWORD,
    ManyListenersNode,
    write_stores,
)

__all__ = ["run"]

_HOST = "127.0.0.1"
_LISTENERS = {"CONTROLLER": "PLAINTEXT", "SECURED": "SSL", "LOGIN": "SASL_PLAINTEXT"}
_LOG_BYTES = 1024 * 1024
_ANSWER_BYTES = 64 * 1024
_ROUNDS = 3
# A JVM compiles for seconds.
_WARM_SECONDS = 4.0
_ROUND_SECONDS = 2.0
_TICKS = os.sysconf("SC_CLK_TCK")


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    if not has_java("security"):
        return []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        made = {
            kind: stack.enter_context(_controller(Path(folder, kind), kind))
            for kind in (OURS, JAVA)
        }
        turns = [(one, name) for name in _JOBS for one in made.values()]
        for one, name in turns:
            one.work(name, _WARM_SECONDS)
        for _ in range(_ROUNDS):
            for one, name in turns:
                one.measure(name, _ROUND_SECONDS)
        _print(made)
    return []


class _Node(ManyListenersNode):
    """A controller with a listener of each kind; every one of them is for controllers."""

    ROLES = "controller"


class _Controller:
    """A running controller. `costs` are the CPU seconds of its process for one of each job."""

    def __init__(self, member: Member, cluster_id: str, epoch: int) -> None:
        self._member = member
        self._epoch = epoch
        self._ports = member.java.listeners
        self._cluster_id = cluster_id
        self.costs: dict[str, list[float]] = {name: [] for name in _JOBS}
        self.sizes: list[int] = []

    def work(self, name: str, seconds: float) -> int:
        """Do a job for a while; returns how many times."""
        once, count, end = _JOBS[name](self), 0, time.monotonic() + seconds
        for _ in once:
            count += 1
            if time.monotonic() > end:
                break
        once.close()
        return count

    def measure(self, name: str, seconds: float) -> None:
        """Note what one costs the process."""
        before = self._cpu_seconds()
        count = self.work(name, seconds)
        self.costs[name].append((self._cpu_seconds() - before) / count)

    def _cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._member.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def fetches(self, listener: str) -> Generator[None, None, None]:
        """Answers of 64 KiB on one connection, one after the other."""
        # As an observer from its first record on, which is what every replica once was.
        message = fetch(-1, 0, 0, self._epoch, max_wait_ms=0)
        message.cluster_id, message.max_bytes = self._cluster_id, _ANSWER_BYTES
        message.topics[0].partitions[0].partition_max_bytes = _ANSWER_BYTES
        data = request(message, 17)
        with self._connected(listener) as connection:
            while True:
                answer = _exchange(connection, data)
                assert len(answer) > _ANSWER_BYTES // 2, decode_response(answer, 1, 17)
                self.sizes.append(len(answer))
                yield

    def handshakes(self) -> Generator[None, None, None]:
        """Connections that do nothing else; nothing of one is used for the next."""
        while True:
            with self._connected("SECURED"):
                pass
            yield

    def logins(self) -> Generator[None, None, None]:
        """Connections that log in by SCRAM, with 4096 iterations, without TLS."""
        who = PasswordCredentials(USER, USER_PASSWORD)
        while True:
            with self._connected("LOGIN") as connection:
                login = SaslClient(SCRAM_SHA_256, who, secrets.token_urlsafe(24))
                payload = login.next_request()
                while payload is not None:
                    payload = login.next_request(_exchange(connection, frame(payload)))
            yield

    @contextmanager
    def _connected(self, listener: str) -> Iterator[socket.socket]:
        with socket.create_connection((_HOST, self._ports[listener]), 30) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if _LISTENERS[listener] != "SSL":
                yield plain
                return
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(plain) as secured:
                yield secured


_JOBS: dict[str, Callable[[_Controller], Generator[None, None, None]]] = {
    "Fetch of 64 KiB, plaintext": lambda one: one.fetches("CONTROLLER"),
    "Fetch of 64 KiB, TLS 1.3": lambda one: one.fetches("SECURED"),
    "handshake of TLS 1.3, P-256": _Controller.handshakes,
    "login by SCRAM-SHA-256": _Controller.logins,
}


@contextmanager
def _controller(folder: Path, kind: str) -> Iterator[_Controller]:
    ports = dict(zip(_LISTENERS, free_ports(len(_LISTENERS)), strict=True))
    stores = folder / "stores"
    stores.mkdir(parents=True)
    write_stores(stores)
    mechanism = SCRAM_SHA_256.lower()
    properties = {
        "controller.listener.names": ",".join(_LISTENERS),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in _LISTENERS.items()),
        "controller.quorum.voters": f"1@{_HOST}:{ports['CONTROLLER']}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": stores / "node.pem",
        "sasl.enabled.mechanisms": SCRAM_SHA_256,
        f"listener.name.login.{mechanism}.sasl.jaas.config": f"{MODULES[SCRAM_SHA_256]} required;",
    }
    member = Member(kind, _Node(1, folder / "node", ports, properties))
    cluster_id = kafka_uuid()
    user = f"{SCRAM_SHA_256}=[name={USER},password={USER_PASSWORD}]"
    member.format(cluster_id, "--add-scram", user)
    member.start()
    try:
        member.wait_ready()
        while (found := member.describe()) is None or found.leader_id != 1:
            time.sleep(0.1)
        trio.run(lengthen_log, [ports["CONTROLLER"]], cluster_id, _LOG_BYTES)
        yield _Controller(member, cluster_id, found.leader_epoch)
    finally:
        member.kill()


def _exchange(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return _read(connection, struct.unpack(">i", _read(connection, 4))[0])


def _read(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def _print(made: dict[str, _Controller]) -> None:
    rows = []
    for name in _JOBS:
        best = {kind: min(one.costs[name]) for kind, one in made.items()}
        figures = (best[OURS], best[JAVA])
        rates = (f"{1 / cost:,.0f}" for cost in figures)
        rows.append((name, *map(microseconds, figures), *rates))
    columns = ("", "kraftwire, CPU us", "Kafka, CPU us", "a second and core", "Kafka")
    print_table("What one costs a controller", columns, rows)
    sizes = {kind: sorted(one.sizes)[len(one.sizes) // 2] // 1024 for kind, one in made.items()}
    console.print(f"answers to Fetch: {sizes[OURS]} KiB, Kafka's {sizes[JAVA]} KiB")
