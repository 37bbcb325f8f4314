"""The parts of a node, made and wired together: the core, its driver, its observers.

Each part gets everything it needs from its constructor.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kraftwire.controller.features import OWN_FEATURES
from kraftwire.node.authorization import Authorization
from kraftwire.node.bootstrap import new_cluster_id, read_bootstrap
from kraftwire.node.config import NodeConfig
from kraftwire.node.context import Middleware, Quorum
from kraftwire.node.controller import Controller
from kraftwire.node.driver import Driver
from kraftwire.node.link import Link, LinkStats
from kraftwire.node.logs import RateLimit, log
from kraftwire.node.peers import Peers
from kraftwire.node.registration import Registration
from kraftwire.node.services import DriverQuorum, Forwarder, NodeContext
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.config import Handover, RaftConfig
from kraftwire.raft.core import RaftCore
from kraftwire.raft.events import ClusterIdKnown
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.batch import RecordBatch
from kraftwire.replica.state_machine import SnapshotReader
from kraftwire.replica.storage import Storage

# A factory of connections for a client id.
MakeLink = Callable[[str], Link]


@dataclass(frozen=True, slots=True)
class Assembly:
    """The parts of one node, none of them running yet."""

    core: RaftCore
    peers: Peers
    driver: Driver
    quorum: Quorum
    controller: Controller
    context: NodeContext
    registration: Registration


def assemble(
    config: NodeConfig,
    storage: Storage,
    endpoints: tuple[Endpoint, ...],
    make_link: MakeLink,
    link_stats: LinkStats,
    *,
    refusals: RateLimit | None = None,
    middleware: Middleware | None = None,
) -> Assembly:
    """Build and wire the parts. Raises: StorageError for bad bootstrap records."""
    node_id = config.node_id
    key = ReplicaKey(node_id, storage.directory_id)
    raft_config = _raft_config(config, key, storage.cluster_id, endpoints)
    core = RaftCore(raft_config, storage.stored_state(), random.Random())
    peers = Peers(lambda: make_link(f"raft-client-{node_id}"), link_stats)
    driver = Driver(core, storage, peers, settings=config.snapshots)
    quorum = DriverQuorum(key, core, driver)
    controller = Controller(
        config,
        quorum,
        bootstrap=read_bootstrap(config.metadata_log_dir, config.topic.name),
        new_cluster_id=new_cluster_id if config.is_raft_readme else None,
    )
    forwarder = Forwarder(lambda: make_link(str(node_id)), config.request_timeout_ms)
    context = NodeContext(
        config,
        endpoints,
        quorum,
        controller,
        driver=driver,
        forwarder=forwarder,
        authorization=_authorization(config, refusals or RateLimit(time.monotonic)),
        middleware=middleware,
    )
    registration = Registration(context, secrets.token_bytes(16))
    return Assembly(core, peers, driver, quorum, controller, context, registration)


def _authorization(config: NodeConfig, refusals: RateLimit) -> Authorization | None:
    """Return the authorization of requests; None where everybody may do everything."""
    security = config.security
    if security.authorizer is None and not security.voter_principals:
        return None
    return Authorization(security.authorizer, security.voter_principals, refusals)


def _raft_config(
    config: NodeConfig, key: ReplicaKey, cluster_id: str | None, endpoints: tuple[Endpoint, ...]
) -> RaftConfig:
    own = tuple(e for e in endpoints if e.listener in config.controller_listeners)
    return RaftConfig(
        key=key,
        cluster_id=cluster_id,
        voters=config.voters,
        topic=config.topic,
        listener=config.listener_name,
        endpoints=own if config.is_controller else (),
        bootstrap_servers=config.bootstrap_servers,
        timers=config.timers,
        fetch_max_bytes=config.fetch_max_bytes,
        fetch_snapshot_max_bytes=config.fetch_snapshot_max_bytes,
        snapshot_max_bytes=config.snapshot_max_bytes,
        batch_max_bytes=config.batch_max_bytes,
        can_be_voter=config.is_controller,
        auto_join=config.auto_join,
        features=frozenset(f"{name} {low}-{high}" for name, (low, high) in OWN_FEATURES.items()),
        handover=Handover(config.handover),
        describe_leader_last_fetch=config.describe_leader_last_fetch,
    )


class Metadata:
    """The controller as a state machine, and the cluster id that the log holds in raft-README
    mode."""

    def __init__(self, controller: Controller, driver: Driver, storage: Storage) -> None:
        self._controller = controller
        self._driver = driver
        self._storage = storage

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        self._controller.apply(batches)
        self._note_cluster_id()

    def load(self, snapshot: SnapshotReader) -> None:
        """Load a snapshot; its cluster id is noted with the next batch or change of leader."""
        self._controller.load(snapshot)

    def freeze(self) -> Iterable[bytes]:
        return self._controller.freeze()

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        self._note_cluster_id()
        self._controller.leadership(leader_id, epoch, end_offset)

    def _note_cluster_id(self) -> None:
        cluster_id = self._controller.image.cluster_id
        if cluster_id is not None and self._storage.cluster_id is None:
            self._storage.keep_cluster_id(cluster_id)
            self._driver.submit(ClusterIdKnown(cluster_id))
            log("info", "cluster-id", cluster_id=cluster_id)
