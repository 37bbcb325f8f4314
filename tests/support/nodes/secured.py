"""Nodes of ours whose listeners are SASL_SSL, and how their users log in.

Controllers and brokers know each other by PLAIN, as the user `node`; `alice` logs in by PLAIN and
SCRAM. Both are super users.
"""

from __future__ import annotations

from pathlib import Path

from kraftwire.testing import Quorum, quorum
from tests.support.security.certificates import authority, identity, pem
from tests.support.security.kafka import MODULES, USER, USER_PASSWORD, login_properties

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
NODE_PASSWORD = "node-secret"
LISTENERS = ("plaintext", "controller")


def secured_properties(folder: Path, *, protocol: str = "SASL_SSL") -> dict[str, object]:
    """The properties of all nodes; writes their stores into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    holder, store, trust = identity(), folder / "node.pem", folder / "ca.pem"
    store.touch(0o600)
    store.write_text(holder.key_pem() + holder.chain_pem)
    trust.write_text(pem(authority().certificate))
    values: dict[str, object] = {
        "listener.security.protocol.map": f"CONTROLLER:{protocol},PLAINTEXT:{protocol}",
        "security.inter.broker.protocol": protocol,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": store,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": trust,
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:node;User:{USER};User:ANONYMOUS",
    }
    own = f'username="node" password="{NODE_PASSWORD}" user_node="{NODE_PASSWORD}"'
    for listener in LISTENERS:
        for mechanism in MECHANISMS:
            key = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
            users = f' {own} user_{USER}="{USER_PASSWORD}"' if mechanism == "PLAIN" else ""
            values[key] = f"{MODULES[mechanism]} required{users};"
    return values


def secured_client(folder: Path, mechanism: str = "PLAIN") -> dict[str, str]:
    """The properties of the user alice."""
    return login_properties(str(folder / "ca.pem"), mechanism, USER, USER_PASSWORD)


def secured_quorum(folder: Path, nodes: int = 3, **more: object) -> Quorum:
    """Nodes with these listeners; `more` are properties of all of them, with _ for points."""
    properties = secured_properties(folder)
    properties |= {key.replace("_", "."): value for key, value in more.items()}
    users = [f"{name}=[name={USER},password={USER_PASSWORD}]" for name in MECHANISMS[1:]]
    return quorum(
        nodes,
        folder=folder / "quorum",
        properties=properties,
        security=secured_client(folder),
        users=users,
    )
