"""TLS connections between two ends in memory, with the secrets that both would log."""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from tests.support.captures.builder import Session


def certificate(folder: Path) -> tuple[Path, Path]:
    """A key and a self-signed certificate."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker.example")])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1)
    made = builder.not_valid_before(now).not_valid_after(now + timedelta(days=36500))
    pem = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (folder / "cert.pem").write_bytes(pem)
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@dataclass
class TlsSession:
    """A client and a server that have agreed on keys, and their session.

    `cipher` is a name of OpenSSL for TLS 1.2; None stands for TLS 1.3. `keylog` is the file with
    the secrets. With `is_mutual` the client shows the server's certificate as its own.
    """

    folder: Path
    cipher: str | None = None
    is_mutual: bool = False
    session: Session = field(default_factory=lambda: Session().open())

    def __post_init__(self) -> None:
        """Shake hands."""
        self.keylog = self.folder / "keys.log"
        version = ssl.TLSVersion.TLSv1_3 if self.cipher is None else ssl.TLSVersion.TLSv1_2
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(*certificate(self.folder))
        if self.is_mutual:
            client.load_cert_chain(self.folder / "cert.pem", self.folder / "key.pem")
            server.load_verify_locations(self.folder / "cert.pem")
            server.verify_mode = ssl.CERT_REQUIRED
        # A server that gives a ticket leaves the id of the session empty.
        server.options |= ssl.OP_NO_TICKET
        for context in (client, server):
            context.minimum_version = context.maximum_version = version
            if self.cipher is not None:
                context.set_ciphers(self.cipher)
        client.keylog_filename = str(self.keylog)
        self._bios = [ssl.MemoryBIO() for _ in range(4)]
        up_in, up_out, down_in, down_out = self._bios
        self._client = client.wrap_bio(down_in, up_out, server_hostname="broker.example")
        self._server = server.wrap_bio(up_in, down_out, server_side=True)
        for _ in range(4):
            for end in (self._client, self._server):
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
                self._pass_on()

    def _pass_on(self) -> None:
        """Pass what one end has written to the other one, and add it to the session."""
        up_in, up_out, down_in, down_out = self._bios
        if data := up_out.read():
            self.session.client(data)
            up_in.write(data)
        if data := down_out.read():
            self.session.server(data)
            down_in.write(data)

    def client(self, text: bytes) -> None:
        """The client sends something."""
        self._client.write(text)
        self._pass_on()

    def server(self, text: bytes) -> None:
        """The server sends something."""
        self._server.write(text)
        self._pass_on()
