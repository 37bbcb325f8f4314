"""A server that accepts Kafka's clients over TLS, and keeps what was sent, encrypted and in clear.

It answers the first requests of a client: ApiVersions, and Metadata of a cluster with one broker,
this server, and no topics.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire import messages
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import encode_response, peek_request
from tests.support.captures.builder import Segment, Session
from tests.support.captures.tls_session import certificate

_API_VERSIONS, _METADATA = 18, 3
_VERSIONS = {_API_VERSIONS: (0, 4), _METADATA: (0, 12)}


@dataclass
class TlsServer:
    """The server; a context. `frames` are requests in clear, `sessions` one per client."""

    folder: Path
    version: ssl.TLSVersion
    frames: list[bytes] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def __enter__(self) -> TlsServer:
        """Listen on any loopback port."""
        self.certificate, key = certificate(self.folder)
        self.keylog = self.folder / "keys.log"
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, key)
        self._context.minimum_version = self._context.maximum_version = self.version
        self._context.keylog_filename = str(self.keylog)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._serving: list[tuple[threading.Thread, socket.socket]] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening, and read nothing more from clients that stay connected."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for thread, peer in self._serving:
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RD)
            thread.join()

    @property
    def segments(self) -> list[Segment]:
        """What was on the wire, one connection after the other."""
        return [segment for session in self.sessions for segment in session.segments]

    def _accept(self) -> None:
        while True:
            try:
                peer, address = self._listener.accept()
            except OSError:
                return
            session = Session(("127.0.0.1", address[1]), ("127.0.0.1", self.port)).open()
            self.sessions.append(session)
            thread = threading.Thread(target=self._serve, args=(peer, session))
            self._serving.append((thread, peer))
            thread.start()

    def _serve(self, peer: socket.socket, session: Session) -> None:
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        end = self._context.wrap_bio(into, out, server_side=True)
        text = b""
        peer.settimeout(30)
        with peer:
            while True:
                try:
                    # A read returns one TLS record, and what arrived may hold several.
                    while some := end.read(65536):
                        text = self._take(text + some, end)
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLError, OSError):
                    return
                try:
                    if data := out.read():
                        session.server(data)
                        peer.sendall(data)
                    data = peer.recv(65536)
                except OSError:
                    return
                if not data:
                    session.close()
                    return
                session.client(data)
                into.write(data)

    def _take(self, text: bytes, end: ssl.SSLObject) -> bytes:
        """Answer the whole requests; returns what is left."""
        while len(text) >= 4 and len(text) >= 4 + int.from_bytes(text[:4], "big"):
            size = 4 + int.from_bytes(text[:4], "big")
            end.write(self._answer(text[4:size]))
            text = text[size:]
        return text

    def _answer(self, request: bytes) -> bytes:
        self.frames.append(request)
        key, version = peek_request(request)
        header = ResponseHeader(correlation_id=int.from_bytes(request[4:8], "big", signed=True))
        if key == _API_VERSIONS:
            offered = [
                ApiVersion(api_key=each, min_version=low, max_version=high)
                for each, (low, high) in _VERSIONS.items()
            ]
            return _framed(encode_response(header, ApiVersionsResponse(api_keys=offered), version))
        assert key == _METADATA, messages.API_NAMES.get(key)
        broker = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        body = MetadataResponse(brokers=[broker], cluster_id="tls", controller_id=1)
        return _framed(encode_response(header, body, version))


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload
