"""Certificates of members: a key store for each, which can be replaced, and who signs them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

from tests.support.security.certificates import Identity, authority, identity, pem

HOSTS = ("localhost", "127.0.0.1")
_VALID = (-1, 3650)
_EXPIRED = (-30, -1)


class MemberStores:
    """PEM stores in a folder: one for each member by node id, those of others by name."""

    def __init__(self, folder: Path, node_ids: Iterable[int]) -> None:
        self._folder = folder
        self._count = itertools.count()
        self._trusted = folder / "ca.pem"
        self._trusted.write_text(pem(authority().certificate))
        for number in node_ids:
            self.renew(number)

    @property
    def trust(self) -> dict[str, str]:
        """The properties of whoever trusts the authority."""
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._trusted)}

    def key(self, name: int | str) -> dict[str, str]:
        """The properties of a member's key and certificate, or of another holder's."""
        if not self._path(name).exists():
            self._replace(name, identity(_holder(name)))
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._path(name))}

    def renew(self, node_id: int) -> Identity:
        """Replace a member's certificate by a new one of the same name."""
        return self._replace(node_id, self._made(node_id, _VALID))

    def expire(self, node_id: int) -> Identity:
        """Replace it by one that has ended yesterday."""
        return self._replace(node_id, self._made(node_id, _EXPIRED))

    def _made(self, node_id: int, days: tuple[int, int]) -> Identity:
        # Another life, or the same certificate would be returned.
        first = days[0] - next(self._count)
        return identity(_holder(node_id), HOSTS, days=(first, days[1]))

    def _replace(self, name: int | str, holder: Identity) -> Identity:
        """As certificate managers do it: another file takes the name."""
        path = self._path(name)
        other = path.with_suffix(".new")
        other.touch(0o600)
        other.write_text(holder.key_pem() + holder.chain_pem)
        os.replace(other, path)
        return holder

    def _path(self, name: int | str) -> Path:
        return self._folder / f"{_holder(name)}.pem"


def _holder(name: int | str) -> str:
    return name if isinstance(name, str) else f"node-{name}"
