"""A TCP proxy on loopback that passes every byte to a capture and a frame counter."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

from tools.record_load.capture import CaptureFile, Conversation
from tools.record_load.mix import Mix, StreamCounter

_HOST = "127.0.0.1"
_CHUNK_SIZE = 65536


class Proxy:
    """Forwards connections to a server on loopback while its context is entered.

    Order: bytes are recorded before they are forwarded, so that no response precedes its request in
    the capture. Leaving waits for the open connections to end.
    """

    def __init__(self, server_port: int, capture: CaptureFile, mix: Mix) -> None:
        self._server_port = server_port
        self._capture = capture
        self._mix = mix
        self._listener = socket.create_server((_HOST, 0))
        self._accepting = threading.Thread(target=self._accept)
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing a listener does not wake the thread that accepts on it; shutting it down does.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, (_, client_port) = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((_HOST, self._server_port))
            except OSError:
                client.close()
                continue
            self._start(client, server, client_port)

    def _start(self, client: socket.socket, server: socket.socket, client_port: int) -> None:
        conversation = Conversation(self._capture, client_port)
        conversation.open()
        requests: dict[int, str] = {}
        for is_client, source, target in ((True, client, server), (False, server, client)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            counter = StreamCounter(self._mix, requests, is_client=is_client)
            pump = _Pump(conversation, counter, source, target, is_client)
            thread = threading.Thread(target=pump.run)
            thread.start()
            self._threads.append(thread)


class _Pump:
    """One direction of one connection."""

    def __init__(
        self,
        conversation: Conversation,
        counter: StreamCounter,
        source: socket.socket,
        target: socket.socket,
        is_client: bool,
    ) -> None:
        self._conversation = conversation
        self._counter = counter
        self._source = source
        self._target = target
        self._is_client = is_client

    def run(self) -> None:
        """Forward until the source ends."""
        try:
            while chunk := self._source.recv(_CHUNK_SIZE):
                self._conversation.data(chunk, from_client=self._is_client)
                self._counter.feed(chunk)
                self._target.sendall(chunk)
        except OSError:
            pass  # a reset ends the direction like a regular end
        self._conversation.close(by_client=self._is_client)
        with contextlib.suppress(OSError):  # the other direction may have ended it already
            self._target.shutdown(socket.SHUT_WR)
