"""A simulated administrator: topics, partitions, moves, elections, configurations.

What was acknowledged is remembered apart from the image, and has to be there after every failover.
A change whose answer was lost may have been made or not.
"""

from __future__ import annotations

from random import Random
from typing import Any

from kraftwire.controller import brokers
from kraftwire.controller.configs import alter_configs_incrementally
from kraftwire.controller.elections import elect_leaders
from kraftwire.controller.image.topics import PartitionKey
from kraftwire.controller.reassignment import alter_reassignments
from kraftwire.controller.topics import create_partitions, create_topics, delete_topics
from kraftwire.errors import ApiError
from kraftwire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftwire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.messages.elect_leaders_request import ElectLeadersRequest
from kraftwire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.protocol.config_resources import TOPIC_RESOURCE
from kraftwire.sim.controlled.active_controller import ActiveController
from kraftwire.sim.invariants import Violation

_NAMES = ("apples", "bananas", "cherries", "dates")
_CONFIGS = (
    ("unclean.leader.election.enable", ("true", "false", None)),
    ("min.insync.replicas", ("1", "2", None)),
    ("retention.ms", ("1000", "60000", None)),
)


class Administrator:
    """What an operator asks for, and what was acknowledged."""

    def __init__(self, controller: ActiveController, random: Random, broker_count: int) -> None:
        self._controller = controller
        self._random = random
        self._brokers = broker_count
        # Topic ids and numbers of partitions, configurations; what is uncertain is left out.
        self._topics: dict[str, tuple[bytes, int]] = {}
        self._configs: dict[tuple[str, str], str | None] = {}

    def check(self) -> None:
        """What was acknowledged is in the image. Raises: Violation."""
        image = self._controller.image
        for name, (topic_id, count) in self._topics.items():
            there = image.topics.ids.get(name)
            if there != topic_id or len(image.topics.partitions(topic_id)) != count:
                raise Violation("M9", f"topic {name} with {count} partitions is not there")
        for (name, key), value in self._configs.items():
            there_is = image.configs.get((TOPIC_RESOURCE, name), {}).get(key)
            if there_is != value:
                raise Violation("M9", f"{key} of {name} is {there_is}, not {value}")

    def _forget(self, name: str) -> None:
        self._topics.pop(name, None)
        for one in [one for one in self._configs if one[0] == name]:
            del self._configs[one]

    def create(self) -> None:
        """Create a topic. Raises: Violation."""
        random = self._random
        name = random.choice(_NAMES)
        topic = CreatableTopic(
            name=name,
            num_partitions=random.randint(1, 3),
            replication_factor=random.randint(1, min(3, self._brokers)),
        )
        request = CreateTopicsRequest(topics=[topic])
        had = self._topics.get(name)
        answer: Any = self._controller.submit(
            lambda cluster, _: create_topics(
                cluster, request, random=random, new_id=lambda: random.randbytes(16)
            )
        )
        if answer is None:
            if had is None:
                self._forget(name)
            return
        result = answer.topics[0]
        if result.error_code == 0:
            if had is not None:
                raise Violation("M9", f"topic {name} is created twice")
            self._forget(name)
            self._topics[name] = result.topic_id, topic.num_partitions

    def delete(self) -> None:
        """Delete a topic."""
        name = self._random.choice(_NAMES)
        self._forget(name)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
        self._controller.submit(lambda cluster, _: delete_topics(cluster, request))

    def grow(self) -> None:
        """Add a partition to a topic."""
        name = self._random.choice(_NAMES)
        topic_id = self._controller.image.topics.ids.get(name, b"")
        count = len(self._controller.image.topics.partitions(topic_id)) + 1
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[topic])
        answer: Any = self._controller.submit(
            lambda cluster, _: create_partitions(cluster, request, random=self._random)
        )
        if answer is None:
            self._topics.pop(name, None)
        elif not answer.results[0].error_code and name in self._topics:
            self._topics[name] = topic_id, count

    def _some_partition(self) -> tuple[str, PartitionKey] | None:
        topics = self._controller.image.topics
        keys = [key for key, _ in topics.all()]
        if not keys:
            return None
        key = self._random.choice(keys)
        return topics.names[key[0]], key

    def reassign(self) -> None:
        """Move a partition to other replicas."""
        size = self._random.randint(1, min(3, self._brokers))
        self._reassign(self._random.sample(range(self._brokers), size))

    def cancel(self) -> None:
        """Undo the reassignment of a partition."""
        self._reassign(None)

    def _reassign(self, replicas: list[int] | None) -> None:
        found = self._some_partition()
        if found is None:
            return
        name, key = found
        partition = ReassignablePartition(partition_index=key[1], replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=name, partitions=[partition])]
        )
        self._controller.submit(lambda cluster, _: alter_reassignments(cluster, request))

    def elect(self) -> None:
        """Elect the preferred leaders of all partitions."""
        request = ElectLeadersRequest(election_type=0, topic_partitions=None)
        self._controller.submit(lambda cluster, _: elect_leaders(cluster, request))

    def configure(self) -> None:
        """Set or delete a value of a topic's configuration."""
        name = self._random.choice(_NAMES)
        key, values = self._random.choice(_CONFIGS)
        value = self._random.choice(values)
        config = AlterableConfig(name=key, config_operation=0 if value else 1, value=value)
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer: Any = self._controller.submit(
            lambda cluster, _: alter_configs_incrementally(cluster, request)
        )
        if answer is None:
            self._configs.pop((name, key), None)
        elif not isinstance(answer, ApiError) and not answer.responses[0].error_code:
            self._configs[name, key] = value

    def unregister(self) -> None:
        """Remove the registration of a broker."""
        request = UnregisterBrokerRequest(broker_id=self._random.randrange(self._brokers))
        self._controller.submit(lambda cluster, _: brokers.unregister_broker(cluster, request))
