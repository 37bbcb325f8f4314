"""Stores that change under a running node: taken if acceptable, kept out otherwise."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.security.reloading import ReloadedTls
from kraftwire.security.settings import client_settings
from kraftwire.security.tls import client_tls
from tests.support.security.certificates import Identity, authority, der, identity, pem

NOW = datetime.now(UTC)
OWN = identity("reloaded", ("a.example", "b.example"))


class Stores:
    """The files of one end, and its context."""

    def __init__(self, folder: Path, **more: str) -> None:
        self._folder = folder
        self._count = 0
        self.write(OWN)
        self.trust(authority())
        values = {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "own.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "ca.pem"),
        } | {key.replace("_", "."): value for key, value in more.items()}
        self.settings = client_settings(Properties.of(values, "node"))
        self.reloaded = ReloadedTls(self.settings, client_tls)

    def write(self, holder: Identity) -> None:
        """Replace the key store."""
        self.put("own.pem", holder.key_pem() + holder.chain_pem)

    def trust(self, holder: Identity) -> None:
        """Replace the trust store."""
        self.put("ca.pem", pem(holder.certificate))

    def put(self, name: str, text: str) -> None:
        """Write a file at another time than before."""
        path = self._folder / name
        path.write_text(text)
        path.chmod(0o600)
        self._count += 1
        os.utime(path, ns=(self._count, self._count))

    @property
    def shown(self) -> bytes | None:
        """The certificate that the context shows."""
        return self.reloaded.tls.certificate


def test_nothing_is_read_again_while_the_files_stay(tmp_path: Path) -> None:
    """The context is the same object."""
    stores = Stores(tmp_path)
    before = stores.reloaded.tls
    assert stores.reloaded.refresh(NOW) is None
    assert stores.reloaded.tls is before


def test_a_new_certificate_of_the_same_name_takes_the_place(tmp_path: Path) -> None:
    """With more hosts than before."""
    stores = Stores(tmp_path)
    renewed = identity("reloaded", ("a.example", "b.example", "c.example"))
    stores.write(renewed)
    assert stores.reloaded.refresh(NOW) is not None
    assert stores.shown == der(renewed.certificate)
    assert stores.reloaded.refresh(NOW) is None


def test_a_new_trust_store_counts(tmp_path: Path) -> None:
    """With the key as it was."""
    stores = Stores(tmp_path)
    stores.trust(authority("Another CA"))
    assert stores.reloaded.refresh(NOW) is not None
    trusted = stores.reloaded.tls.context.get_ca_certs(binary_form=True)
    assert trusted == [der(authority("Another CA").certificate)]


REFUSED: dict[str, tuple[Identity, str]] = {
    "another name": (
        identity("x", ("a.example", "b.example")),
        "the new certificate is of CN=x, the old one of CN=reloaded: ssl.allow.dn.changes",
    ),
    "fewer hosts": (
        identity("reloaded", ("a.example",)),
        "the new certificate is no longer for b.example: ssl.allow.san.changes is not true",
    ),
    "expired": (
        identity("reloaded", ("a.example", "b.example"), days=(-9, -2)),
        "the new certificate of CN=reloaded is not valid now",
    ),
}


@pytest.mark.parametrize(("holder", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_a_certificate_that_would_turn_peers_away_is_kept_out(
    tmp_path: Path, holder: Identity, problem: str
) -> None:
    """The old one stays, and the problem is told once."""
    stores = Stores(tmp_path)
    stores.write(holder)
    with pytest.raises(UsageError, match=rf"^node: ssl\.keystore\.location: {problem}"):
        stores.reloaded.refresh(NOW)
    assert stores.shown == der(OWN.certificate)
    assert stores.reloaded.refresh(NOW) is None


def test_changes_of_names_can_be_allowed(tmp_path: Path) -> None:
    """By Kafka's own keys."""
    stores = Stores(tmp_path, ssl_allow_dn_changes="true", ssl_allow_san_changes="true")
    other = identity("x", ("z.example",))
    stores.write(other)
    assert stores.reloaded.refresh(NOW) is not None
    assert stores.shown == der(other.certificate)


@pytest.mark.parametrize("text", ["", "half of a", "-----BEGIN CERTIFICATE-----\n!\n"])
def test_a_store_that_is_being_written_is_kept_out(tmp_path: Path, text: str) -> None:
    """Until it is whole: then it counts."""
    stores = Stores(tmp_path)
    stores.put("own.pem", text)
    with pytest.raises(UsageError, match=r"ssl\.keystore\.location"):
        stores.reloaded.refresh(NOW)
    assert stores.shown == der(OWN.certificate)
    renewed = identity("reloaded", ("a.example", "b.example", "d.example"))
    stores.write(renewed)
    stores.reloaded.refresh(NOW)
    assert stores.shown == der(renewed.certificate)


