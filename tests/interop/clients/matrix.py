"""Which clients there are, how one is run, and what it did.

Owns the table of clients and the lines that their programs print. The versions that a client
negotiated are read from the nodes' own captures.
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
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.payloads import decode_request_header
from kraftwire.testing import Quorum
from tests.interop.clients.builds import go_command, go_missing, node_command, node_missing
from tests.support.kafka.java import JVM_OPTIONS, compiled_classes
from tests.support.kafka.maven import kafka_classpath
from tests.support.security.kafka import USER, USER_PASSWORD

__all__ = [
    "CLIENTS",
    "STEPS",
    "Client",
    "Outcome",
    "Step",
    "probe",
    "probe_login",
    "run_client",
    "run_probe",
]

ROOT = Path(__file__).resolve().parents[3]
STEPS = ("connect", "negotiate", "describe", "read")

# A program takes seconds, one of several JVMs a little longer, and one that has to be recorded with
# others at once some minutes.
_CLIENT_SECONDS_MAX = 300


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
    """A client and its programs: a probe of our nodes, and `traffic` that uses a whole Kafka.

    Both make a command line, to which the bootstrap servers are added; they may build the program
    first. `missing` says what the machine lacks for them; empty if nothing.
    `is_required` clients may not be missing where CI=true.
    """

    name: str
    command: Callable[[], Sequence[str]]
    traffic: Callable[[], Sequence[str]]
    missing: Callable[[], str]
    is_required: bool = False


def probe(client: Client, quorum: Quorum, login: Mapping[str, str] | None = None) -> Outcome:
    """Run a client's probe against a quorum that writes captures, or where it has to log in.

    `login` is a `probe.Login`, in JSON's form.
    """
    started = time.time_ns()
    outcome = run_probe(client, quorum.bootstrap_servers, login)
    if login:
        # A node that decrypts writes no capture.
        return outcome
    ports = {int(text.rpartition(":")[2]) for text in quorum.bootstrap_servers.split(",")}
    captures = [quorum.capture_file(node_id) for node_id in quorum.node_ids]
    outcome.steps["negotiate"] = _negotiated(captures, ports, started)
    return outcome


def run_probe(client: Client, servers: str, login: Mapping[str, str] | None = None) -> Outcome:
    """Run a client's probe to its end; its steps are those that the program reports."""
    more = {"KRAFTWIRE_PROBE_LOGIN": json.dumps(login)} if login else {}
    return run_client(client.command(), servers, STEPS, more)


def run_client(
    command: Sequence[str],
    servers: str,
    steps: Sequence[str],
    more: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a client's program to its end, with more variables in its environment.

    If it does not end well, the first of `steps` that it has not reported is the one that failed.
    """
    problem = ""
    try:
        result = subprocess.run(
            [*command, servers],
            cwd=ROOT,
            env=os.environ | dict(more or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CLIENT_SECONDS_MAX,
            check=False,
        )
        printed, errors = result.stdout, result.stderr.decode(errors="replace").strip()
        if result.returncode:
            problem = f"exit code {result.returncode}: {errors[-500:]}"
    except subprocess.TimeoutExpired as late:
        printed, problem = late.stdout or b"", f"no end after {_CLIENT_SECONDS_MAX} s"
    outcome = _outcome(printed.decode())
    if problem or not outcome.steps:
        left = [step for step in steps if step not in outcome.steps]
        outcome.steps[left[0] if left else steps[-1]] = Step(False, problem or "no step was taken")
    return outcome


def _outcome(printed: str) -> Outcome:
    """What the lines of a program say."""
    outcome = Outcome()
    for line in filter(None, map(str.strip, printed.splitlines())):
        told = json.loads(line)
        if "version" in told:
            outcome.version = told["version"]
        else:
            outcome.steps[told["step"]] = Step(told["ok"], told["detail"])
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
    if ApiKey.API_VERSIONS not in used or len(used) < 2:
        return Step(False, "no versions were negotiated")
    text = ", ".join(
        f"{messages.API_NAMES[key]} {'/'.join(map(str, sorted(versions)))}"
        for key, versions in sorted(used.items())
    )
    return Step(True, text)


def _module(module: str) -> Callable[[], Sequence[str]]:
    """A module of this folder."""
    return lambda: (sys.executable, "-m", f"tests.interop.clients.{module}")


def _python(package: str, probe: str, traffic: str, name: str = "") -> Client:
    """A client in Python, which needs a package of the extra `interop`."""

    def missing() -> str:
        found = importlib.util.find_spec(package.replace("-", "_"))
        return "" if found else f"the Python package {package}"

    return Client(name or package, _module(probe), _module(f"traffic.{traffic}"), missing)


def _java(name: str) -> Callable[[], Sequence[str]]:
    """A class of tests/support/kafka/java_programs/clients, compiled and with Kafka's jars."""

    def command() -> Sequence[str]:
        path = f"{compiled_classes(folder='clients')}{os.pathsep}{kafka_classpath()}"
        return ["java", *JVM_OPTIONS, "-cp", path, f"kraftwire.{name}"]

    return command


def _java_missing() -> str:
    absent = [program for program in ("java", "javac", "mvn") if shutil.which(program) is None]
    return " and ".join(absent)


def _go(name: str, folder: str) -> Client:
    return Client(name, go_command(folder), go_command(f"traffic/{folder}"), go_missing)


def _node(name: str, file: str) -> Client:
    return Client(name, node_command(file), node_command(f"traffic_{file}"), node_missing)


CLIENTS: tuple[Client, ...] = (
    _python("kafka", "probe_kafka_python", "kafka_python", "kafka-python"),
    _python("aiokafka", "probe_aiokafka", "aiokafka_"),
    _python("confluent-kafka", "probe_confluent", "confluent"),
    Client(
        "Kafka's Java clients",
        _java("ClientProbe"),
        _java("ClientTraffic"),
        _java_missing,
        is_required=True,
    ),
    Client(
        "Kafka's tools",
        _module("probe_tools"),
        _module("traffic.tools"),
        _java_missing,
        is_required=True,
    ),
    _go("franz-go", "franzgo"),
    _go("sarama", "sarama"),
    _go("segmentio/kafka-go", "kafkago"),
    _node("kafkajs", "kafkajs"),
    _node("@platformatic/kafka", "platformatic"),
    Client(
        "kcat",
        _module("probe_kcat"),
        _module("traffic.kcat"),
        lambda: "" if shutil.which("kcat") else "the program kcat",
    ),
)
