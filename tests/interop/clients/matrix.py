"""Which clients there are, how one is run, and what it did.

Owns the table of clients and the lines that probes print. The versions that a client negotiated
are read from the nodes' own captures.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire import messages
from kraftwire.capture.capture import Capture
from kraftwire.protocol.headers import decode_request_header
from kraftwire.protocol.versions import API_VERSIONS_KEY
from kraftwire.testing import Quorum
from tests.interop.clients.builds import go_command, go_missing, node_command, node_missing
from tests.support.java import JVM_OPTIONS, compiled_classes
from tests.support.maven import kafka_classpath
from tests.support.secured_kafka import USER, USER_PASSWORD

__all__ = [
    "CLIENTS",
    "STEPS",
    "Client",
    "Outcome",
    "Step",
    "java_command",
    "probe",
    "probe_login",
]

ROOT = Path(__file__).resolve().parents[3]
STEPS = ("connect", "negotiate", "describe", "read")

# A probe takes seconds, and one of several JVMs a little longer.
_PROBE_SECONDS_MAX = 120


@dataclass(frozen=True)
class Step:
    """Whether a step succeeded, and its result."""

    is_ok: bool
    detail: str


@dataclass
class Outcome:
    """What a client did. `steps` omits those that the client has no call for."""

    version: str = "?"
    steps: dict[str, Step] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        """Whether there were steps and none failed."""
        return bool(self.steps) and all(step.is_ok for step in self.steps.values())


@dataclass(frozen=True)
class Client:
    """A client and its probe.

    `command` makes the command line, to which the bootstrap servers are added; it may build the
    probe first. `missing` says what the machine lacks for it; empty if nothing.
    `is_required` clients may not be missing where CI=true.
    """

    name: str
    command: Callable[[], Sequence[str]]
    missing: Callable[[], str]
    is_required: bool = False


def probe(client: Client, quorum: Quorum, login: Mapping[str, str] | None = None) -> Outcome:
    """Run a client's probe against a quorum that writes captures, or where it has to log in.

    `login` is a `probe.Login`, in JSON's form.
    """
    outcome = Outcome()
    started = time.time_ns()
    result = subprocess.run(
        [*client.command(), quorum.bootstrap_servers],
        cwd=ROOT,
        env=os.environ | ({"KRAFTWIRE_PROBE_LOGIN": json.dumps(login)} if login else {}),
        capture_output=True,
        text=True,
        timeout=_PROBE_SECONDS_MAX,
        check=False,
    )
    for line in filter(None, map(str.strip, result.stdout.splitlines())):
        told = json.loads(line)
        if "version" in told:
            outcome.version = told["version"]
        else:
            outcome.steps[told["step"]] = Step(told["ok"], told["detail"])
    if result.returncode or not outcome.steps:
        detail = f"exit code {result.returncode}: {result.stderr.strip()[-500:]}"
        outcome.steps["connect"] = Step(False, detail)
    if login:
        # A node that decrypts writes no capture.
        return outcome
    ports = {int(text.rpartition(":")[2]) for text in quorum.bootstrap_servers.split(",")}
    captures = [quorum.capture_file(node_id) for node_id in quorum.node_ids]
    outcome.steps["negotiate"] = _negotiated(captures, ports, started)
    return outcome


def probe_login(folder: Path, mechanism: str) -> dict[str, str]:
    """How probes log in at a quorum of `secured_nodes` with this folder."""
    ca = str(folder / "ca.pem")
    return {"ca": ca, "mechanism": mechanism, "user": USER, "password": USER_PASSWORD}


def _negotiated(captures: Iterable[Path], ports: set[int], since_ns: int) -> Step:
    """The versions of the requests that came to client listeners."""
    used: dict[int, set[int]] = {}
    for path in captures:
        for frame in Capture(str(path)):
            is_client = int(frame.connection.rpartition(":")[2]) in ports
            if frame.time_ns < since_ns or not is_client or frame.direction != "request":
                continue
            header, _ = decode_request_header(frame.data)
            versions = used.setdefault(header.request_api_key, set())
            versions.add(header.request_api_version)
    if API_VERSIONS_KEY not in used or len(used) < 2:
        return Step(False, "no versions were negotiated")
    text = ", ".join(
        f"{messages.API_NAMES[key]} {'/'.join(map(str, sorted(versions)))}"
        for key, versions in sorted(used.items())
    )
    return Step(True, text)


def _python(module: str, package: str) -> Client:
    """A probe in Python, which needs a package of the extra `interop`."""
    command = (sys.executable, "-m", f"tests.interop.clients.{module}")

    def missing() -> str:
        found = importlib.util.find_spec(package.replace("-", "_"))
        return "" if found else f"the Python package {package}"

    return Client(_DISPLAY.get(module, package), lambda: command, missing)


_DISPLAY = {
    "probe_kafka_python": "kafka-python",
    "probe_aiokafka": "aiokafka",
    "probe_confluent": "confluent-kafka",
}


def java_command(*words: str, folder: str = "") -> Callable[[], Sequence[str]]:
    """A class of a folder of tests/support/java, compiled and with Kafka's jars."""

    def command() -> Sequence[str]:
        path = f"{compiled_classes(folder=folder)}{os.pathsep}{kafka_classpath()}"
        return ["java", *JVM_OPTIONS, "-cp", path, *words]

    return command


def _java_missing() -> str:
    absent = [program for program in ("java", "javac", "mvn") if shutil.which(program) is None]
    return " and ".join(absent)


CLIENTS: tuple[Client, ...] = (
    _python("probe_kafka_python", "kafka"),
    _python("probe_aiokafka", "aiokafka"),
    _python("probe_confluent", "confluent-kafka"),
    Client(
        "Kafka's Java clients", java_command("kraftwire.ClientProbe"), _java_missing, True
    ),
    Client(
        "Kafka's tools",
        lambda: (sys.executable, "-m", "tests.interop.clients.probe_tools"),
        _java_missing,
        True,
    ),
    Client("franz-go", go_command("franzgo"), go_missing),
    Client("sarama", go_command("sarama"), go_missing),
    Client("segmentio/kafka-go", go_command("kafkago"), go_missing),
    Client("kafkajs", node_command("kafkajs"), node_missing),
    Client("@platformatic/kafka", node_command("platformatic"), node_missing),
    Client(
        "kcat",
        lambda: (sys.executable, "-m", "tests.interop.clients.probe_kcat"),
        lambda: "" if shutil.which("kcat") else "the program kcat",
    ),
)
