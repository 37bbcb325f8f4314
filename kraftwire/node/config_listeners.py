"""Listeners: where a node accepts connections, and the addresses that it advertises.

Reads `listeners`, `advertised.listeners`, `controller.listener.names`,
`listener.security.protocol.map` and `host:port` lists.

Source: Kafka's `SocketServerConfigs.listenerListToEndPoints` and `AbstractKafkaConfig`.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kraftwire.properties import Properties
from kraftwire.protocol.endpoint import Endpoint, parse_address, parse_endpoint
from kraftwire.raft.voters import Voter
from kraftwire.security.settings import PLAINTEXT, PROTOCOLS

BROKER = "broker"
CONTROLLER = "controller"

_CONTROLLERS = "controller.listener.names"
WILDCARDS = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener: where a node accepts connections, and what it serves there.

    `name` is in upper case; an empty `host` means every interface; port 0 lets the system choose.
    `is_controller` and `is_client` select the APIs that are served; both may be True. A listener
    that `is_read_only` refuses those that change anything.
    """

    name: str
    host: str
    port: int
    is_controller: bool
    is_client: bool
    is_read_only: bool = False


def read_listeners(
    properties: Properties, roles: Collection[str]
) -> tuple[tuple[Listener, ...], tuple[str, ...]]:
    """Return the listeners, and the names of those of controllers, which may be other nodes'.

    Without `process.roles` one listener serves peers and clients.
    """
    is_raft_readme = not properties.has("process.roles")
    endpoints = _read_endpoints(properties, "listeners")
    if not endpoints:
        if properties.has("listeners"):
            raise properties.refuse("listeners", "at least one NAME://host:port")
        if is_raft_readme or CONTROLLER in roles:
            raise properties.missing("listeners", "expected NAME://host:port,...")
        endpoints = [Endpoint("PLAINTEXT", "", 9092)]
    _check_ports(properties, endpoints)
    names = [endpoint.listener for endpoint in endpoints]
    controllers = tuple(name.upper() for name in properties.items(_CONTROLLERS))
    if not controllers and not is_raft_readme:
        raise properties.refuse(_CONTROLLERS, "the names of the controller listeners")
    controllers = controllers or (names[0],)
    read_only = _read_only_listeners(properties, names, controllers[0])
    listeners = tuple(
        Listener(
            name=endpoint.listener,
            host=endpoint.host,
            port=endpoint.port,
            is_controller=is_raft_readme or endpoint.listener in controllers,
            is_client=is_raft_readme or endpoint.listener not in controllers,
            is_read_only=endpoint.listener in read_only,
        )
        for endpoint in endpoints
    )
    return listeners, controllers


def read_advertised(
    properties: Properties, listeners: Iterable[Listener], controller: str, own: Voter | None
) -> tuple[Endpoint, ...]:
    """Return an endpoint for every listener, with hosts that others can use (R-CONF-5).

    `controller` is the listener of the voters' endpoints, `own` this node among the voters.
    """
    key = "advertised.listeners"
    given = {endpoint.listener: endpoint for endpoint in _read_endpoints(properties, key)}
    if not set(given) <= {listener.name for listener in listeners}:
        raise properties.refuse(key, "only names that listeners has too")
    for endpoint in given.values():
        if endpoint.host in WILDCARDS[1:]:
            raise properties.refuse(key, f"an address that others can reach, found {endpoint.host}")
    advertised = []
    for listener in listeners:
        name = listener.name
        chosen = given.get(name) or Endpoint(name, listener.host, listener.port)
        host = chosen.host
        if host in WILDCARDS:
            mine = own.endpoint(name) if own and name == controller else None
            host = mine.host if mine else host_name()
        advertised.append(Endpoint(name, host, chosen.port))
    return tuple(advertised)


def _read_endpoints(properties: Properties, key: str) -> list[Endpoint]:
    """The entries of `listeners` or `advertised.listeners`.

    Raises: UsageError for an entry other than `NAME://host:port`, and for a repeated name or port.
    """
    endpoints: list[Endpoint] = []
    for text in properties.items(key):
        endpoint = parse_endpoint(text)
        if endpoint is None:
            raise properties.refuse(key, f"NAME://host:port, found {text!r}")
        endpoints.append(endpoint)
    names = [endpoint.listener for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise properties.refuse(key, "a different name for each listener")
    return endpoints


def _check_ports(properties: Properties, endpoints: list[Endpoint]) -> None:
    """Two listeners may not share a port unless one is IPv4 and the other IPv6."""
    seen: dict[int, str] = {}
    for endpoint in endpoints:
        other = seen.get(endpoint.port)
        if endpoint.port and other is not None and (":" in other) == (":" in endpoint.host):
            raise properties.refuse("listeners", "a different port for each listener")
        seen[endpoint.port] = endpoint.host


def read_servers(properties: Properties, key: str, listener: str) -> tuple[Endpoint, ...]:
    """The entries of a `host:port,...` list. Raises: UsageError for any other entry."""
    servers = []
    for text in properties.items(key):
        place = parse_address(text)
        if place is None:
            raise properties.refuse(key, f"host:port,..., found {text!r}")
        servers.append(Endpoint(listener, *place))
    return tuple(servers)


def read_protocols(
    properties: Properties, listeners: Collection[str], controllers: Collection[str]
) -> dict[str, str]:
    """Return the security protocol of each listener, those of other nodes' controllers included.

    Without `listener.security.protocol.map`, names of protocols stand for themselves and controller
    listeners are PLAINTEXT, as in Kafka (SEC-T1). Raises: UsageError for a name without a protocol.
    """
    key = "listener.security.protocol.map"
    protocols = {name: name for name in PROTOCOLS}
    names = [*listeners, *(name for name in controllers if name not in listeners)]
    if properties.has(key):
        protocols = _read_map(properties, key)
    elif not any(name in PROTOCOLS[1:] for name in names):
        protocols |= dict.fromkeys(controllers, PLAINTEXT)
    for name in names:
        if name not in protocols:
            problem = f"a security protocol for listener {name}, as in {name}:PLAINTEXT"
            raise properties.refuse(key, problem)
    between = properties.get("security.inter.broker.protocol")
    if between and between.upper() not in PROTOCOLS:
        raise properties.refuse("security.inter.broker.protocol", f"one of {', '.join(PROTOCOLS)}")
    return {name: protocols[name] for name in names}


_READ_ONLY = "kraftwire.listener.read.only"


def _read_only_listeners(
    properties: Properties, listeners: Collection[str], peers: str
) -> frozenset[str]:
    """Return the listeners that are marked read-only. `peers` is the one that voters use.

    Raises: UsageError for an unknown listener, and for that of the voters, who could not vote.
    """
    names = frozenset(name.upper() for name in properties.items(_READ_ONLY))
    for name in sorted(names):
        if name not in listeners:
            raise properties.refuse(_READ_ONLY, f"names that listeners has too, found {name}")
        if name == peers:
            problem = f"no {name}, because the voters use it to vote and to replicate"
            raise properties.refuse(_READ_ONLY, problem)
    return names


def host_name() -> str:
    """Return the host name of this machine."""
    return socket.getfqdn()


def _read_map(properties: Properties, key: str) -> dict[str, str]:
    protocols = {}
    for text in properties.items(key):
        name, colon, protocol = (part.strip().upper() for part in text.rpartition(":"))
        if not colon or not name or protocol not in PROTOCOLS:
            names = ", ".join(PROTOCOLS)
            raise properties.refuse(key, f"NAME:PROTOCOL,... with one of {names}, found {text!r}")
        protocols[name] = protocol
    return protocols
