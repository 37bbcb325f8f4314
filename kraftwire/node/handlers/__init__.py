"""Handlers of the APIs that the Raft core does not handle: one module per API.

Owns the tables from API key to handler, by kind of listener, and the choice between them. See the
README for what each API does here.
"""

from __future__ import annotations

from types import ModuleType

from kraftwire import messages
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.node.context import Context, Handler, Request
from kraftwire.node.handlers import (
    add_raft_voter,
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    api_versions,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    envelope,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_for_leader_epoch,
    produce,
    remove_raft_voter,
    sasl_authenticate,
    sasl_handshake,
    unregister_broker,
    update_features,
)
from kraftwire.node.handlers.versions import RAFT_APIS
from kraftwire.protocol.fetching import fetching_replica
from kraftwire.wire.message import Message

__all__ = ["BROKER", "CONTROLLER", "route"]

_FETCH = 1
_ENVELOPE = 58

_COMMON = (
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    add_raft_voter,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_quorum,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    remove_raft_voter,
    sasl_authenticate,
    sasl_handshake,
    unregister_broker,
    update_features,
)

_FOR_CLIENTS = (
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    init_producer_id,
    list_config_resources,
    list_groups,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)

_FOR_PEERS = (
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
)


async def _ask_core(request: Request, context: Context) -> Message | None:
    return await context.raft_request(request)


def _table(*modules: ModuleType) -> dict[int, Handler]:
    """Return the handlers by API key; a module is named after its API."""
    keys = {name.lower(): key for key, name in messages.API_NAMES.items()}
    return {
        keys[module.__name__.rpartition(".")[2].replace("_", "")]: module.handle
        for module in modules
    }


BROKER: dict[int, Handler] = _table(*_COMMON, *_FOR_CLIENTS)

CONTROLLER: dict[int, Handler] = dict.fromkeys(RAFT_APIS, _ask_core)
CONTROLLER |= _table(*_COMMON, *_FOR_PEERS)
CONTROLLER[_FETCH] = fetch.handle_replica
CONTROLLER[_ENVELOPE] = envelope.handler_of(CONTROLLER)


def route(request: Request) -> Handler | None:
    """Return the handler of a request; None for an API that its listener does not offer.

    Order: check first that the version is offered (`versions.offered`). On a listener for both
    peers and clients, a Fetch without a replica id is a consumer's.
    """
    key = request.api_key
    if request.from_client_listener and key in BROKER:
        is_peer = request.from_controller_listener and _is_of_replica(request)
        if not is_peer:
            return BROKER[key]
    return CONTROLLER.get(key) if request.from_controller_listener else None


def _is_of_replica(request: Request) -> bool:
    message = request.message
    return isinstance(message, FetchRequest) and fetching_replica(message) >= 0
