"""Security contexts of Kerberos, which the library `gssapi` (extra `kerberos`) makes.

The library and its `krb5.conf` decide on KDCs, on the realm of a host, and when tickets are fetched
again. The first step of a client asks a KDC, and so belongs in a thread; a
listener's steps only compute.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kraftwire.errors import UsageError
from kraftwire.security.kerberos import GssContext, KerberosAccount, KerberosError

_Result = TypeVar("_Result")

# KRB5_KDC_UNREACH and KRB5_REALM_CANT_RESOLVE, without a sign as the library has them.
_TRANSIENT = frozenset({-1765328228 + 2**32, -1765328230 + 2**32})


def _library() -> Any:
    """Return the library. Raises: UsageError if it is not installed."""
    try:
        import gssapi
    except (ImportError, OSError) as error:
        problem = f"GSSAPI needs the library gssapi: pip install 'kraftwire[kerberos]' ({error})"
        raise UsageError(problem) from None
    return gssapi


def default_realm() -> str:
    """Return the realm that names without one belong to; empty if none is configured."""
    library = _library()
    try:
        name = library.Name("nobody", library.NameType.kerberos_principal)
        return str(name.canonicalize(library.MechType.kerberos)).rpartition("@")[2]
    except library.exceptions.GSSError:
        return ""


class Initiators:
    """Makes contexts for a client of one service, on any host.

    Raises: UsageError without the library, or if the file has no keys of the principal.
    """

    def __init__(self, account: KerberosAccount, service: str) -> None:
        self._library = _library()
        self._account = account
        self._service = service
        if account.key_tab is not None:
            # Or the library would say, once it is connected, that there is no cache.
            _keys(self._library, account)
        # Tickets that are fetched with keys are kept here, for as long as they are valid.
        self._own_cache = f"MEMORY:{secrets.token_hex(8)}"

    def context_for(self, host: str) -> GssContext:
        """Return a context for the service on a host."""
        return _Context(self._library, lambda: self._begin(host))

    def _begin(self, host: str) -> Any:
        library = self._library
        flags = library.RequirementFlag
        return library.SecurityContext(
            name=library.Name(f"{self._service}@{host}", library.NameType.hostbased_service),
            creds=self._credentials(),
            mech=library.MechType.kerberos,
            usage="initiate",
            flags=flags.mutual_authentication | flags.integrity | flags.replay_detection,
        )

    def _credentials(self) -> Any:
        """Return the tickets of the cache, or those that the keys give."""
        account = self._account
        if account.ticket_cache is not None:
            store = {"ccache": account.ticket_cache} if account.ticket_cache else {}
            try:
                found = self._acquired(store)
                if found.lifetime:
                    return found
            except self._library.exceptions.GSSError:
                if account.key_tab is None:
                    raise
        return self._acquired({"client_keytab": account.key_tab, "ccache": self._own_cache})

    def _acquired(self, store: Mapping[str, str | None]) -> Any:
        library, principal = self._library, self._account.principal
        name = library.Name(principal, library.NameType.kerberos_principal) if principal else None
        return library.Credentials(name=name, usage="initiate", store=store or None)


class Acceptors:
    """Makes contexts for a listener.

    Raises: UsageError without the library, or if the keys of the principal cannot be read.
    """

    def __init__(self, account: KerberosAccount) -> None:
        self._library = _library()
        self._keys = _keys(self._library, account)

    def next(self) -> GssContext:
        """Return a context for one connection."""
        library = self._library
        return _Context(library, lambda: library.SecurityContext(creds=self._keys, usage="accept"))


class _Context:
    """One side of a security context, which begins with its first step."""

    def __init__(self, library: Any, begin: Callable[[], Any]) -> None:
        self._library = library
        self._begin = begin
        self._context: Any = None

    @property
    def is_complete(self) -> bool:
        """Whether both ends have proved who they are."""
        return self._context is not None and bool(self._context.complete)

    @property
    def initiator(self) -> str:
        """The principal that logs in."""
        return self._called(lambda: str(self._context.initiator_name))

    def step(self, token: bytes | None) -> bytes | None:
        """Pass a token of the other end to the context; returns the next one to send, if any."""
        if self._context is None:
            self._context = self._called(self._begin)
            # A refusal is known at once, also if there is a token that tells the other end why.
            self._context.__DEFER_STEP_ERRORS__ = False
        made: bytes | None = self._called(lambda: self._context.step(token))
        return made

    def wrap(self, data: bytes) -> bytes:
        """Sign data."""
        return self._called(lambda: bytes(self._context.wrap(data, False).message))

    def unwrap(self, data: bytes) -> bytes:
        """Verify data."""
        return self._called(lambda: bytes(self._context.unwrap(data).message))

    def _called(self, act: Callable[[], _Result]) -> _Result:
        try:
            return act()
        except self._library.exceptions.GSSError as error:
            is_transient = error.min_code % 2**32 in _TRANSIENT
            raise KerberosError(_text(error), is_transient=is_transient) from None


def _text(error: Any) -> str:
    """Return the library's text about the mechanism: that about its interface has less."""
    codes = (error.min_code, False), (error.maj_code, True)
    texts = [text for code, is_major in codes for text in error.get_all_statuses(code, is_major)]
    # The mechanism has no word for what it did not find out, such as a ticket that has expired.
    return str(next((text for text in texts if text != "Success"), error))


def _keys(library: Any, account: KerberosAccount) -> Any:
    """Return the keys of the principal. Raises: UsageError if they cannot be read."""
    path = account.key_tab
    assert path is not None
    if not os.access(path, os.R_OK):
        raise UsageError(f"keyTab {path} cannot be read")
    name = library.Name(account.principal, library.NameType.kerberos_principal)
    try:
        return library.Credentials(name=name, usage="accept", store={"keytab": path})
    except library.exceptions.GSSError as error:
        raise UsageError(f"{path}: {_text(error)}") from None
