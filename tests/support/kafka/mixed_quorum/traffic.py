"""Real clients of the brokers while members fail: a producer with acks=all and a consumer.

Owns both processes, which are Kafka's own verifiable clients: the producer prints what was
acknowledged, the consumer what it got.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

from tests.support.kafka.class_archive import archive_options
from tests.support.kafka.java import JVM_OPTIONS
from tests.support.kafka.maven import kafka_classpath
from tests.support.kafka.mixed_quorum.waiting import wait_until

_TOOLS = "org.apache.kafka.tools"
_STOP_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """The outcome for the produced records.

    `lost` were acknowledged and never consumed, `produced_twice` are at two offsets,
    `consumed_twice` came twice from one offset. `gap_s` is the longest time between two
    acknowledgements, in seconds. `failures` are the records that the producer gave up.
    """

    acknowledged: int
    lost: list[str]
    produced_twice: list[str]
    consumed_twice: int
    failures: list[str]
    gap_s: float


class Traffic:
    """One producer and one consumer of one topic; use it as a context manager."""

    def __init__(self, bootstrap_servers: str, topic: str, per_second: int = 50) -> None:
        """`per_second` is the load in records per second."""
        server = ("--bootstrap-server", bootstrap_servers, "--topic", topic)
        self._producer = _Client("VerifiableProducer", *server, "--throughput", str(per_second))
        self._consumer = _Client("VerifiableConsumer", *server, "--group-id", "all", "--verbose")

    def __enter__(self) -> Self:
        self._consumer.start()
        self._producer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.kill()
        self._consumer.kill()

    def acknowledged(self) -> int:
        """How many records were acknowledged so far."""
        return len(self._producer.named("producer_send_success"))

    def consumed(self) -> int:
        """How many records were consumed so far."""
        return len(self._consumer.named("record_data"))

    def wait_flow(self, count: int = 50) -> None:
        """Return once this many more records were acknowledged, and as many more were consumed."""
        acknowledged, consumed = self.acknowledged() + count, self.consumed() + count
        wait_until(
            lambda: self.acknowledged() >= acknowledged and self.consumed() >= consumed,
            f"{count} more records",
            self._tell,
        )

    def finish(self) -> TrafficReport:
        """Stop the producer cleanly, let the consumer catch up, and count."""
        self._producer.stop()
        acked = self._producer.named("producer_send_success")
        wanted = {(one["partition"], one["offset"]) for _, one in acked}

        def has_all() -> bool:
            got = self._consumer.named("record_data")
            return wanted <= {(one["partition"], one["offset"]) for _, one in got}

        try:
            wait_until(has_all, "all that was acknowledged", self._tell, _STOP_SECONDS_MAX)
        finally:
            self._consumer.kill()
        got = [one for _, one in self._consumer.named("record_data")]
        places = Counter((one["partition"], one["offset"]) for one in got)
        values = Counter(str(one["value"]) for one in {_place(one): one for one in got}.values())
        times = [when for when, _ in acked]
        failed = [str(one) for _, one in self._producer.named("producer_send_error")]
        return TrafficReport(
            acknowledged=len(acked),
            lost=sorted({str(one["value"]) for _, one in acked} - set(values)),
            produced_twice=sorted(value for value, count in values.items() if count > 1),
            consumed_twice=sum(count - 1 for count in places.values()),
            failures=failed,
            gap_s=max((b - a for a, b in itertools.pairwise(times)), default=0.0),
        )

    def _tell(self) -> str:
        return "\n".join([*self._producer.last_lines(), *self._consumer.last_lines()])


def _place(one: dict[str, Any]) -> tuple[int, int]:
    return int(one["partition"]), int(one["offset"])


class _Client:
    """A process that prints one JSON object per line, each kept with its time of arrival."""

    def __init__(self, tool: str, *words: str) -> None:
        self._command = [
            *("java", *JVM_OPTIONS, *archive_options(), "-cp", kafka_classpath()),
            *(f"{_TOOLS}.{tool}", *words),
        ]
        self._events: dict[str, list[tuple[float, dict[str, Any]]]] = {}
        self._others: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Start the process and read its output."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                now = time.monotonic()
                try:
                    event = json.loads(line)
                except ValueError:
                    self._others.append(line.rstrip())
                    continue
                self._events.setdefault(str(event.get("name")), []).append((now, event))

    def named(self, name: str) -> list[tuple[float, dict[str, Any]]]:
        """The events of a name so far."""
        return list(self._events.get(name, ()))

    def last_lines(self) -> list[str]:
        """The last lines that it printed, without events."""
        return self._others[-20:]

    def stop(self) -> None:
        """SIGTERM, and wait for the end; SIGKILL if it ignores that."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._join()

    def kill(self) -> None:
        """SIGKILL; no effect if it has ended."""
        if self._process is not None:
            self._process.kill()
            self._join()

    def _join(self) -> None:
        assert self._process is not None
        assert self._reader is not None
        self._process.wait()
        self._reader.join()
