"""Nodes of ours as real processes on loopback, and single requests to them.

Owns properties files and the lifetime of processes: every process is ended by its id. Tests wait
for lines of a node's log, which say what happened and when.
"""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

from kraftwire import messages
from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.testing.ports import free_ports
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message

# Generous, because many processes may share the machine.
SECONDS_MAX = 60.0

README_FILE = """\
node.id={id}
listeners=PLAINTEXT://localhost:{port}
controller.quorum.voters={voters}
log.dirs={log_dir}
"""


def ask(
    port: int, message: Message, version: int, seconds: float = SECONDS_MAX
) -> Message:
    """The answer to one request on a separate connection."""
    header = RequestHeader(
        request_api_key=message.API_KEY, request_api_version=version, correlation_id=5
    )
    with socket.create_connection(("localhost", port), timeout=seconds) as connection:
        connection.sendall(frame(encode_request(header, message)))
        (size,) = struct.unpack(">i", _read(connection, 4))
        return decode_response(_read(connection, size), message.API_KEY, version)[1]


def describe(port: int, seconds: float = SECONDS_MAX) -> DescribeQuorumResponse:
    """What a node reports about the quorum of the metadata log."""
    partition = PartitionData(partition_index=0)
    topic = TopicData(topic_name="__cluster_metadata", partitions=[partition])
    version = messages.API_VERSIONS[DescribeQuorumRequest.API_KEY][1]
    answer = ask(port, DescribeQuorumRequest(topics=[topic]), version, seconds)
    assert isinstance(answer, DescribeQuorumResponse)
    return answer


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        assert piece, f"the node closed the connection after {len(data)} of {count} bytes"
        data += piece
    return data


class NodeProcess:
    """One `kraftwire node start`. `lines` are those of its standard error so far."""

    def __init__(self, config: Path, *overrides: str, copy: Path | None = None) -> None:
        """Start it. `copy` is a file that also gets the lines, for people to read."""
        self.lines: list[str] = []
        self._copy = copy
        self._changed = threading.Condition()
        command = [sys.executable, "-m", "kraftwire", "node", "start", "--config", str(config)]
        for override in overrides:
            command += ["--override", override]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def wait_for(self, pattern: str, since: int = 0) -> str:
        """The first line from number `since` on that matches a pattern."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [line for line in self.lines[since:] if re.search(pattern, line)]
            return bool(found) or not self._reader.is_alive()

        with self._changed:
            self._changed.wait_for(is_there, SECONDS_MAX)
        assert found, f"no line with {pattern!r} in\n" + "\n".join(self.lines)
        return found[0]

    @property
    def pid(self) -> int:
        """The process id, which is the node's own."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End the process without warning."""
        self._process.kill()
        self._process.wait(SECONDS_MAX)

    def stop(self) -> int:
        """Stop the process cleanly; returns its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until the process has ended; returns its exit code."""
        code = self._process.wait(SECONDS_MAX)
        self._reader.join(SECONDS_MAX)
        return code

    def close(self) -> None:
        """Make sure that the process is gone."""
        if self._process.poll() is None:
            self.kill()
        self._reader.join(SECONDS_MAX)
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _read_lines(self) -> None:
        assert self._process.stderr is not None
        with contextlib.ExitStack() as stack:
            copy = stack.enter_context(self._copy.open("a")) if self._copy is not None else None
            for line in self._process.stderr:
                if copy is not None:
                    copy.write(line)
                    copy.flush()
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


class NodeQuorum:
    """Nodes with the properties files of the raft module's README; use it as a context manager."""

    def __init__(self, folder: Path, size: int = 3, *overrides: str) -> None:
        self.folder = folder
        self.ports = dict(enumerate(free_ports(size), 1))
        self.nodes: dict[int, NodeProcess] = {}
        self._overrides = overrides
        voters = ",".join(f"{i}@localhost:{port}" for i, port in self.ports.items())
        for i, port in self.ports.items():
            text = README_FILE.format(id=i, port=port, voters=voters, log_dir=folder / f"log-{i}")
            self.config(i).write_text(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.ExitStack() as stack:
            for node in self.nodes.values():
                stack.callback(node.close)

    def config(self, node_id: int) -> Path:
        """A node's properties file."""
        return self.folder / f"node-{node_id}.properties"

    def start(self, node_id: int, *overrides: str) -> NodeProcess:
        """Start a node."""
        if node_id in self.nodes:
            self.nodes[node_id].close()
        node = NodeProcess(self.config(node_id), *self._overrides, *overrides)
        self.nodes[node_id] = node
        return node

    def start_all(self) -> None:
        """Start all nodes and wait until they accept connections."""
        for node_id in self.ports:
            self.start(node_id)
        for node in self.nodes.values():
            node.wait_for("^ready ")
