"""Controllers of Kafka for scripts: one JVM, in which each script finds a fresh cluster.

Owns their directories, and the port on which one after the other listens.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from kraftwire.controller.versions import WITH_CONTROLLERS
from kraftwire.testing.ports import free_ports
from tests.oracle.clusters import NEWEST_LEVEL, features_of
from tests.oracle.java_log import JavaLog
from tests.oracle.passing_time import MOVES_MS
from tests.oracle.shared_scripts import Tools
from tests.oracle.snapshots import Cut
from tests.support.kafka.java import JavaPeer, run_kafka_tool
from tests.support.metadata.snapshots import write_snapshot

_LOG_NAME = "__cluster_metadata-0"
_START_SECONDS_MAX = 60.0

# A script asks for much at once, and a failover ends with an election that nobody else takes part
# in.
_PROPERTIES = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
    "metadata.max.idle.interval.ms": "0",
    # Its clock moves by more than clients and logs rest elsewhere.
    "connections.max.idle.ms": "1000000000000",
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.max.retention.ms": "-1",
    "controller.quorum.election.timeout.ms": "50",
    "controller.quorum.election.backoff.max.ms": "50",
    "controller.quorum.append.linger.ms": "0",
}

_NOT_REGISTERED = 102  # BROKER_ID_NOT_REGISTERED

# How a fault of any kind is logged (`LoggingFaultHandler`, `ProcessTerminatingFaultHandler`).
_FAULT = " ERROR Encountered "

_LOGGING = """\
Configuration:
  Properties: {{Property: []}}
  Appenders:
    File:
      name: FILE
      fileName: "{file}"
      PatternLayout: {{pattern: "%d{{HH:mm:ss.SSS}} %p %m (%c{{1}})%n"}}
  Loggers:
    Root: {{level: ERROR, AppenderRef: [{{ref: FILE}}]}}
