"""Raft test servers, ours and Kafka's, as processes of one quorum, and an observer of it.

Owns properties files and the lifetime of processes. Both programs take the same files and flags,
so a quorum may be mixed. The observer fetches as a consumer would, and is not counted.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kraftwire.errors import KraftwireError
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import FetchResponse, PartitionData
from kraftwire.messages.request_header import RequestHeader
from kraftwire.node.perf import CLUSTER_ID, TOPIC
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.testing.ports import free_ports
from kraftwire.wire.frame import frame
from tests.support.kafka.maven import KAFKA, directory_of
from tests.support.kafka.process import kafka_uuid

# Unthrottled, Kafka's keeps what is not written yet without a bound: 1 GiB is too little.
JAVA = ("java", "-Xmx4g", "-cp", str(directory_of(KAFKA) / "*"), "kafka.tools.TestRaftServer")
OURS = (sys.executable, "-m", "kraftwire", "perf", "--json")

# Unthrottled, Kafka answers a Fetch after some ten seconds.
_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.1
_HOST = "127.0.0.1"
_FETCH_VERSION = 17
_LAST_LINES = 40

_CONFIG = """\
node.id={node_id}
listeners=CONTROLLER://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT
controller.quorum.voters={voters}
log.dirs={log_dir}
"""


@dataclass(frozen=True, slots=True)
class PerfLoad:
    """The flags that all processes get, and properties next to those that every node needs.

    `properties` by node id. Units: records per second, bytes.
    """

    throughput: int = 5000
    record_size: int = 256
    properties: Mapping[int, Mapping[str, object]] = field(default_factory=dict)


class PerfQuorum:
    """Test servers with ids from 1 on, one for each command; use it as a context manager.

    `lines` are those that the processes printed, each with the time of `time.monotonic`;
    `leader_id` is the node that answered last.
    """

    def __init__(self, folder: Path, commands: Sequence[Sequence[str]], load: PerfLoad) -> None:
        self.folder = folder
        self.lines: list[tuple[float, str]] = []
        self.leader_id = 1
        self.ports = dict(enumerate(free_ports(len(commands)), 1))
        self._commands = dict(enumerate(commands, 1))
        self._load = load
        self._epoch = 0
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._connections: dict[int, socket.socket] = {}

    def __enter__(self) -> Self:
        try:
            for node_id in self.ports:
                self._start(node_id)
        except BaseException:
            self._kill_all()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._kill_all()

    def stop(self) -> None:
        """Stop all of them cleanly, as far as they can without each other."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)

    def log_file(self, node_id: int) -> Path:
        """A node's first segment."""
        return self._log_dir(node_id) / f"{TOPIC.name}-0" / f"{0:020}.log"

    def wait_for(self, high_watermark: int, seconds: float = _START_SECONDS) -> float:
        """Wait until the high watermark is reached; returns when that was.

        Raises: AssertionError with what was printed if it is not reached in time.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(OSError, LookupError):
                if self.high_watermark() >= high_watermark:
                    return time.monotonic()
            self.ensure_running()
            time.sleep(_POLL_SECONDS)
        raise AssertionError(f"not {high_watermark} in {seconds:g} s\n{self.last_lines()}")

    def ensure_running(self) -> None:
        """Raises: AssertionError with what was printed if a process has ended."""
        for node_id, process in self._processes.items():
            code = process.poll()
            if code is not None:
                raise AssertionError(f"node {node_id} ended with {code}\n{self.last_lines()}")

    def high_watermark(self) -> int:
        """The leader's high watermark. Raises: OSError, LookupError if there is no leader."""
        for node_id in (self.leader_id, *self.ports):
            for _ in range(2):
                partition = self._look(node_id)
                if partition.error_code == ErrorCode.NONE:
                    self.leader_id = node_id
                    return partition.high_watermark
                assert partition.current_leader is not None
                self._epoch = partition.current_leader.leader_epoch
        raise LookupError("no node leads")

    def set_throughput(self, throughput: int) -> None:
        """Send the processes another throughput, if they read their standard input."""
        for process in self._processes.values():
            assert process.stdin is not None
            process.stdin.write(f"{throughput}\n")
            process.stdin.flush()

    def last_lines(self) -> str:
        """The end of what was printed."""
        return "".join(line for _, line in self.lines[-_LAST_LINES:])

    def _look(self, node_id: int) -> PartitionData:
        """A node's answer to a Fetch of only the first batch."""
        partition = FetchPartition(
            current_leader_epoch=self._epoch,
            fetch_offset=0,
            last_fetched_epoch=0,
            partition_max_bytes=1,
        )
        topic = FetchTopic(topic=TOPIC.name, topic_id=TOPIC.topic_id, partitions=[partition])
        request = FetchRequest(cluster_id=CLUSTER_ID, max_wait_ms=0, max_bytes=1, topics=[topic])
        return self._fetch(node_id, request).responses[0].partitions[0]

    def _fetch(self, node_id: int, request: FetchRequest) -> FetchResponse:
        """One answer, on a connection that is kept. Raises: OSError if there is no valid one."""
        connection = self._connections.pop(node_id, None)
        if connection is None:
            address = _HOST, self.ports[node_id]
            connection = socket.create_connection(address, timeout=_START_SECONDS)
        try:
            answer = _exchange(connection, request)
        except BaseException:
            connection.close()
            raise
        self._connections[node_id] = connection
        return answer

    def _log_dir(self, node_id: int) -> Path:
        return self.folder / f"log-{node_id}"

    def _start(self, node_id: int) -> None:
        self._log_dir(node_id).mkdir()
        config = self.folder / f"node-{node_id}.properties"
        config.write_text(self._config(node_id))
        load = self._load
        flags = ["--config", config, "--replica-directory-id", kafka_uuid()]
        flags += ["--throughput", load.throughput, "--record-size", load.record_size]
        process = subprocess.Popen(
            [*self._commands[node_id], *map(str, flags)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes[node_id] = process
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def _config(self, node_id: int) -> str:
        voters = ",".join(f"{each}@{_HOST}:{port}" for each, port in self.ports.items())
        common = _CONFIG.format(
            node_id=node_id,
            host=_HOST,
            port=self.ports[node_id],
            voters=voters,
            log_dir=self._log_dir(node_id),
        )
        more = self._load.properties.get(node_id, {})
        return common + "".join(f"{key}={value}\n" for key, value in more.items())

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.lines.append((time.monotonic(), line))

    def _kill_all(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        for process in self._processes.values():
            process.kill()
            process.wait()
            assert process.stdin is not None
            # What was not written yet stays in the buffer, and nothing reads it any more.
            with suppress(OSError):
                process.stdin.close()


def _exchange(connection: socket.socket, request: FetchRequest) -> FetchResponse:
    """One answer. Raises: OSError if there is no valid one."""
    header = RequestHeader(
        request_api_key=request.API_KEY, request_api_version=_FETCH_VERSION, client_id="observer"
    )
    connection.sendall(frame(encode_request(header, request)))
    with connection.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4).ljust(4, b"\0"))
        payload = stream.read(size)
    try:
        answer = decode_response(payload, request.API_KEY, _FETCH_VERSION)[1]
    except KraftwireError as error:
        raise ConnectionError("the node gives no valid answer") from error
    assert isinstance(answer, FetchResponse)
    return answer
