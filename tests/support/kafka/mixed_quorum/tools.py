"""Kafka's own tools, run against a mixed quorum."""

from __future__ import annotations

import re
import subprocess

from tests.support.kafka.java import run_kafka_tool, shared_tools
from tests.support.kafka.mixed_quorum.quorum import MixedQuorum
from tests.support.kafka.mixed_quorum.waiting import wait_until

_TOPICS = "org.apache.kafka.tools.TopicCommand"

# Kafka's answers while an earlier change is not committed, a new voter has not caught up, the
# leader has just changed or the very first records are missing: the tool must be run again.
_AGAIN = re.compile(
    r"TimeoutException|NotLeaderOrFollower|NotController|Disconnect|Direct-to-controller"
)

# Its errors for a voter that already exists, and for one that does not.
_ADDED = "DuplicateVoterException"
_REMOVED = "VoterNotFoundException"

_Result = subprocess.CompletedProcess[str]


class Tools:
    """kafka-metadata-quorum, kafka-features and kafka-topics."""

    def __init__(self, quorum: MixedQuorum, *controllers: int) -> None:
        """`controllers` are the controllers that the tools connect to, all by default."""
        self._quorum = quorum
        self._ids = controllers

    @property
    def _controllers(self) -> tuple[str, str]:
        controllers = ",".join(map(self._quorum.address, self._ids))
        return ("--bootstrap-controller", controllers or self._quorum.bootstrap_controllers)

    def quorum(self, *words: str) -> _Result:
        """Run kafka-metadata-quorum once."""
        return shared_tools().run("quorum", *self._controllers, *words)

    def add_controller(self, node_id: int) -> _Result:
        """Make a running controller a voter; retries until it is one."""
        config = str(self._quorum.members[node_id].config)
        is_new = node_id not in self._quorum.voters()
        words = ("--command-config", config, "add-controller")
        return self._until_done(_ADDED, *words, is_certain=is_new)

    def remove_controller(self, node_id: int, directory_id: str | None = None) -> _Result:
        """Remove a voter; with its present directory if no other is named."""
        found = directory_id or self._quorum.members[node_id].directory_id
        words = ("remove-controller", "-i", str(node_id), "-d", found)
        return self._until_done(_REMOVED, *words, is_certain=False)

    def upgrade(self, feature: str, level: int) -> _Result:
        """Finalize a feature at a level with kafka-features."""
        words = ("upgrade", "--feature", f"{feature}={level}")
        return shared_tools().run("features", *self._controllers, *words)

    def feature_levels(self) -> dict[str, str]:
        """The finalized levels, as kafka-features prints them."""
        printed = shared_tools().run("features", *self._controllers, "describe").stdout
        return dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)\s", printed))

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> _Result:
        """Create a topic through the brokers."""
        words = ("--create", "--topic", name, "--partitions", partitions)
        server = ("--bootstrap-server", self._quorum.bootstrap_servers)
        return run_kafka_tool(_TOPICS, *server, *words, "--replication-factor", replicas)

    def _until_done(self, done: str, *words: str, is_certain: bool) -> _Result:
        """Run the tool until it succeeds or fails for a reason that does not pass with time.

        Returns the last run, which has failed in the second case. After a time-out, an error that
        says the change is already `done` means success: it may have been committed. In the first
        run it does if it `is_certain` that nobody did it before, because the tool's own client
        retries, too.
        """
        attempts: list[_Result] = []

        def once() -> _Result | None:
            result = self.quorum(*words)
            if (attempts or is_certain) and done in result.stderr:
                result.returncode = 0
            attempts.append(result)
            is_over = result.returncode == 0 or not _AGAIN.search(result.stderr)
            return result if is_over else None

        return wait_until(once, " ".join(words), self._quorum.last_lines)
