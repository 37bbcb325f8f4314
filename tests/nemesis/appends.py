"""Clients that change metadata all the time and record the answers.

A change is the registration of a broker that does not exist, with a new id each time: Kafka's
active controller and ours accept it, and the answer names the offset of its record. Most of them
are unregistered again, so that the state stays small.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Self

from kraftwire.controller.versions import SUPPORTED_FEATURES
from kraftwire.errors import KraftwireError
from kraftwire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message
from tests.nemesis.history import Append, History, Look

# Far above the ids of the nodes.
FIRST_BROKER_ID = 100_000

_REQUEST_SECONDS_MAX = 4.0
_PAUSE_SECONDS = 0.02
_SEARCH_SECONDS = 0.1
_UNREGISTER = 0.9

_VERSIONS = {BrokerRegistrationRequest: 3, UnregisterBrokerRequest: 0, DescribeQuorumRequest: 1}


class Appenders:
    """Clients in separate threads, for the duration of a `with` block."""

    def __init__(self, cluster_id: str, ports: Mapping[int, int], count: int, seed: int) -> None:
        """Name the controllers' ports by node id, and how many clients there are."""
        self.history = History()
        self._cluster_id = cluster_id
        self._ports = dict(ports)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._next_broker = FIRST_BROKER_ID
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(f"{seed} {i}"),), daemon=True)
            for i in range(count)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the clients after their present calls."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def acknowledged(self) -> int:
        """How many appends were acknowledged so far."""
        return sum(append.is_acknowledged for append in list(self.history.appends))

    def _run(self, source: random.Random) -> None:
        client = _Client(self._ports, source, self._stop)
        with contextlib.closing(client):
            while not self._stop.wait(_PAUSE_SECONDS):
                look = client.find_leader()
                if look is None:
                    self._stop.wait(_SEARCH_SECONDS)
                    continue
                with self._lock:
                    self.history.looks.append(look)
                self._append(client, source)

    def _append(self, client: _Client, source: random.Random) -> None:
        with self._lock:
            broker_id = self._next_broker
            self._next_broker += 1
        key = uuid.UUID(int=source.getrandbits(128)).bytes
        epoch = self._ask(client, key, _registration(broker_id, key, self._cluster_id))
        if epoch is not None and source.random() < _UNREGISTER:
            gone = struct.pack(">iq", broker_id, epoch)
            self._ask(client, gone, UnregisterBrokerRequest(broker_id=broker_id))

    def _ask(self, client: _Client, key: bytes, request: Message) -> int | None:
        """Append once; returns the offset in the answer, if any.

        Any other answer leaves the outcome open: a controller that loses its
        leadership refuses changes that it has appended already.
        """
        append = Append(key, time.monotonic())
        with self._lock:
            self.history.appends.append(append)
        answer = client.ask(request)
        now = time.monotonic()
        if answer is None or getattr(answer, "error_code", None) != ErrorCode.NONE:
            return None
        if isinstance(answer, BrokerRegistrationResponse):
            append.offset = answer.broker_epoch
        append.returned = now
        return append.offset


def _registration(broker_id: int, key: bytes, cluster_id: str) -> Message:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=key,
        listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=9)],
        # It supports every level that may be finalized.
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=None,
        log_dirs=[key],
    )


class _Client:
    """One connection to the controller that led last."""

    def __init__(
        self, ports: Mapping[int, int], source: random.Random, stop: threading.Event
    ) -> None:
        self._ports = dict(ports)
        self._source = source
        self._stop = stop
        self._connection: socket.socket | None = None
        self._node_id = 0
        self._correlation_id = 0

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def find_leader(self) -> Look | None:
        """Ask the controller that led last, then all of them; stay connected to the leader."""
        others = sorted(set(self._ports) - {self._node_id})
        self._source.shuffle(others)
        for node_id in (self._node_id, *others):
            if self._stop.is_set():
                return None
            if node_id and (look := self._look(node_id)) is not None:
                return look
        return None

    def _look(self, node_id: int) -> Look | None:
        if node_id != self._node_id:
            self.close()
            self._node_id = node_id
        called = time.monotonic()
        partition = PartitionData(partition_index=0)
        topic = TopicData(topic_name="__cluster_metadata", partitions=[partition])
        answer = self.ask(DescribeQuorumRequest(topics=[topic]))
        if not isinstance(answer, DescribeQuorumResponse) or not answer.topics:
            return None
        partition = answer.topics[0].partitions[0]
        if partition.error_code != ErrorCode.NONE or partition.leader_id != node_id:
            return None
        now = time.monotonic()
        return Look(node_id, partition.leader_epoch, partition.high_watermark, called, now)

    def ask(self, request: Message) -> Message | None:
        """One answer; None if there is none: the next call then opens a new connection."""
        self._correlation_id += 1
        version = _VERSIONS[type(request)]
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id="nemesis",
        )
        try:
            if self._connection is None:
                address = ("127.0.0.1", self._ports[self._node_id])
                self._connection = socket.create_connection(address, _REQUEST_SECONDS_MAX)
            self._connection.sendall(frame(encode_request(header, request)))
            (size,) = struct.unpack(">i", _read(self._connection.recv, 4))
            payload = _read(self._connection.recv, size)
            return decode_response(payload, request.API_KEY, version)[1]
        except (OSError, KraftwireError):
            self.close()
            return None


def _read(receive: Callable[[int], bytes], count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = receive(count - len(data))
        if not piece:
            raise ConnectionError(f"the connection ended after {len(data)} of {count} bytes")
        data += piece
    return data
