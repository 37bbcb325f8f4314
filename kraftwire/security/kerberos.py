"""GSSAPI with Kerberos, both sides: the exchange around a context that a library makes.

Rules SEC-S50 to SEC-S52. Source: RFC 4752; Java's `GssKrb5Client`, `GssKrb5Server`. The context
itself (tickets, keys, the KDC) comes from outside, so nothing here needs the library. Nothing but
the login is protected by it: TLS protects what follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kraftwire.errors import ApiError, KraftwireError
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.errors import PROTOCOL, TICKET, Refused, SaslError
from kraftwire.security.jaas import JaasEntry, JaasError

# The layers of security that follow a login, as bits before a size: this one is none.
_NO_LAYER = 1
_OFFER_SIZE = 4
_OFFER = bytes((_NO_LAYER, 0, 0, 0))


class KerberosError(KraftwireError):
    """What the library refuses. `is_transient`: no KDC could be asked, so trying again may help."""

    def __init__(self, problem: str, *, is_transient: bool = False) -> None:
        super().__init__(problem)
        self.is_transient = is_transient


class GssContext(Protocol):
    """One end of a context; every method raises KerberosError."""

    @property
    def is_complete(self) -> bool:
        """Whether both ends have proved who they are."""

    @property
    def initiator(self) -> str:
        """Who logs in, as ``name/host@REALM``. Order: when it is complete."""

    def step(self, token: bytes | None) -> bytes | None:
        """Take the other end's token, None at first; return one for it, if there is any."""

    def wrap(self, data: bytes) -> bytes:
        """Sign data."""

    def unwrap(self, data: bytes) -> bytes:
        """Verify data, and return what was signed."""


@dataclass(frozen=True, slots=True)
class KerberosCredentials:
    """Who logs in at one service: a context that has not begun."""

    context: GssContext


@dataclass(frozen=True, slots=True)
class KerberosAccount:
    """Where tickets or keys come from: the options of a Krb5LoginModule.

    `ticket_cache` is a file, empty for that of the user, None for no cache.
    """

    principal: str | None
    key_tab: str | None
    ticket_cache: str | None = None

    @classmethod
    def of(cls, entry: JaasEntry, *, is_server: bool = False) -> KerberosAccount:
        """Read the options of an entry; a server has its keys in a file.

        Raises: JaasError if they do not say where from.
        """
        options = entry.options

        def is_set(name: str) -> bool:
            return options.get(name, "").lower() == "true"

        key_tab = options.get("keyTab") if is_set("useKeyTab") else None
        if is_set("useKeyTab"):
            for name in ("keyTab", "principal"):
                if not options.get(name):
                    raise JaasError(f"{entry.name}: option {name} is missing, useKeyTab needs it")
        elif is_server or not is_set("useTicketCache"):
            other = "" if is_server else ", or useTicketCache=true"
            needed = f"useKeyTab=true with keyTab and principal{other}"
            raise JaasError(f"{entry.name}: nothing says where keys are: expected {needed}")
        cache = options.get("ticketCache", "") if is_set("useTicketCache") else None
        return cls(options.get("principal"), _path(key_tab), _path(cache))


def _path(text: str | None) -> str | None:
    """Return a path without what Java allows before it."""
    if text is None:
        return None
    return text.removeprefix("FILE:").removeprefix("file://").removeprefix("file:")


class KerberosClient:
    """The client's side of one login (SEC-S50)."""

    def __init__(self, credentials: KerberosCredentials) -> None:
        self._context = credentials.context
        self._is_agreed = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to be said."""
        return self._is_agreed

    def first(self) -> bytes:
        """Return the first token. Raises: as `answer`."""
        return self._called(lambda: self._context.step(None)) or b""

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the answer to a token of the server, None after the last one.

        Raises: SaslError if the login cannot succeed; ApiError if no KDC could be asked.
        """
        if self._is_agreed:
            return None
        return self._called(lambda: self._next(challenge))

    def _next(self, challenge: bytes) -> bytes:
        context = self._context
        if not context.is_complete:
            return context.step(challenge) or b""
        offer = context.unwrap(challenge)
        if len(offer) != _OFFER_SIZE or not offer[0] & _NO_LAYER:
            raise SaslError(PROTOCOL, "the node wants a security layer of GSSAPI; use TLS instead")
        self._is_agreed = True
        # No authorization id follows: we act as who we are.
        return context.wrap(_OFFER)

    def _called(self, act: Callable[[], bytes | None]) -> bytes | None:
        try:
            return act()
        except KerberosError as error:
            if error.is_transient:
                raise ApiError(ErrorCode.NETWORK_EXCEPTION, f"Kerberos: {error}") from error
            raise SaslError(TICKET, str(error)) from error


class KerberosServer:
    """The listener's side of one login (SEC-S51). `local_name` maps a principal's name."""

    is_token = False
    lifetime_end_ms = None

    def __init__(self, context: GssContext, local_name: Callable[[str], str]) -> None:
        self.name: str | None = None
        self._context = context
        self._local_name = local_name
        self._is_offered = False

    def answer(self, token: bytes) -> bytes:
        """Return the answer to a token. Raises: Refused."""
        context = self._context
        try:
            if not context.is_complete:
                answer = context.step(token)
                # A client that wants no proof of ours gets the offer at once.
                return answer or (self._offer() if context.is_complete else b"")
            if not self._is_offered:
                if token:
                    raise Refused("a token where the client has nothing to say")
                return self._offer()
            chosen = context.unwrap(token)
            if len(chosen) < _OFFER_SIZE or chosen[0] != _NO_LAYER:
                raise Refused("the client chose a security layer that was not offered")
            # The name of whom to act as, which follows, has no effect in Kafka either.
            self.name = self._local_name(context.initiator)
        except KerberosError as error:
            raise Refused(str(error)) from error
        return b""

    def _offer(self) -> bytes:
        self._is_offered = True
        return self._context.wrap(_OFFER)
