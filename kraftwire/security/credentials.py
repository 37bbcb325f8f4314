"""Who logs in, and with which secret: made from a JAAS entry; never shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kraftwire.security.jaas import JaasEntry, JaasError
from kraftwire.security.kerberos import KerberosCredentials

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
GSSAPI = "GSSAPI"
SCRAM_SHA_256 = "SCRAM-SHA-256"
SCRAM_SHA_512 = "SCRAM-SHA-512"
MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER, GSSAPI)

_SECURITY = "org.apache.kafka.common.security."
# The only login module of a mechanism (SEC-S60).
MODULES = {
    PLAIN: f"{_SECURITY}plain.PlainLoginModule",
    SCRAM_SHA_256: f"{_SECURITY}scram.ScramLoginModule",
    SCRAM_SHA_512: f"{_SECURITY}scram.ScramLoginModule",
    OAUTHBEARER: f"{_SECURITY}oauthbearer.OAuthBearerLoginModule",
    GSSAPI: "com.sun.security.auth.module.Krb5LoginModule",
}
_USER = "user_"


@dataclass(frozen=True, slots=True)
class PasswordCredentials:
    """A user and its password. `is_token`: id and HMAC of a delegation token, for SCRAM alone."""

    username: str
    password: str = field(repr=False)
    is_token: bool = False


@dataclass(frozen=True, slots=True)
class BearerCredentials:
    """A token for OAUTHBEARER, and the extensions that go with it."""

    token: str = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    authorization_id: str = ""


Credentials = PasswordCredentials | BearerCredentials | KerberosCredentials


def check_module(entry: JaasEntry, mechanism: str) -> None:
    """Check that an entry names the login module of a mechanism.

    Raises: JaasError with both classes.
    """
    expected = MODULES.get(mechanism)
    if expected is None:
        known = ", ".join(MECHANISMS)
        raise JaasError(f"mechanism {mechanism} is not supported: expected one of {known}")
    if entry.module.strip() != expected:
        raise JaasError(f"login module {entry.module}: expected {expected} for {mechanism}")


def password_credentials(entry: JaasEntry, mechanism: str) -> PasswordCredentials:
    """Return who logs in by PLAIN or SCRAM, from the options `username` and `password`.

    Raises: JaasError for another module, or if an option is missing or empty.
    """
    check_module(entry, mechanism)
    for option in ("username", "password"):
        if option not in entry.options:
            raise JaasError(f"{entry.name}: option {option} is missing")
        if not entry.options[option]:
            raise JaasError(f"{entry.name}: option {option} is empty, and nobody can log in so")
    is_token = entry.options.get("tokenauth", "").lower() == "true" and mechanism != PLAIN
    return PasswordCredentials(entry.options["username"], entry.options["password"], is_token)


class PlainUsers:
    """The users of a listener for PLAIN: the options ``user_NAME`` of its JAAS entry (SEC-S20)."""

    def __init__(self, entry: JaasEntry) -> None:
        check_module(entry, PLAIN)
        self._passwords = {
            key.removeprefix(_USER): value
            for key, value in entry.options.items()
            if key.startswith(_USER)
        }

    def password(self, username: str) -> str | None:
        """Return a user's password, None for an unknown user."""
        return self._passwords.get(username)

    def __repr__(self) -> str:
        return f"PlainUsers({len(self._passwords)} users)"
