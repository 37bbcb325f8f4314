"""Kafka's own integration tests of its clients, from their Maven artifact."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.compat.suite import Results, junit_results, run_tests
from tests.support.kafka.java import JVM_OPTIONS, compiled_classes
from tests.support.kafka.maven import KAFKA_4_3, Release, directory_of, kafka_classpath

# The newest release whose tests are published.
_VERSION = KAFKA_4_3.version
_TESTS = f"kafka-clients-integration-tests-{_VERSION}-test.jar"
_RELEASE = Release(
    _VERSION,
    (
        f"org.apache.kafka:kafka-clients-integration-tests:{_VERSION}:test",
        f"org.apache.kafka:kafka-clients:{_VERSION}:test",
        f"org.apache.kafka:kafka-clients:{_VERSION}",
        f"org.apache.kafka:kafka_2.13:{_VERSION}:test",
        f"org.apache.kafka:kafka-server-common:{_VERSION}:test",
        f"org.apache.kafka:kafka-test-common-runtime:{_VERSION}",
        f"org.apache.kafka:kafka-test-common-internal-api:{_VERSION}",
        "org.junit.platform:junit-platform-console:1.13.1",
    ),
    part="client-tests",
)

_SETTINGS = {
    # Kafka's extension is what gives a test its cluster.
    "junit.jupiter.extensions.autodetection.enabled": "true",
    "junit.jupiter.execution.timeout.testable.method.default": "120s",
    "junit.jupiter.execution.timeout.thread.mode.default": "SEPARATE_THREAD",
}
_SECONDS_MAX = 3600

# All tests of the first end brokers, those of the second look inside one before they begin.
_LEFT_OUT = "(ConsumerBounceTest|ShareConsumerTest)"

# A method with its parameters, and which of its invocations it is.
_METHOD = re.compile(r"(\w+)\([\w, ]*\)(.*)")


class KafkaClients:
    """Kafka's producers, consumers and administrators; a class of ours gives them the cluster."""

    name = "kafka"
    brokers = 3

    def prepare(self) -> None:
        """Fetch the tests, and compile the class."""
        self._classpath()

    def _classpath(self) -> str:
        # The first class of a name counts.
        ours = compiled_classes(_RELEASE, str(Path(__file__).with_name("java")))
        return f"{ours}:{kafka_classpath(_RELEASE)}"

    def run(self, bootstrap: str, tests: Sequence[str], folder: Path) -> Results:
        """Run them in one process, one after the other."""
        names = {test.partition("[")[0] for test in tests}
        methods = sorted(re.escape(name).replace("\\.", "#") for name in names)
        chosen = [f"--include-methodname=.*\\.({'|'.join(methods)})"] if methods else []
        report = folder / "TEST-junit-jupiter.xml"
        report.unlink(missing_ok=True)
        run_tests(
            [
                *("java", *JVM_OPTIONS, f"-Dkraftwire.bootstrap={bootstrap}"),
                *("-cp", self._classpath(), "org.junit.platform.console.ConsoleLauncher"),
                *("execute", "--disable-banner", "--disable-ansi-colors", "--details=testfeed"),
                *(f"--config={key}={value}" for key, value in _SETTINGS.items()),
                f"--scan-classpath={directory_of(_RELEASE) / _TESTS}",
                f"--exclude-classname=.*\\.{_LEFT_OUT}",
                *("--reports-dir", folder, *chosen),
            ],
            folder,
            folder / "suite.log",
            seconds=_SECONDS_MAX,
        )
        found = junit_results(report).items()
        return {short_name(owner, test): result for (owner, test), result in found}


def short_name(owner: str, test: str) -> str:
    """A test without package and parameters; several invocations have numbers."""
    method = _METHOD.sub(r"\1\2", test)
    return f"{owner.rpartition('.')[2]}.{method}"
