"""What a client does on one connection, and how long it takes."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.messages.request_header import RequestHeader
from kraftwire.protocol.payloads import encode_request
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message

# A record with key and value in its batch, and a batch as producers fill it by default.
RECORD_BYTES = 100
BATCH_BYTES = 16 * 1024

_READ_BYTES = 65536
# As many requests as fill 2 MiB are on their way.
_IN_FLIGHT_MAX = 128
_CLIENTS = 1000


def produce(version: int, size: int) -> bytes:
    """A Produce with a batch of that size, which nobody on its way looks into."""
    part = PartitionProduceData(index=0, records=bytes(size))
    topics = [TopicProduceData(name="orders", partition_data=[part])]
    return _framed(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), version)


def latencies(port: int, request: bytes, rate: float, seconds: float) -> list[float]:
    """Send so many requests a second; returns how long the answers took, sorted. Unit: seconds."""
    found: list[float] = []
    sent: deque[float] = deque()
    with _connected(port) as connection:
        answers = _Answers(connection)
        begin = now = time.perf_counter()
        for number in range(int(rate * seconds)):
            due = begin + number / rate
            while (now := time.perf_counter()) < due:
                if select.select([connection], [], [], due - now)[0]:
                    found += _taken(sent, answers.read())
            connection.sendall(request)
            sent.append(time.perf_counter())
        while sent:
            found += _taken(sent, answers.read())
    return sorted(found)


def batches_per_second(port: int, request: bytes, seconds: float) -> float:
    """Send as many as are answered, with some always on their way."""
    with _connected(port) as connection:
        answers = _Answers(connection)
        begin = time.perf_counter()
        waiting = count = 0
        while (took := time.perf_counter() - begin) < seconds:
            while waiting < _IN_FLIGHT_MAX:
                connection.sendall(request)
                waiting += 1
            done = answers.read()
            waiting -= done
            count += done
        while waiting:
            waiting -= answers.read()
    return count / took


@contextmanager
def idle_clients(port: int) -> Iterator[int]:
    """Many clients that have said hello; yields how many."""
    hello = _framed(ApiVersionsRequest(), 0)
    connections = []
    try:
        for _ in range(_CLIENTS):
            connections.append(socket.create_connection(("127.0.0.1", port)))
            connections[-1].sendall(hello)
            assert connections[-1].recv(_READ_BYTES)
        yield _CLIENTS
    finally:
        for connection in connections:
            connection.close()


def _framed(message: Message, version: int) -> bytes:
    header = RequestHeader(
        request_api_key=message.API_KEY,
        request_api_version=version,
        correlation_id=1,
        client_id="bench",
    )
    return frame(encode_request(header, message))


@contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def _taken(sent: deque[float], count: int) -> list[float]:
    now = time.perf_counter()
    return [now - sent.popleft() for _ in range(count)]


class _Answers:
    """Counts the answers that come in."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def read(self) -> int:
        """Wait for some bytes; returns how many answers they complete."""
        data = self._rest + self._connection.recv(_READ_BYTES)
        assert len(data) > len(self._rest), "the connection has ended"
        count = begin = 0
        while len(data) - begin >= 4:
            (size,) = struct.unpack_from(">i", data, begin)
            if len(data) - begin < 4 + size:
                break
            begin += 4 + size
            count += 1
        self._rest = data[begin:]
        return count
