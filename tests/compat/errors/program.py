"""A program that makes calls with one client library; see `calls` for what it is asked."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from tests.compat.errors.calls import SECONDS, Scene
from tests.support.kafka.java import JVM_OPTIONS, compiled_classes
from tests.support.kafka.maven import KAFKA, kafka_classpath

# A call takes as long as its client tries, and what the client does before and after that.
_CALL_SECONDS_MAX = 6 * SECONDS
# A thread of a library may end the program after the call.
_CRASH_SECONDS = 0.1


class Crash(Exception):
    """A program has ended within a call."""


class Program:
    """A program, started with its first question, and again after it was stuck.

    Order: `close` at the end.
    """

    def __init__(self, command: Callable[[], Sequence[str]]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def apis(self) -> list[str]:
        """Return the APIs that there is a call for."""
        answer = self._ask({"op": "list"})
        assert answer is not None
        return list(answer["apis"])

    def call(self, api: str, scene: Scene) -> dict[str, Any] | None:
        """Make the call for an API; None if it did not return. Raises: Crash."""
        return self._ask({"api": api, **asdict(scene)})

    def _ask(self, question: dict[str, Any]) -> dict[str, Any] | None:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, bufsize=1,
            )  # fmt: skip
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        deadline = threading.Timer(_CALL_SECONDS_MAX, end)
        deadline.start()
        line = process.stdout.readline()
        deadline.cancel()
        if not line:
            self.close()
            if is_late.is_set():
                return None
            raise Crash
        with suppress(subprocess.TimeoutExpired):
            process.wait(_CRASH_SECONDS)
            self.close()
            raise Crash
        found: dict[str, Any] = json.loads(line)
        return found


def _java() -> Sequence[str]:
    classpath = f"{compiled_classes(KAFKA, 'errors')}:{kafka_classpath(KAFKA)}"
    return ("java", *JVM_OPTIONS, "-cp", classpath, "kraftwire.ErrorCalls")


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: (sys.executable, "-W", "ignore", "-m", f"tests.compat.errors.{module}")


COMMANDS = {
    "Kafka's Java clients": _java,
    "librdkafka": _python("confluent"),
    "kafka-python": _python("kafka_python"),
}
"""How the program of each client is started."""