def test_a_key_of_another_certificate_is_kept_out(tmp_path: Path) -> None:
    """Key and chain come in one file, but not always from one hand."""
    stores = Stores(tmp_path)
    stores.put("own.pem", identity("x").key_pem() + OWN.chain_pem)
    with pytest.raises(UsageError, match="does not belong to the certificate"):
        stores.reloaded.refresh(NOW)
    assert stores.shown == der(OWN.certificate)


def test_a_file_that_is_gone_changes_nothing_but_is_told(tmp_path: Path) -> None:
    """A moment between two steps of a replacement."""
    stores = Stores(tmp_path)
    (tmp_path / "own.pem").unlink()
    with pytest.raises(UsageError, match="No such file"):
        stores.reloaded.refresh(NOW)
    assert stores.shown == der(OWN.certificate)


def test_a_certificate_that_is_not_valid_is_told(tmp_path: Path) -> None:
    """Peers refuse it, so people should hear of it; a new one cures it without a restart."""
    stores = Stores(tmp_path)
    assert stores.reloaded.validity_problem(NOW) is None
    late, early = NOW + timedelta(days=4000), NOW - timedelta(days=2)
    for when, words in ((late, r"expired 20\d\d-"), (early, r"is valid only from 20\d\d-")):
        text = stores.reloaded.validity_problem(when)
        assert text is not None
        assert re.search(f"^the certificate of CN=reloaded {words}.*ssl.keystore.location$", text)
    expired = identity("reloaded", ("a.example", "b.example"), days=(-9, -2))
    stores.write(expired)
    restarted = ReloadedTls(stores.settings, client_tls)
    assert restarted.validity_problem(NOW) is not None
    stores.write(OWN)
    assert restarted.refresh(NOW) is not None
    assert restarted.validity_problem(NOW) is None


def test_the_configuration_of_a_node_names_other_stores(tmp_path: Path) -> None:
    """SEC-T25: for one listener; what cannot be used is kept out, and what is gone is forgotten."""
    stores = Stores(tmp_path)
    properties = stores.settings.properties.of_listener("CONTROLLER")
    reloaded = ReloadedTls(replace(stores.settings, properties=properties), client_tls)
    renewed = identity("reloaded", ("a.example", "b.example", "c.example"))
    other = identity("other", ("a.example", "b.example"))
    for name, holder in (("renewed", renewed), ("other", other)):
        stores.put(f"{name}.pem", holder.key_pem() + holder.chain_pem)
    key = "listener.name.controller.ssl.keystore.location"

    def configured(name: str, key: str = key) -> dict[str, str]:
        return {key: str(tmp_path / f"{name}.pem"), "ssl.keystore.location": "nowhere"}

    for foreign in (key.replace("controller", "x"), "listener.name.controller.ssl.protocol"):
        assert reloaded.refresh(NOW, configured("other", foreign)) is None
    done = reloaded.refresh(NOW, configured("renewed"))
    assert done is not None
    assert done.endswith(key)
    assert reloaded.tls.certificate == der(renewed.certificate)
    assert reloaded.refresh(NOW, configured("renewed")) is None
    for name, problem in (("other", "is of CN=other"), ("none", "No such file")):
        with pytest.raises(UsageError, match=f"in the log: {key}: .*{problem}"):
            reloaded.refresh(NOW, configured(name))
        assert reloaded.refresh(NOW, configured(name)) is None
        assert reloaded.tls.certificate == der(renewed.certificate)
    inline = {
        "listener.name.controller.ssl.keystore.type": "PEM",
        "listener.name.controller.ssl.truststore.type": "PEM",
        "listener.name.controller.ssl.truststore.certificates": pem(authority("B").certificate),
        "listener.name.controller.ssl.truststore.location": "",
    }
    assert reloaded.refresh(NOW, inline | configured("renewed")) is not None
    trusted = reloaded.tls.context.get_ca_certs(binary_form=True)
    assert trusted == [der(authority("B").certificate)]
    stores.write(renewed)
    assert reloaded.refresh(NOW) is not None
    trusted = reloaded.tls.context.get_ca_certs(binary_form=True)
    assert trusted == [der(authority().certificate)]
