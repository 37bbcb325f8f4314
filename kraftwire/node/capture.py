"""A node's own traffic as a pcapng file with synthesized TCP headers: no privileges needed.

The file records what connections read and write, in the node's order. A capture that cannot be
written ends with one line and never disturbs the node.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import BinaryIO

import trio

from kraftwire.errors import UsageError
from kraftwire.node.logs import log
from kraftwire.protocol.endpoint import Address
from kraftwire.protocol.pcapng import TcpConnection, capture_start
from kraftwire.transport.streams import Stream


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class CaptureFile:
    """Writes the frames of all connections. Raises: UsageError if the file cannot be made.

    `option` names the path's origin. A file that exists is continued, unless it `is_new`. If it
    cannot be written any more, `say` gets a line, or the node's log without it.
    """

    def __init__(
        self,
        path: str,
        *,
        option: str = "kraftwire.capture.file",
        is_new: bool = False,
        say: Callable[[str], object] | None = None,
    ) -> None:
        self.path = path
        self._say = say
        self._file: BinaryIO | None
        try:
            # Unbuffered: a program that follows the capture sees each frame at once. A restarted
            # node appends a new section to the file. Only the owner may read it: it holds what
            # clients sent.
            self._file = open(path, "ab", buffering=0, opener=_open_private)  # noqa: SIM115
            if is_new:
                self._file.truncate(0)
                os.chmod(self._file.fileno(), 0o600)
        except OSError as error:
            problem = error.strerror or error
            raise UsageError(f"{option}={path}: {problem}") from error
        self.write(capture_start())

    def tap(
        self, stream: Stream, accepted: bool, passes_on: ConnectionTap | None = None
    ) -> ConnectionTap | None:
        """Return the tap of a new connection; None if the stream has no socket.

        Requests that the connection `passes_on` came on the other one.
        """
        if self._file is None or not isinstance(stream, trio.SocketStream):
            return None
        try:
            here, there = stream.socket.getsockname()[:2], stream.socket.getpeername()[:2]
        except OSError:  # closed again already
            return None
        return ConnectionTap(self, here, there, accepted, passes_on)

    def write(self, blocks: bytes) -> None:
        """Append blocks; after a failure the capture has ended."""
        if self._file is None:
            return
        try:
            view = memoryview(blocks)
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            if self._say is None:
                log("error", "capture-ended", file=self.path, problem=error)
            else:
                self._say(f"the capture ends: {self.path}: {error.strerror}")
            self.close()

    def close(self) -> None:
        """Close the file; closing it again has no effect."""
        if self._file is not None:
            self._file.close()
            self._file = None


class ConnectionTap:
    """One connection of the capture."""

    def __init__(
        self,
        file: CaptureFile,
        here: Address,
        there: Address,
        accepted: bool,
        passes_on: ConnectionTap | None = None,
    ) -> None:
        self._file = file
        self._is_client = not accepted
        ends = (here, there) if self._is_client else (there, here)
        self._connection = TcpConnection(*ends)
        other = None if passes_on is None else passes_on._connection
        file.write(self._connection.open(time.time_ns(), passes_on=other))

    def sent(self, data: bytes) -> None:
        self._add(data, from_client=self._is_client)

    def received(self, data: bytes) -> None:
        self._add(data, from_client=not self._is_client)

    def ended(self, *, by_peer: bool = False) -> None:
        is_by_client = self._is_client != by_peer
        self._file.write(self._connection.end(time.time_ns(), from_client=is_by_client))

    def closed(self, *, by_peer: bool = False) -> None:
        is_by_client = self._is_client != by_peer
        self._file.write(self._connection.close(time.time_ns(), from_client=is_by_client))

    def _add(self, data: bytes, *, from_client: bool) -> None:
        self._file.write(self._connection.send(time.time_ns(), data, from_client=from_client))
