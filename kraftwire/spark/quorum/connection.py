"""One connection to one controller, without an event loop."""

from __future__ import annotations

import socket
from typing import Self

from kraftwire.client.addresses import Address, address_text
from kraftwire.errors import ApiError, WireError
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import ClientSession
from kraftwire.wire.message import Message

__all__ = ["Connection"]

_READ_BYTES = 256 * 1024


class Connection:
    """A blocking connection that first negotiates its versions.

    Units: seconds. Order: `close` at the end, or ``with``. Raises: ApiError NETWORK_EXCEPTION or
    REQUEST_TIMED_OUT, after which the connection is unusable; WireError for responses that cannot
    be read.
    """

    def __init__(self, address: Address, *, client_id: str, timeout_s: float) -> None:
        self._address = address
        self._session = ClientSession(client_id)
        try:
            self._socket = socket.create_connection(address, timeout_s)
        except (OSError, UnicodeError) as error:
            raise self._lost(error) from error
        try:
            self._send(self._session.open())
            while not self._session.is_ready:
                self._session.receive(self._read())
                self._send(self._session.take_output())
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def request(self, message: Message) -> Message:
        """Send a request and wait for its response; the caller handles error codes in it."""
        correlation_id, data = self._session.request(message)
        self._send(data)
        while True:
            for found_id, answer in self._session.receive(self._read()):
                if isinstance(answer, WireError):
                    raise answer
                if found_id != correlation_id:
                    raise WireError("a response out of order", message=answer.NAME)
                return answer

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(error) from error

    def _read(self) -> bytes:
        try:
            data = self._socket.recv(_READ_BYTES)
        except OSError as error:
            raise self._lost(error) from error
        if not data:
            raise self._lost("the node closed the connection")
        return data

    def _lost(self, reason: object) -> ApiError:
        is_late = isinstance(reason, TimeoutError)
        code = ErrorCode.REQUEST_TIMED_OUT if is_late else ErrorCode.NETWORK_EXCEPTION
        return ApiError(code, f"{address_text(self._address)}: {reason}")
