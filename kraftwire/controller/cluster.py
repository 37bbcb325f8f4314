"""The cluster as the controller's decisions see it: the image, and the controller's own settings.

Source: Kafka's `ClusterControlManager`, `KafkaConfigSchema` and `DirectoryId`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kraftwire.controller.image import MetadataImage
from kraftwire.controller.mutation_quotas import MutationQuotas
from kraftwire.controller.topic_keys import TOPIC_KEYS, whole_number
from kraftwire.controller.versions import ELR_VERSION, METADATA_VERSION, WITH_DIRECTORIES
from kraftwire.protocol.config_resources import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftwire.security.tokens import DelegationTokens

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"

# Ids of log directories with a meaning: the replica's directory is not known yet, will be chosen by
# its broker, or was lost. All ids below RESERVED_DIRECTORIES are reserved.
MIGRATING, UNASSIGNED, LOST = (number.to_bytes(16, "big") for number in range(3))
RESERVED_DIRECTORIES = (100).to_bytes(16, "big")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The input of a decision: the image, and the controller's own settings. Order: made anew
    whenever the image has changed, as it caches settings of topics.

    `settings` are keys of the controller's properties file that concern topics and groups, `voters`
    the ids that it names; `node_id` is the controller's. `tokens` knows the secret of delegation
    tokens; None where there are none. `epoch_ms` is the time of day, in milliseconds since the
    epoch. `mutations` are what users may still create and delete.
    `leaving` are the brokers whose controlled shutdown goes on. `level` is the finalized level of
    metadata.version; with `has_elr`, partitions have eligible leader replicas (KIP-966).
    """

    image: MetadataImage
    node_id: int = -1
    settings: Mapping[str, str] = field(default_factory=dict)
    tokens: DelegationTokens | None = None
    epoch_ms: int = 0
    mutations: MutationQuotas = field(default_factory=MutationQuotas)
    voters: frozenset[int] = frozenset()
    leaving: Collection[int] = ()
    level: int = field(init=False)
    has_elr: bool = field(init=False)
    _min_isr: dict[bytes, int] = field(default_factory=dict, init=False, compare=False)
    _unclean: dict[bytes, bool] = field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        levels = self.image.features
        object.__setattr__(self, "level", levels.get(METADATA_VERSION, 0))
        object.__setattr__(self, "has_elr", levels.get(ELR_VERSION, 0) >= 1)

    def is_active(self, broker_id: int) -> bool:
        """Return whether a broker is registered, not fenced and not shutting down (C-FEN-6)."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced and not broker.in_controlled_shutdown

    def is_online(self, directory: bytes, broker_id: int) -> bool:
        """Return whether a replica's log directory is online (C-DIR-1)."""
        if directory in (MIGRATING, UNASSIGNED):
            return True
        broker = self.image.brokers.get(broker_id)
        if directory == LOST or broker is None:
            return False
        return not broker.log_dirs or directory in broker.log_dirs

    def new_directory(self, broker_id: int) -> bytes:
        """Return the directory of a new replica on a broker (C-DIR-2)."""
        broker = self.image.brokers.get(broker_id)
        if self.level < WITH_DIRECTORIES:
            return MIGRATING
        if broker is None:
            return UNASSIGNED
        if not broker.log_dirs:
            return MIGRATING
        return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED

    def topic_setting(self, topic: str, key: str) -> str | None:
        """Return the value of a topic's configuration key, from the first level that has it.

        The levels are the topic, this controller as a broker, all brokers, the properties file
        (C-CFG-11); None if none of them has a value that can be read (C-CFG-17).
        """
        own = self.image.configs.get((TOPIC_RESOURCE, topic), {})
        validator = TOPIC_KEYS[key].validator
        found = (values.get(key) for values in (own, *self.inherited_settings()))
        return next((value for value in found if value is not None and not validator(value)), None)

    def inherited_settings(self) -> tuple[Mapping[str, str], ...]:
        """Return the settings that topics inherit: those of this controller as a broker, those of
        all brokers, those of the properties file."""
        configs = self.image.configs
        own, everybody = ((BROKER_RESOURCE, name) for name in (str(self.node_id), ""))
        return configs.get(own, {}), configs.get(everybody, {}), self.settings

    def min_isr(self, topic_id: bytes) -> int:
        """Return how many in-sync replicas a topic needs, at most the replicas of its first
        partition (C-PCB-3)."""
        found = self._min_isr.get(topic_id)
        if found is None:
            topics = self.image.topics
            first = topics.partition((topic_id, 0))
            replicas = len(first.replicas) if first is not None else 1
            value = self.topic_setting(topics.names.get(topic_id, ""), MIN_INSYNC_REPLICAS)
            found = self._min_isr[topic_id] = min(int(value or 1), replicas)
        return found

    def allows_unclean(self, topic_id: bytes) -> bool:
        """Return whether a replica that is not in sync may become the leader of a partition."""
        found = self._unclean.get(topic_id)
        if found is None:
            name = self.image.topics.names.get(topic_id, "")
            value = self.topic_setting(name, UNCLEAN_ELECTION) or ""
            found = self._unclean[topic_id] = value.strip().lower() == "true"
        return found

    def number(self, key: str, default: int) -> int:
        """Return a whole number of the controller's properties file."""
        found = whole_number(self.settings.get(key))
        return default if found is None else found
