"""A node that answers at once, whatever it is sent: `python -m tests.bench.proxy.broker`.

Prints its port. Of a Produce it reads the header only.
"""

from __future__ import annotations

import socket
import struct
import threading

from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kraftwire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import encode_response
from kraftwire.wire.message import Message

_HEADER = struct.Struct(">ihhi")
_BUFFER_BYTES = 1 << 20


class Broker:
    """Answers to the APIs that a proxy and a producer need. Every connection has a thread."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
        host, self.port = self._listener.getsockname()
        produced = PartitionProduceResponse(index=0)
        answers: list[Message] = [
            MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=1, host=host, port=self.port)]
            ),
            ProduceResponse(responses=[TopicProduceResponse(partition_responses=[produced])]),
        ]
        offered = ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=each.API_KEY, min_version=low, max_version=high)
                for each in (*answers, ApiVersionsResponse())
                for low, high in [(each.VERSIONS.low, each.VERSIONS.high)]
            ]
        )
        self._answers = {each.API_KEY: each for each in (*answers, offered)}
        self._encoded: dict[tuple[int, int], bytes] = {}

    def serve(self) -> None:
        """Serve until the process ends."""
        while True:
            connection, _ = self._listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = bytearray(_BUFFER_BYTES)
        view = memoryview(buffer)
        end = 0
        with connection:
            while count := connection.recv_into(view[end:]):
                end += count
                begin = 0
                answers = []
                while end - begin >= _HEADER.size:
                    size, key, version, number = _HEADER.unpack_from(buffer, begin)
                    if end - begin < 4 + size:
                        break
                    answers.append(self._answer(key, version, number))
                    begin += 4 + size
                buffer[: end - begin] = buffer[begin:end]
                end -= begin
                connection.sendall(b"".join(answers))

    def _answer(self, key: int, version: int, number: int) -> bytes:
        if (key, version) not in self._encoded:
            header = ResponseHeader(correlation_id=0)
            body = encode_response(header, self._answers[key], version)
            self._encoded[key, version] = body[4:]
        rest = self._encoded[key, version]
        return struct.pack(">ii", 4 + len(rest), number) + rest


if __name__ == "__main__":
    broker = Broker()
    print(broker.port, flush=True)
    broker.serve()
