"""Requests and answers with arbitrary field values to a running node: it keeps running.

The node is a separate process, so that its end would be noticed as users would notice it.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.node.handlers.versions import RAFT_APIS, offered
from kraftwire.protocol.payloads import decode_request, encode_request, encode_response
from kraftwire.wire.frame import FrameBuffer, frame
from tests.support.messages.random_messages import SEED_VARIABLE, random_message
from tests.support.nodes.process import NodeQuorum, describe

REQUESTS = 250
ANSWERS = 150
SECONDS_MAX = 30.0

_METADATA_ID = bytes(15) + b"\x01"
_IDS = (-2, -1, 0, 1, 1, 2, 3)
_EPOCHS = (-1, 0, 1, 1, 2, 3)
_OFFSETS = (-1, 0, 1, 5, 10, 100)


def seeded() -> random.Random:
    """The same values in every run; the environment can set another seed."""
    seed = int(os.environ.get(SEED_VARIABLE, "1"))
    print(f"{SEED_VARIABLE}={seed}")
    return random.Random(seed)


def likely(name: str, value: object, cluster_id: str | None, source: random.Random) -> Any:
    """A value with which a request gets further than its first check; the same if none is known."""
    if name == "cluster_id":
        return source.choice((None, cluster_id))
    if name in ("topic", "topic_name", "name") and isinstance(value, str):
        return "__cluster_metadata"
    if name == "topic_id":
        return _METADATA_ID
    if name in ("partition", "partition_index"):
        return 0
    if name.endswith("directory_id"):
        return source.choice((bytes(16), bytes(15) + b"\x05"))
    if name in ("max_wait_ms", "timeout_ms"):
        return source.choice((-1, 0, 10))
    if type(value) is int:
        for ending, values in (("_id", _IDS), ("epoch", _EPOCHS), ("offset", _OFFSETS)):
            if name.endswith(ending):
                return source.choice(values)
    return value


def make_likely(struct: Any, cluster_id: str | None, source: random.Random) -> None:
    """Put likely values into most of the fields of a struct and of those in it."""
    for name in type(struct).__slots__:
        value = getattr(struct, name)
        if isinstance(value, list):
            del value[source.randint(1, 3) :]
            for item in value:
                if hasattr(type(item), "__slots__") and not isinstance(item, str | bytes | int):
                    make_likely(item, cluster_id, source)
        elif source.random() < 0.85:
            setattr(struct, name, likely(name, value, cluster_id, source))


def ask(port: int, data: bytes) -> bool:
    """Whether a request got an answer or its connection was closed."""
    with socket.create_connection(("localhost", port), timeout=SECONDS_MAX) as connection:
        connection.sendall(data)
        try:
            return bool(connection.recv(4))
        except ConnectionResetError:
            return False


@pytest.mark.parametrize("keys", ["raft", "all"])
def test_no_request_ends_a_node_or_waits_for_ever(tmp_path: Path, keys: str) -> None:
    """No bytes of a peer or a client may take a voter out of the quorum."""
    source = seeded()
    with NodeQuorum(tmp_path, 1) as quorum:
        node = quorum.start(1)
        node.wait_for("event=controller-active")
        cluster_id = node.wait_for("event=cluster-id").rpartition("=")[2]
        port = quorum.ports[1]
        versions = offered(is_controller=True, is_client=True)
        chosen = sorted(RAFT_APIS if keys == "raft" else versions)
        answers = 0
        for _ in range(REQUESTS):
            api_key = source.choice(chosen)
            version = source.randint(*versions[api_key])
            message = random_message(messages.request_class(api_key), version, source)
            make_likely(message, cluster_id, source)
            header = RequestHeader(
                request_api_key=api_key, request_api_version=version, correlation_id=1
            )
            try:
                data = frame(encode_request(header, message))
            except WireError:  # values that this version cannot carry
                continue
            answers += ask(port, data)
            assert node.is_alive, f"the node ended after {message}\n" + "\n".join(node.lines)
        assert answers > REQUESTS / 2
        partition = describe(port).topics[0].partitions[0]
        assert (partition.error_code, partition.leader_id) == (0, 1)
        faults = [line for line in node.lines if "handler-failed" in line or "Traceback" in line]
        assert not faults, "\n".join(faults)
        assert node.stop() == 0


class HostileVoter:
    """Voter 2 of two: agrees on versions, then gives arbitrary answers."""

    def __init__(self, source: random.Random) -> None:
        self.answer_count = 0
        self.enough = threading.Event()
        self._source = source
        self._server = socket.create_server(("localhost", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        frames = FrameBuffer()
        # The node closes connections whose answers it cannot use.
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                for payload in frames.feed(data):
                    connection.sendall(self._answer(payload))

    def _answer(self, payload: bytes) -> bytes:
        header, _, _ = decode_request(payload)
        key, version = header.request_api_key, header.request_api_version
        response = ResponseHeader(correlation_id=header.correlation_id)
        if key == ApiVersionsRequest.API_KEY:
            keys = [
                ApiVersion(api_key=api_key, min_version=low, max_version=high)
                for api_key, (low, high) in offered(is_controller=True, is_client=False).items()
            ]
            return frame(encode_response(response, ApiVersionsResponse(api_keys=keys), version))
        self.answer_count += 1
        if self.answer_count >= ANSWERS:
            self.enough.set()
        while True:
            message = random_message(messages.response_class(key), version, self._source)
            make_likely(message, None, self._source)
            try:
                return frame(encode_response(response, message, version))
            except WireError:  # values that this version cannot carry
                continue


def test_no_answer_of_a_voter_ends_a_node(tmp_path: Path) -> None:
    """The node survives what ends a Java node (R-FATAL-1), and arbitrary answers."""
    voter = HostileVoter(seeded())
    with NodeQuorum(tmp_path, 1) as quorum:
        port = quorum.ports[1]
        voters = f"controller.quorum.voters=1@localhost:{port},2@localhost:{voter.port}"
        node = quorum.start(
            1,
            voters,
            "controller.quorum.election.timeout.ms=50",
            "controller.quorum.fetch.timeout.ms=50",
        )
        node.wait_for("^ready ")
        assert voter.enough.wait(SECONDS_MAX * 2), f"{voter.answer_count} answers"
        assert node.is_alive, "\n".join(node.lines[-20:])
        assert not any("Traceback" in line for line in node.lines)
        assert node.stop() == 0
    voter.close()
