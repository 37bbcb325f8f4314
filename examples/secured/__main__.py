"""Three nodes over mutual TLS: `python -m examples.secured` starts and describes them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from examples.secured.make_keys import make_keys
from kraftwire.testing import quorum

HOSTS = ["localhost", "127.0.0.1"]


def main(folder: Path) -> None:
    """Make keys, start three nodes, describe them; only a client with a certificate can."""
    make_keys(folder, dict.fromkeys(("node-1", "node-2", "node-3", "client"), HOSTS))
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}
    node = trust | {
        "listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{folder}/node-{{node}}.pem",
    }
    client = trust | {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "client.pem"),
    }
    with quorum(3, properties=node, security=client) as nodes:
        described = nodes.admin().describe_quorum()
        voters = ", ".join(str(voter.id) for voter in described.voters)
        print(f"node {described.leader_id} leads the voters {voters} over mutual TLS")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
