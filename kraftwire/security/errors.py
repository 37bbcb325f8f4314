"""Why an authentication failed: for the client that reports it, and for the server that answers."""

from __future__ import annotations

from kraftwire.errors import ApiError, KraftwireError
from kraftwire.protocol.error_codes import ErrorCode

# The causes of a failure, for the texts that explain it.
MECHANISM = "mechanism"
"""The server offers other mechanisms."""
LISTENER = "listener"
"""The listener does not ask for a login: it speaks no SASL."""
CREDENTIALS = "credentials"
"""The server refused who we say we are."""
TICKET = "ticket"
"""Kerberos gave no ticket for the service, or could not use it."""
SERVER = "server"
"""The server did not prove that it knows the password, or asked for less than is safe."""
PROTOCOL = "protocol"
"""An answer could not be read, or came out of turn."""


class SaslError(ApiError):
    """A login that failed for good: trying the same again ends in the same way.

    `check` says which check failed, one of the constants of this module; `detail` is the server's
    text where the server refused; kraftwire's own texts contain no secret.
    """

    def __init__(self, check: str, detail: str, code: int | None = None) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED if code is None else code, detail)
        self.check = check


class Refused(KraftwireError):
    """A mechanism's server refuses; the text is for the log of the node.

    With `is_public` the client receives it too, as for Kafka's SaslAuthenticationException; of all
    others the client learns only that it failed (SEC-S8).
    """

    def __init__(self, text: str, *, is_public: bool = False) -> None:
        super().__init__(text)
        self.is_public = is_public


class NotKnownYet(KraftwireError):
    """A mechanism's server cannot judge yet: the client should come again, not be refused.

    The text is for the log of the node.
    """
