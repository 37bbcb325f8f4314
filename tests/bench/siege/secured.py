"""A quorum of three controllers over SASL_SSL with every mechanism, and how everybody logs in.

Its listeners ask for certificates of clients, so that these can be an attack, too.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

from joserfc import jwk

from kraftwire.cli import main as cli
from tests.support.nodes.process import NodeQuorum
from tests.support.nodes.secured import MECHANISMS, secured_client, secured_properties
from tests.support.security.kafka import MODULES, USER, USER_PASSWORD

__all__ = ["KEYS_FILE", "SecuredQuorum"]

_CLUSTER_ID = "9CIbsF9FQuGtwD837BRpPA"
_LISTENER = "listener.name.controller"
_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"

# The provider's public keys, in the folder of the stores.
KEYS_FILE = "keys.json"


class SecuredQuorum(NodeQuorum):
    """Three controllers whose only listener is SASL_SSL."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        common = secured_properties(folder / "stores")
        self._write_keys()
        voters = ",".join(f"{i}@localhost:{port}" for i, port in self.ports.items())
        for node_id, port in self.ports.items():
            values = common | self._bearer() | self._own(node_id, port, voters)
            lines = "".join(f"{key}={value}\n" for key, value in values.items())
            self.config(node_id).write_text(lines)
            self._format(node_id)

    @property
    def login(self) -> dict[str, str]:
        """The client properties of the user that everybody is."""
        return secured_client(self.stores)

    @property
    def stores(self) -> Path:
        """The folder of the stores."""
        return self.folder / "stores"

    def _own(self, node_id: int, port: int, voters: str) -> dict[str, object]:
        return {
            "process.roles": "controller",
            "node.id": node_id,
            "listeners": f"CONTROLLER://localhost:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
            "log.dirs": self.folder / f"log-{node_id}",
            f"{_LISTENER}.ssl.client.auth": "requested",
        }

    def _bearer(self) -> dict[str, object]:
        key = f"{_LISTENER}.oauthbearer.sasl"
        return {
            "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
            f"{key}.jaas.config": f"{MODULES['OAUTHBEARER']} required;",
            f"{key}.server.callback.handler.class": _VALIDATOR,
            "sasl.oauthbearer.jwks.endpoint.url": (self.stores / KEYS_FILE).as_uri(),
            "sasl.oauthbearer.allow.unverified.audience": "true",
            "sasl.oauthbearer.allow.unverified.issuer": "true",
        }

    def _write_keys(self) -> None:
        keys = [
            jwk.RSAKey.generate_key(2048, parameters={"kid": "rsa"}),
            jwk.ECKey.generate_key("P-256", parameters={"kid": "ec"}),
        ]
        entries = [key.as_dict(private=False) for key in keys]
        (self.stores / KEYS_FILE).write_text(json.dumps({"keys": entries}))

    def _format(self, node_id: int) -> None:
        command = ["storage", "format", "-t", _CLUSTER_ID, "-c", str(self.config(node_id))]
        for mechanism in MECHANISMS[1:]:
            command += ["--add-scram", f"{mechanism}=[name={USER},password={USER_PASSWORD}]"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert cli.main(command) == 0
