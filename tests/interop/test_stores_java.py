"""Key stores and trust stores hold for kraftwire what they hold for Kafka and the JVM below it.

The stores are made by keytool and openssl, in the ways in which people make them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.security.stores import read_key, read_roots
from tests.support.kafka.java import JavaPeer
from tests.support.security.certificates import PASSWORD, authority, below_intermediate, pem
from tests.support.security.kafka import keytool, openssl

OTHER = "another-secret"
_LEGACY = ("-provider", "legacy", "-provider", "default")
# Options of openssl pkcs12 -export, and the password.
OF_OPENSSL: dict[str, tuple[tuple[str, ...], str]] = {
    "plain": (("-name", "node"), PASSWORD),
    "no-name": ((), PASSWORD),
    "no-password": ((), ""),
    "legacy": (("-legacy",), PASSWORD),
    "legacy-no-password": (("-legacy",), ""),
    "rc4": ((*_LEGACY, "-certpbe", "PBE-SHA1-RC4-128", "-keypbe", "PBE-SHA1-RC4-40"), PASSWORD),
    "rc2": ((*_LEGACY, "-certpbe", "PBE-SHA1-RC2-128", "-keypbe", "PBE-SHA1-RC2-40"), PASSWORD),
    "no-mac": (("-nomac",), PASSWORD),
    "mac-sha512": (("-macalg", "sha512", "-iter", "1"), PASSWORD),
    "certificates-in-clear": (("-certpbe", "NONE"), PASSWORD),
    "key-in-clear": (("-keypbe", "NONE"), PASSWORD),
    "same-names": (("-name", "a", "-caname", "a", "-caname", "a"), PASSWORD),
    "no-key": (("-nokeys",), PASSWORD),
}
OF_KEYTOOL = {"keytool.p12": "PKCS12", "keytool-legacy.p12": "PKCS12", "keytool.jks": "JKS"}
PEM_FILES = ("chain.pem", "wrong-order.pem", "authority-first.pem", "x509.pem", "trusted.pem")


@pytest.fixture(scope="module")
def java() -> Iterator[JavaPeer]:
    """Kafka's own reader of stores, and the JVM's choice of keys and authorities."""
    with JavaPeer(folder="security", program="Security") as peer:
        yield peer


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of each kind, all of one key below an authority below another."""
    folder = tmp_path_factory.mktemp("stores")
    holder = below_intermediate()
    own, *issuers = map(pem, holder.chain)
    key = holder.key_pem()
    root = pem(authority().certificate)
    for name, text in {
        "key.pem": key,
        "own.pem": own,
        "issuers.pem": "".join(issuers),
        "root.pem": root,
        "chain.pem": key + holder.chain_pem,
        "wrong-order.pem": key + own + "".join(reversed(issuers)),
        "authority-first.pem": key + root + own,
        "x509.pem": root.replace(" CERT", " X509 CERT"),
    }.items():
        (folder / name).write_text(text)
    openssl("x509", "-in", folder / "root.pem", "-trustout", "-out", folder / "trusted.pem")
    for name, (options, password) in OF_OPENSSL.items():
        openssl(
            "pkcs12", "-export", "-in", folder / "own.pem", "-inkey", folder / "key.pem",
            "-certfile", folder / "issuers.pem", "-out", folder / f"{name}.p12",
            "-passout", f"pass:{password}", *options,
        )  # fmt: skip
    for name, kind in OF_KEYTOOL.items():
        words = ["-keystore", folder / name, "-storepass", PASSWORD, "-storetype", kind]
        legacy = "legacy" in name
        keytool(
            "-importkeystore", "-srckeystore", folder / "plain.p12", "-srcstorepass", PASSWORD,
            "-destkeystore", folder / name, "-deststorepass", PASSWORD, "-deststoretype", kind,
            legacy=legacy,
        )  # fmt: skip
        root_file = ["-file", folder / "root.pem"]
        keytool("-importcert", "-noprompt", "-alias", "ca", *root_file, *words, legacy=legacy)
    return folder


def _ours(values: dict[str, str]) -> dict[str, Any]:
    properties = Properties.of(values, "given")
    try:
        if "ssl.truststore.location" in values:
            return {"roots": {each.hex() for each in read_roots(properties) or ()}}
        key = read_key(properties)
        assert key is not None
        return {"key": [key.key.hex(), *(each.hex() for each in key.chain)]}
    except UsageError:
        return {}


def _theirs(answer: dict[str, Any]) -> dict[str, Any]:
    """What Java found; a store of which it takes nothing counts as refused."""
    if answer.get("roots"):
        return {"roots": set(answer["roots"])}
    keys = list(answer.get("keys", {}).values())
    return {"key": keys[0]} if keys else {}


def _questions(folder: Path, store: str, name: str) -> Iterator[dict[str, str]]:
    """Properties for a store: with the right password, wrong ones and, of trust stores, none."""
    kind = "PEM" if name.endswith("pem") else "JKS"
    base = {f"ssl.{store}.location": str(folder / name), f"ssl.{store}.type": kind}
    if kind == "PEM":
        yield base
        return
    for password in (PASSWORD, "", OTHER):
        yield base | {f"ssl.{store}.password": password}
    if store == "truststore":
        yield base
    else:
        yield base | {"ssl.keystore.password": PASSWORD, "ssl.key.password": OTHER}


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_store_of_any_tool_holds_what_java_finds_in_it(
    stores: Path, java: JavaPeer, store: str
) -> None:
    """The same key with the same chain, the same authorities, or nothing for both."""
    names = [*(f"{name}.p12" for name in OF_OPENSSL), *OF_KEYTOOL, *PEM_FILES]
    questions = [each for name in names for each in _questions(stores, store, name)]
    answers = java.ask({"op": "stores", "properties": each} for each in questions)
    found = [_ours(each) for each in questions]
    differ = [
        f"{question}: Java {_theirs(answer)}, kraftwire {own}"
        for question, answer, own in zip(questions, answers, found, strict=True)
        if _theirs(answer) != own
    ]
    assert not differ, "\n".join(differ)
    assert sum(map(bool, found)) >= 15
