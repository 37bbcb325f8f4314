"""Listeners: where a node accepts connections, and the addresses that it advertises.

Reads `listeners`, `advertised.listeners`, `listener.security.protocol.map` and `host:port` lists.

Source: Kafka's `SocketServerConfigs.listenerListToEndPoints` and `AbstractKafkaConfig`.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from kraftwire.node.settings import Settings
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.security.settings import PLAINTEXT, PROTOCOLS

WILDCARDS = ("", "0.0.0.0", "::")

_SIX = r"\[(?P<six>[0-9a-fA-F:.%\w]+)\]"
_URI = re.compile(rf"(?P<name>[\w.-]+)://(?:{_SIX}|(?P<host>[^:/\[\]\s]*)):(?P<port>\d{{1,5}})")
_SERVER = re.compile(rf"(?:{_SIX}|(?P<host>[^:/\[\]@\s]+)):(?P<port>\d{{1,5}})")


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


def split(text: str) -> tuple[str, int] | None:
    """Split `host:port`, with IPv6 addresses in brackets; returns None for any other text."""
    match = _SERVER.fullmatch(text.strip())
    if match is None or not 0 < int(match["port"]) < 65536:
        return None
    return match["six"] or match["host"], int(match["port"])


def read_endpoints(settings: Settings, key: str) -> list[Endpoint]:
    """The entries of `listeners` or `advertised.listeners`.

    Raises: UsageError for an entry other than `NAME://host:port`, and for a repeated name or port.
    """
    endpoints: list[Endpoint] = []
    for text in settings.items(key):
        match = _URI.fullmatch(text)
        if match is None or not 0 <= int(match["port"]) < 65536:
            raise settings.refuse(key, f"NAME://host:port, found {text!r}")
        host = match["six"] or match["host"] or ""
        endpoints.append(Endpoint(match["name"].upper(), host, int(match["port"])))
    names = [endpoint.listener for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise settings.refuse(key, "a different name for each listener")
    return endpoints


def check_ports(settings: Settings, endpoints: list[Endpoint]) -> None:
    """Two listeners may not share a port unless one is IPv4 and the other IPv6."""
    seen: dict[int, str] = {}
    for endpoint in endpoints:
        other = seen.get(endpoint.port)
        if endpoint.port and other is not None and (":" in other) == (":" in endpoint.host):
            raise settings.refuse("listeners", "a different port for each listener")
        seen[endpoint.port] = endpoint.host


def read_servers(settings: Settings, key: str, listener: str) -> tuple[Endpoint, ...]:
    """The entries of a `host:port,...` list. Raises: UsageError for any other entry."""
    servers = []
    for text in settings.items(key):
        place = split(text)
        if place is None:
            raise settings.refuse(key, f"host:port,..., found {text!r}")
        servers.append(Endpoint(listener, *place))
    return tuple(servers)


def read_protocols(
    settings: Settings, listeners: list[str], controllers: list[str]
) -> dict[str, str]:
    """Return the security protocol of each listener, those of other nodes' controllers included.

    Without `listener.security.protocol.map`, names of protocols stand for themselves and controller
    listeners are PLAINTEXT, as in Kafka (SEC-T1). Raises: UsageError for a name without a protocol.
    """
    key = "listener.security.protocol.map"
    protocols = {name: name for name in PROTOCOLS}
    names = [*listeners, *(name for name in controllers if name not in listeners)]
    if settings.is_set(key):
        protocols = _read_map(settings, key)
    elif not any(name in PROTOCOLS[1:] for name in names):
        protocols |= dict.fromkeys(controllers, PLAINTEXT)
    for name in names:
        if name not in protocols:
            problem = f"a security protocol for listener {name}, as in {name}:PLAINTEXT"
            raise settings.refuse(key, problem)
    between = settings.text("security.inter.broker.protocol")
    if between and between.upper() not in PROTOCOLS:
        raise settings.refuse("security.inter.broker.protocol", f"one of {', '.join(PROTOCOLS)}")
    return {name: protocols[name] for name in names}


READ_ONLY = "kraftwire.listener.read.only"


def read_only_listeners(settings: Settings, listeners: list[str], peers: str) -> frozenset[str]:
    """Return the listeners that are marked read-only. `peers` is the one that voters use.

    Raises: UsageError for an unknown listener, and for that of the voters, who could not vote.
    """
    names = frozenset(name.upper() for name in settings.items(READ_ONLY))
    for name in sorted(names):
        if name not in listeners:
            raise settings.refuse(READ_ONLY, f"names that listeners has too, found {name}")
        if name == peers:
            problem = f"no {name}, because the voters use it to vote and to replicate"
            raise settings.refuse(READ_ONLY, problem)
    return names


def host_name() -> str:
    """Return the host name of this machine."""
    return socket.getfqdn()


def _read_map(settings: Settings, key: str) -> dict[str, str]:
    protocols = {}
    for text in settings.items(key):
        name, colon, protocol = (part.strip().upper() for part in text.rpartition(":"))
        if not colon or not name or protocol not in PROTOCOLS:
            names = ", ".join(PROTOCOLS)
            raise settings.refuse(key, f"NAME:PROTOCOL,... with one of {names}, found {text!r}")
        protocols[name] = protocol
    return protocols
