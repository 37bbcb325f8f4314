"""One node of a mixed quorum: a port, a directory, and a process of either kind while it runs."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import signal
import warnings
from collections.abc import Mapping
from pathlib import Path

from kraftwire.cli import main as cli
from kraftwire.client.sync import BlockingConnection
from kraftwire.controller.image import MetadataImage
from kraftwire.errors import ApiError, SecurityError
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest, TopicData
from kraftwire.messages.describe_quorum_request import PartitionData as AskedPartition
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse, PartitionData
from kraftwire.records.batch import RecordBatch
from kraftwire.wire.json_form import uuid_from_text
from tests.support.kafka.mixed_quorum.complaints import java_errors, our_errors
from tests.support.kafka.mixed_quorum.directory import LogFolder
from tests.support.kafka.mixed_quorum.kinds import is_java, release_of
from tests.support.kafka.process import KafkaNode
from tests.support.nodes.process import SECONDS_MAX, NodeProcess, describe


class Member:
    """One node, which may return as another kind on the same directory.

    `java` owns its files, for either kind; `ours` is the process while it is one of ours. `client`
    are the properties with which tests connect to it, at `host`.
    """

    def __init__(self, kind: str, node: KafkaNode) -> None:
        self.java = node
        self.kind = kind
        self.ours: NodeProcess | None = None
        self.client: Mapping[str, str] | None = None
        self.host = "127.0.0.1"
        self._stopped_lines: list[str] = []

    @property
    def kind(self) -> str:
        """The kind that it is started as."""
        return self._kind

    @kind.setter
    def kind(self, kind: str) -> None:
        self._kind = kind
        self.java.release = release_of(kind)

    @property
    def node_id(self) -> int:
        """The node id."""
        return self.java.node_id

    @property
    def is_java(self) -> bool:
        """Whether it is started as Kafka's node."""
        return is_java(self.kind)

    @property
    def is_controller(self) -> bool:
        """Whether it has a controller listener."""
        return "CONTROLLER" in self.java.listeners

    @property
    def port(self) -> int:
        """Where it listens: for its peers if it is a controller, otherwise for clients."""
        listeners = self.java.listeners
        return listeners["CONTROLLER"] if self.is_controller else listeners["PLAINTEXT"]

    @property
    def advertised_port(self) -> int:
        """The port that it advertises, which may be a relay's."""
        advertised = str(self.java.properties["advertised.listeners"])
        (port,) = re.findall(r"CONTROLLER://[^:]+:(\d+)", advertised)
        return int(port)

    @property
    def config(self) -> Path:
        """The properties file that both kinds read."""
        return self.java.folder / "server.properties"

    @property
    def is_running(self) -> bool:
        """Whether it was started and neither stopped nor killed."""
        return self.java.process is not None or self.ours is not None

    @property
    def pid(self) -> int:
        """The process id, while it runs."""
        process = self.ours if self.ours is not None else self.java.process
        assert process is not None, f"node {self.node_id} does not run"
        return process.pid

    @property
    def directory_id(self) -> str:
        """The id of the log directory, chosen when it was formatted."""
        text = (self.java.log_dir / "meta.properties").read_text()
        (found,) = re.findall(r"^directory\.id=(.+)$", text, re.MULTILINE)
        return str(found)

    @property
    def directory_uuid(self) -> bytes:
        """The same in the form that messages use."""
        return uuid_from_text(self.directory_id)

    # Life

    def format(self, cluster_id: str, *options: str) -> None:
        """Format the directory with the tool of the member's kind."""
        self.java.write_config()
        if self.is_java:
            self.java.format(cluster_id, *options)
        else:
            command = ["storage", "format", "-t", cluster_id, "-c", str(self.config), *options]
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                code = cli.main(command)
            assert code == 0, printed.getvalue()

    def wipe(self) -> None:
        """Delete the disk. It has to be formatted before the next start."""
        assert not self.is_running, f"node {self.node_id} still runs"
        shutil.rmtree(self.java.log_dir)

    def start(self, kind: str | None = None, *overrides: str) -> None:
        """Start the process; as another kind, if one is given. `overrides` are for ours."""
        assert not self.is_running, f"node {self.node_id} runs already"
        self.kind = kind or self.kind
        if self.is_java:
            self.java.start()
        else:
            copy = self.java.folder / "kraftwire.log"
            self.ours = NodeProcess(self.config, *overrides, copy=copy)

    def wait_ready(self) -> None:
        """Return once it accepts connections."""
        if self.ours is not None:
            self.ours.wait_for("^ready ")
        else:
            self.java.wait_ready()

    def stop(self) -> None:
        """SIGTERM, and wait for the end, which has to be clean once it was ready."""
        if self.ours is not None:
            code = self.ours.stop()
            was_ready = any(line.startswith("ready ") for line in self.ours.lines)
            assert code == 0 or not was_ready, "\n".join([f"exit code {code}", *self.lines[-20:]])
            self._forget()
        else:
            self.java.stop()

    def kill(self) -> None:
        """SIGKILL; no effect if it is not running."""
        if self.ours is not None:
            self.ours.kill()
            self._forget()
        else:
            self.java.kill()

    def _forget(self) -> None:
        assert self.ours is not None
        self.ours.close()
        self._stopped_lines += self.ours.lines
        self.ours = None

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and does nothing."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        process = self.ours if self.ours is not None else self.java.process
        assert process is not None
        if isinstance(process, NodeProcess):
            process.send(number)
        else:
            process.send_signal(number)

    # What it printed

    @property
    def lines(self) -> list[str]:
        """Everything that it printed while it was ours."""
        return self._stopped_lines + (self.ours.lines if self.ours is not None else [])

    def last_lines(self) -> str:
        """The end of what it printed."""
        if not self.is_java:
            return "\n".join(self.lines[-20:])
        return self.java.last_lines(20) if self.java.console.exists() else ""

    def complaints(self) -> list[str]:
        """Log lines that report errors."""
        return our_errors(self.lines) + java_errors(self.java.console)

    def ended(self) -> bool:
        """Whether the process has ended by itself."""
        if self.ours is not None:
            return self.ours.has_ended
        return self.java.process is not None and self.java.process.poll() is not None

    # What it has, and what it reports

    @property
    def folder(self) -> LogFolder:
        """Its metadata log on disk."""
        return LogFolder(self.java.log_dir)

    def log(self) -> bytes:
        """The bytes of all segments, as they are on disk now."""
        return self.folder.data()

    def image(self) -> MetadataImage:
        """The state that the member's log describes."""
        image = MetadataImage()
        for batch in self.batches():
            image.replay(batch)
        return image

    def batches(self) -> list[RecordBatch]:
        """The batches of the log, without a last one that is being written."""
        return self.folder.batches()

    @property
    def end_offset(self) -> int:
        """Where the log on disk ends."""
        return self.folder.end_offset

    def _asked(self, seconds: float) -> DescribeQuorumResponse:
        topic = TopicData(topic_name="__cluster_metadata", partitions=[AskedPartition()])
        address = (self.host, self.port)
        with warnings.catch_warnings():
            # Passwords in clear are no secret here.
            warnings.simplefilter("ignore")
            connection = BlockingConnection(
                address, client_id="test", timeout_s=seconds, security=self.client
            )
        with connection:
            answer = connection.request(DescribeQuorumRequest(topics=[topic]))
        assert isinstance(answer, DescribeQuorumResponse)
        return answer

    def describe(self, seconds: float = SECONDS_MAX) -> PartitionData | None:
        """What it reports about the quorum; None if it does not answer in time."""
        try:
            answer = describe(self.port, seconds) if self.client is None else self._asked(seconds)
        except (OSError, AssertionError, ApiError, SecurityError):
            return None
        return answer.topics[0].partitions[0] if answer.topics else None
