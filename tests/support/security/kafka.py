"""One real Kafka node, broker and controller, with a listener for every kind of security.

Owns the stores, which Java's keytool and openssl make, and the properties of the listeners.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from kraftwire.testing.ports import free_ports
from tests.support.kafka.process import KafkaCluster, KafkaNode
from tests.support.security.certificates import authority, identity, pem

HOST = "127.0.0.1"
USER, USER_PASSWORD = "alice", "alice-secret"

# Listener -> protocol. The controller's own speaks TLS; two others are for clients.
LISTENERS = {
    "CONTROLLER": "SSL",
    "CONTROLLER_LOGIN": "SASL_SSL",
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_SSL",
    "CLEAR_LOGIN": "SASL_PLAINTEXT",
}
CONTROLLERS = ("CONTROLLER", "CONTROLLER_LOGIN")

_SECURITY = "org.apache.kafka.common.security"
MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
}


class ManyListenersNode(KafkaNode):
    """A node all of whose listeners are in its properties, whatever they are for."""

    ROLES = "broker,controller"

    def _own_properties(self) -> dict[str, object]:
        places = ",".join(f"{name}://{HOST}:{port}" for name, port in self.listeners.items())
        return {
            "node.id": self.node_id,
            "process.roles": self.ROLES,
            "listeners": places,
            "advertised.listeners": places,
            "log.dirs": self.log_dir,
        }


class SecuredNode(ManyListenersNode):
    """A node that is broker and controller, with all these listeners and one user."""

    def __init__(self, folder: Path, stores: Path, *, session_ms: int = 0) -> None:
        ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        super().__init__(1, folder, ports, _security(stores, session_ms))

    def format(self, cluster_id: str, *options: str) -> None:
        """As of any node, and with the user's credentials for SCRAM."""
        users = (
            f"{mechanism}=[name={USER},password={USER_PASSWORD}]"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        )
        scram = [word for user in users for word in ("--add-scram", user)]
        super().format(cluster_id, *options, *scram)

    def through(self, listener: str) -> list[str]:
        """The option with the address of a listener."""
        kind = "controller" if listener in CONTROLLERS else "server"
        return [f"--bootstrap-{kind}", f"{HOST}:{self.listeners[listener]}"]


def secured_cluster(folder: Path, *, session_ms: int = 0) -> KafkaCluster:
    """The node, and its files in a folder. Units: `session_ms` is the life of a session, 0 for
    no end."""
    stores = folder / "stores"
    stores.mkdir(parents=True)
    write_stores(stores)
    node = SecuredNode(folder / "node", stores, session_ms=session_ms)
    return KafkaCluster([node], is_dynamic=True)


def write_stores(folder: Path) -> None:
    """Write node.pem, client.pem, their parts, and ca.pem."""
    for name, holder in (("node", identity()), ("client", identity("client"))):
        _write(folder / f"{name}.pem", holder.key_pem() + holder.chain_pem)
        _write(folder / f"{name}.key", holder.key_pem())
        _write(folder / f"{name}.crt", holder.chain_pem)
    _write(folder / "ca.pem", pem(authority().certificate))


def client_properties(
    protocol: str, stores: Path, mechanism: str | None = None, password: str = USER_PASSWORD
) -> dict[str, str]:
    """What a client sets for a protocol, and for a login by a mechanism."""
    values = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        values |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(stores / "ca.pem"),
        }
    if mechanism is not None:
        who = f'username="{USER}" password="{password}"'
        if mechanism == "OAUTHBEARER":
            who = f'unsecuredLoginStringClaim_sub="{USER}"'
        values |= {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{MODULES[mechanism]} required {who};",
        }
    return values


def login_properties(ca: str, mechanism: str, user: str, password: str) -> dict[str, str]:
    """What a client of Kafka's sets for a login over TLS, with the file of an authority."""
    who = f'username="{user}" password="{password}"'
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": ca,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{MODULES[mechanism]} required {who};",
    }


def write_properties(path: Path, values: Mapping[str, str]) -> str:
    """Write a properties file for this user alone; returns its path."""
    _write(path, "".join(f"{key}={value}\n" for key, value in values.items()))
    return str(path)


def keytool(*words: object, legacy: bool = False) -> None:
    """Run Java's keytool; `legacy` lets it write PKCS12 as older ones do."""
    options = ["-J-Dkeystore.pkcs12.legacy"] if legacy else []
    _run("keytool", *options, *map(str, words))


def openssl(*words: object) -> None:
    """Run openssl."""
    _run("openssl", *map(str, words))


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)


def _security(stores: Path, session_ms: int) -> dict[str, object]:
    pairs = ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())
    values: dict[str, object] = {
        "controller.listener.names": ",".join(CONTROLLERS),
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": pairs,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": stores / "node.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": stores / "ca.pem",
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MODULES),
        "connections.max.reauth.ms": session_ms,
        # Offsets do not change between two looks.
        "metadata.max.idle.interval.ms": 0,
    }
    for listener, protocol in LISTENERS.items():
        if protocol.startswith("SASL"):
            for mechanism, module in MODULES.items():
                users = f' user_{USER}="{USER_PASSWORD}"' if mechanism == "PLAIN" else ""
                key = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
                values[key] = f"{module} required{users};"
    return values

