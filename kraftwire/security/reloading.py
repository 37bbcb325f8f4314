"""Certificates that are replaced while a node runs: stores are read again when their files change,
and when the committed configuration of the node names others.

Connections that are open keep what they have. A store that cannot be read, or whose certificate
would turn peers away, is kept out, and the old one stays.

Source: SEC-T19, SEC-T25; Kafka's `SslFactory`, `SslConfigs.RECONFIGURABLE_CONFIGS`. Kafka reads a
store again only when a dynamic change names it; here a change of the file is enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from kraftwire.properties import Properties
from kraftwire.security.settings import SecuritySettings
from kraftwire.security.stores import CertificateFacts, certificate_facts
from kraftwire.security.tls import TlsContext

_STORES = ("ssl.keystore.location", "ssl.truststore.location")
# The keys that a configuration may change while a node runs.
_CHANGEABLE = (
    *_STORES,
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
# Modification time in nanoseconds, size and inode; None for a file that is not there.
_Stamp = tuple[int, int, int] | None
_ORIGIN = "the configuration of this node in the log"


class ReloadedTls:
    """A context that follows its stores. `tls` is the newest acceptable one.

    `make` reads the stores. Raises: UsageError as `make`, at first; not from `refresh`.
    """

    def __init__(
        self, settings: SecuritySettings, make: Callable[[SecuritySettings], TlsContext]
    ) -> None:
        self._file = settings
        self._settings = settings
        self._make = make
        self._seen: tuple[list[_Stamp], dict[str, str]] = _stamps(settings.properties), {}
        self.tls = make(settings)

    def refresh(self, now: datetime, changes: Mapping[str, str] | None = None) -> str | None:
        """Read the stores again if a file has changed, or what the configuration says of them.

        `changes` is the committed configuration of the node. Returns what was replaced, None if
        nothing. Raises: UsageError, once for each change, if the new stores are not acceptable.
        """
        own = _of_listener(changes or {}, self._file.properties.listener)
        settings = self._file
        if own:
            settings = replace(settings, properties=settings.properties.changed(own, _ORIGIN))
        seen = _stamps(settings.properties), own
        if seen == self._seen:
            return None
        self._seen = seen
        found = self._make(settings)
        if found.certificate != self.tls.certificate:
            self._check_replacement(found, settings, now)
        self.tls, self._settings = found, settings
        changed = [path for path in _paths(settings.properties) if path] + sorted(own)
        return f"read again: {', '.join(changed)}"

    def validity_problem(self, now: datetime) -> str | None:
        """Return why peers refuse the certificate in use, if it is not valid now."""
        facts = _facts(self.tls)
        if facts is None or facts.starts <= now <= facts.ends:
            return None
        is_old = now > facts.ends
        state, when = ("expired", facts.ends) if is_old else ("is valid only from", facts.starts)
        place = self._settings.properties.place(_STORES[0])
        text = f"the certificate of {facts.subject} {state} {when:%Y-%m-%d %H:%M:%S} UTC"
        return f"{text}: peers refuse it; replace it, see {place}"

    def _check_replacement(
        self, found: TlsContext, settings: SecuritySettings, now: datetime
    ) -> None:
        """Check that a new certificate may take the place of the old one. Raises: UsageError."""
        properties = settings.properties
        old, new = _facts(self.tls), _facts(found)
        if old is None or new is None:
            problem = "the new store cannot be compared with the old: install kraftwire[security]"
            raise properties.error(_STORES[0], problem)
        if not new.starts <= now <= new.ends:
            problem = f"the new certificate of {new.subject} is not valid now"
            raise properties.error(_STORES[0], problem)
        if new.subject != old.subject and not _is_true(properties, "ssl.allow.dn.changes"):
            problem = f"the new certificate is of {new.subject}, the old one of {old.subject}"
            raise properties.error(_STORES[0], f"{problem}: ssl.allow.dn.changes is not true")
        missing = sorted(set(old.names) - set(new.names))
        if missing and not _is_true(properties, "ssl.allow.san.changes"):
            problem = f"the new certificate is no longer for {', '.join(missing)}"
            raise properties.error(_STORES[0], f"{problem}: ssl.allow.san.changes is not true")


def _of_listener(changes: Mapping[str, str], listener: str | None) -> dict[str, str]:
    """Return what a configuration changes of a listener's stores."""
    prefix = f"listener.name.{(listener or '').lower()}."
    keys = [prefix + key for key in _CHANGEABLE]
    return {key: changes[key] for key in keys if key in changes}


def _facts(tls: TlsContext) -> CertificateFacts | None:
    return certificate_facts(tls.certificate) if tls.certificate is not None else None


def _is_true(properties: Properties, key: str) -> bool:
    return (properties.get(key) or "false").lower() == "true"


def _paths(properties: Properties) -> list[str | None]:
    return [properties.get(key) for key in _STORES]


def _stamps(properties: Properties) -> list[_Stamp]:
    return [_stamp(path) for path in _paths(properties)]


def _stamp(path: str | None) -> _Stamp:
    try:
        found = os.stat(path) if path else None
    except (OSError, ValueError):  # the latter for a NUL
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None


