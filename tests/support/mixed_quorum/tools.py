"""Kafka's own tools, pointed at a mixed quorum."""

from __future__ import annotations

import re
import subprocess

from tests.support.java import run_kafka_tool
from tests.support.mixed_quorum.quorum import MixedQuorum
from tests.support.mixed_quorum.waiting import wait_until

__all__ = ["Tools"]

_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
_FEATURES = "org.apache.kafka.tools.FeatureCommand"
_TOPICS = "org.apache.kafka.tools.TopicCommand"

# What Kafka answers while a change before is not committed, a new voter is not caught up yet, or
# the leader has just changed or the very first records are not there: the tool is to be run again.
_AGAIN = re.compile(
    r"TimeoutException|NotLeaderOrFollower|NotController|Disconnect|Direct-to-controller"
)

# What it says of a voter that there is already, and of one that is not there.
_ADDED = "DuplicateVoterException"
_REMOVED = "VoterNotFoundException"

_Result = subprocess.CompletedProcess[str]


class Tools:
    """kafka-metadata-quorum, kafka-features and kafka-topics."""

    def __init__(self, quorum: MixedQuorum, *asked: int) -> None:
        """Make it. `asked` are the controllers that the tools are pointed at, all by default."""
        self._quorum = quorum
        self._asked = asked

    @property
    def _controllers(self) -> tuple[str, str]:
        asked = ",".join(map(self._quorum.address, self._asked))
        return ("--bootstrap-controller", asked or self._quorum.bootstrap_controllers)

    def quorum(self, *words: str) -> _Result:
        """Run kafka-metadata-quorum once."""
        return run_kafka_tool(_QUORUM, *self._controllers, *words, check=False)

    def add_controller(self, node_id: int) -> _Result:
        """Make a running controller a voter, again and again until it is one."""
        config = str(self._quorum.members[node_id].config)
        is_new = node_id not in self._quorum.voters()
        words = ("--command-config", config, "add-controller")
        return self._until_done(_ADDED, *words, is_certain=is_new)

    def remove_controller(self, node_id: int, directory_id: str | None = None) -> _Result:
        """Take a voter out; with the directory that it has now if no other is named."""
        found = directory_id or self._quorum.members[node_id].directory_id
        words = ("remove-controller", "-i", str(node_id), "-d", found)
        return self._until_done(_REMOVED, *words, is_certain=False)

    def upgrade(self, feature: str, level: int) -> _Result:
        """Finalize a feature at a level with kafka-features."""
        words = ("upgrade", "--feature", f"{feature}={level}")
        return run_kafka_tool(_FEATURES, *self._controllers, *words, check=False)

    def feature_levels(self) -> dict[str, str]:
        """The finalized levels, as kafka-features prints them."""
        told = run_kafka_tool(_FEATURES, *self._controllers, "describe", check=False).stdout
        return dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)\s", told))

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> _Result:
        """Create a topic through the brokers."""
        words = ("--create", "--topic", name, "--partitions", partitions)
        server = ("--bootstrap-server", self._quorum.bootstrap_servers)
        return run_kafka_tool(_TOPICS, *server, *words, "--replication-factor", replicas)

    def _until_done(self, done: str, *words: str, is_certain: bool) -> _Result:
        """Run the tool until it succeeds or says something that time does not heal.

        Returns the last run, which has failed in the second case. After a time-out, what says that
        it was `done` before is success: such a change may be committed all the same. So it is in
        the first run if it `is_certain` that nobody did it before: the tool's own client asks
        again, too.
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