"""


class JavaControllers:
    """Starts controllers of Kafka one after the other; `images` has Kafka's images of metadata.

    Order: use it as a context manager; the JVM starts on entry and ends on exit. One controller at
    a time.
    """

    def __init__(self, tools: Tools, folder: Path) -> None:
        self._tools = tools
        self._folder = folder
        self._peer = JavaPeer(folder="controllers", program="Controllers")
        self.images = JavaPeer(folder="metadata", program="Images")
        (self._port,) = free_ports(1)
        self._log = folder / "errors.log"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        logging = self._folder / "log4j2.yaml"
        logging.write_text(_LOGGING.format(file=self._log))
        self._log.touch()
        self._peer.__enter__()
        self._peer.ask([{"log": str(logging)}])
        self.images.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.images.__exit__(*exception)
        self._peer.__exit__(*exception)

    @contextmanager
    def fresh(
        self, properties: Mapping[str, str], level: int = NEWEST_LEVEL
    ) -> Iterator[tuple[Any, int]]:
        """A new cluster at a level of metadata.version: a connection to its controller, which has
        registered itself, and the end of its log."""
        with self._started(b"", properties, level):
            connection = self._tools.oracle.Ctl(self._port)
            connection.log = JavaLog(self._tools, self._port)
            connection.dump = connection.log.dump
            connection.restart = partial(self._restart, connection)
            connection.pass_time = self._pass_time
            connection.in_time = self._in_time
            connection.move = self._move
            connection.published = self._published
            try:
                end = self._registered(connection, level)
                connection.base_ms = self._stand_still()
                yield connection, end
            finally:
                connection.log.close()
                connection.c.close()

    def faults(
        self, log: bytes, properties: Mapping[str, str], cut: Cut | None = None
    ) -> list[str]:
        """Let a controller replay a log that another one wrote; returns what it finds wrong.

        It begins as a standby, and has replayed everything when it leads. With `cut`, it loads a
        snapshot first, and has the rest of the log only.
        """
        before = self._log.stat().st_size
        halted: list[str] = []
        with self._started(log, properties, halted=halted, cut=cut):
            connection = self._tools.oracle.Ctl(self._port)
            try:
                self._until(lambda: bool(self._faults(before)) or self._leads(connection))
            except TimeoutError as error:
                halted.append(str(error))
            finally:
                connection.c.close()
        return halted + self._faults(before)

    def _stand_still(self) -> int:
        """Stop the clock of the controller; returns where it stands."""
        (answer,) = self._peer.ask([{"clock": "stands"}])
        return int(answer["ms"])

    def _pass_time(self, steps: int) -> None:
        """Let so much time pass, and what is due be done."""
        self._peer.ask([{"moves": MOVES_MS * steps}])

    def _move(self, move_ms: int) -> None:
        """Let time pass at once, and then what is due be done."""
        self._peer.ask([{"moves": [move_ms]}])

    def _published(self, end: int) -> None:
        """Wait until the log up to its end is known to what looks at Kafka's published image."""
        self._peer.ask([{"published": end - 1}])

    def _in_time(self, act: Callable[[], object]) -> None:
        """Let the clock run while something is done that takes time."""
        self._peer.ask([{"clock": "runs"}])
        try:
            act()
        finally:
            self._stand_still()

    def _faults(self, start: int) -> list[str]:
        """What Kafka has logged from a place in its log on."""
        with self._log.open(encoding="utf-8") as file:
            file.seek(start)
            return [line.rstrip() for line in file if _FAULT in line]

    @contextmanager
    def _started(
        self,
        log: bytes,
        properties: Mapping[str, str],
        level: int = NEWEST_LEVEL,
        halted: list[str] | None = None,
        cut: Cut | None = None,
    ) -> Iterator[None]:
        folder = self._folder / "node"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._formatted(level), folder)
        if log:
            # The records that a new cluster begins with are in a log already.
            place = folder / _LOG_NAME
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            first, rest = (cut.end.offset, cut.rest) if cut else (0, log)
            (place / f"{first:020}.log").write_bytes(rest)
            if cut:
                write_snapshot(place, cut.end, cut.snapshot)
        file = self._properties(folder, properties)
        self._peer.ask([{"start": str(file)}])
        try:
            yield
        finally:
            (answer,) = self._peer.ask([{"stop": True}])
            if halted is not None and answer["halted"]:
                halted.append(answer["halted"])

    def _formatted(self, level: int) -> Path:
        """Return a directory of a new cluster at a level."""
        folder = self._folder / f"level-{level}"
        if not folder.exists():
            release = features_of(level).release
            file = self._properties(folder, {})
            words = ("format", "--cluster-id", self._tools.oracle.CID, "--config", file)
            run_kafka_tool("kafka.tools.StorageTool", *words, "--release-version", release)
        return folder

    def _properties(self, folder: Path, more: Mapping[str, str]) -> Path:
        values = _PROPERTIES | {
            "listeners": f"CONTROLLER://127.0.0.1:{self._port}",
            "controller.quorum.voters": f"1@127.0.0.1:{self._port}",
            "log.dirs": str(folder),
            **more,
        }
        file = self._folder / "node.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return file

    def _registered(self, connection: Any, level: int) -> int:
        """Wait until the controller has registered itself; returns the end of the log."""
        last = "RegisterControllerRecord" if level >= WITH_CONTROLLERS else "FeatureLevelRecord"
        self._until(lambda: any(one[2] == last for one in connection.dump()))
        self._until(lambda: self._leads(connection))
        return int(connection.end())

    def _restart(self, connection: Any) -> None:
        """Let the controller end and start again. It then registers once more, if it has before."""

        def registrations() -> int:
            return sum(one[2] == "RegisterControllerRecord" for one in connection.dump())

        self._peer.ask([{"clock": "runs"}])
        self._until(lambda: self._leads(connection))
        before = registrations()
        connection.log.close()
        connection.c.close()
        self._peer.ask([{"stop": True}, {"start": str(self._folder / "node.properties")}])
        connection.c = self._tools.oracle.Ctl(self._port).c
        self._until(lambda: self._leads(connection) and registrations() == before + bool(before))
        self._stand_still()

    def _leads(self, connection: Any) -> bool:
        # An id that no broker has: the answer needs a controller that is active.
        answer = connection.call("UnregisterBroker", 0, {"BrokerId": 999})
        return bool(answer["ErrorCode"] == _NOT_REGISTERED)

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except (AssertionError, IndexError, KeyError):
                pass  # nobody leads yet
            time.sleep(0.01)
        raise TimeoutError(f"no active controller after {_START_SECONDS_MAX:.0f} s")
