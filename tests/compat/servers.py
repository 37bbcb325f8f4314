"""What the suites run against: a Kafka of their own or any server; with a proxy before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from kraftwire.testing.ports import free_ports
from tests.support.kafka.process import KafkaCluster, KafkaNode
from tests.support.proxy.process import ProxyProcess

# What may stand before a server.
NONE = "none"
PROXY = "proxy"

_PROPERTIES = {
    # kafka-python's sessions.
    "group.min.session.timeout.ms": 100,
    # librdkafka's tests let the broker create their topics.
    "num.partitions": 4,
    # ACLs are created, described and deleted; none is in the way.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "num.io.threads": 8,
    "num.network.threads": 3,
}
_JVM_OPTIONS = ("-Xmx1g", "-Xms256m", "-XX:+UseSerialGC")


@contextmanager
def server(bootstrap: str | None, through: str, brokers: int, folder: Path) -> Iterator[str]:
    """The server under test, Kafka if there is no address; yields the address for clients."""
    with _kafka(brokers, folder) if bootstrap is None else nullcontext(bootstrap) as address:
        if through == NONE:
            yield address
        else:
            with ProxyProcess("--upstream", address) as proxy:
                yield proxy.bootstrap


@contextmanager
def _kafka(brokers: int, folder: Path) -> Iterator[str]:
    """Brokers of Kafka with ids from 0, of which the first is the controller; yields addresses."""
    controller_port, *ports = free_ports(1 + brokers)
    nodes: list[KafkaNode] = []
    for node_id, port in enumerate(ports):
        listeners = {"PLAINTEXT": port} | ({} if nodes else {"CONTROLLER": controller_port})
        node = KafkaNode(node_id, folder / str(node_id), listeners, _PROPERTIES)
        node.jvm_options = _JVM_OPTIONS
        nodes.append(node)
    with KafkaCluster(nodes, is_dynamic=True) as cluster:
        yield cluster.bootstrap_servers
