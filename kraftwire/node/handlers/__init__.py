"""Handlers of the APIs that the Raft core does not handle: a module per API, a table of refusals.

The tables lead from API key to handler, one for each kind of listener. See the README for what each
API does here.
"""

from __future__ import annotations

from types import ModuleType

from kraftwire import messages
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.node.context import Context, Handler, Request
from kraftwire.node.handlers import (
    add_raft_voter,
    api_versions,
    broker_heartbeat,
    broker_registration,
    cluster_changes,
    controller_registration,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    envelope,
    fetch,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    read_only,
    remove_raft_voter,
    unregister_broker,
    unregister_controller,
    update_features,
)
from kraftwire.node.handlers.unsupported import UNSUPPORTED, handler_of
from kraftwire.node.handlers.versions import BROKER_VERSIONS, CONTROLLER_VERSIONS, RAFT_APIS
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.versions import fetching_replica
from kraftwire.wire.message import Message

__all__ = ["BROKER", "CONTROLLER", "HANDLERS", "route"]



async def _raft_core(request: Request, context: Context) -> Message | None:
    return await context.raft_request(request)


def _by_module(*modules: ModuleType) -> dict[str, Handler]:
    """Return the handlers by name of the API; a module is named after its API."""
    names = {name.lower(): name for name in messages.API_NAMES.values()}
    return {
        names[module.__name__.rpartition(".")[2].replace("_", "")]: module.handle
        for module in modules
    }


_HANDLERS = {name: handler_of(refusal) for name, refusal in UNSUPPORTED.items()} | _by_module(
    add_raft_voter,
    api_versions,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    fetch,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    remove_raft_voter,
    unregister_broker,
    unregister_controller,
    update_features,
)

HANDLERS = {key: _HANDLERS[name] for key, name in messages.API_NAMES.items() if name in _HANDLERS}

BROKER: dict[int, Handler] = {key: HANDLERS[key] for key in BROKER_VERSIONS}

_CHANGES = {
    key: cluster_changes.handler_of(name)
    for key, name in messages.API_NAMES.items()
    if name in cluster_changes.CHANGES
}
_PEERS = (
    dict.fromkeys(RAFT_APIS, _raft_core)
    | HANDLERS
    | _CHANGES
    | {ApiKey.FETCH: fetch.handle_replica}
)
CONTROLLER: dict[int, Handler] = {
    key: _PEERS[key] for key in CONTROLLER_VERSIONS if key != ApiKey.ENVELOPE
}
CONTROLLER[ApiKey.ENVELOPE] = envelope.handle


def route(request: Request) -> Handler | None:
    """Return the handler of a request; None for an API that its listener does not offer.

    Order: check first that the version is offered (`versions.offered`). On a listener for both
    peers and clients, a Fetch without a replica id is a consumer's.
    """
    key = request.api_key
    refuser = read_only.refuser(request) if request.from_read_only_listener else None
    if refuser is not None:
        return refuser
    if request.from_client_listener and key in BROKER:
        is_peer = request.from_controller_listener and _is_of_replica(request)
        if not is_peer:
            return BROKER[key]
    return CONTROLLER.get(key) if request.from_controller_listener else None


def _is_of_replica(request: Request) -> bool:
    message = request.message
    return isinstance(message, FetchRequest) and fetching_replica(message) >= 0
