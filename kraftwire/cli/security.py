"""`--command-config`: what secures a command's connections, from Kafka's properties of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftwire.cli.output import say
from kraftwire.errors import UsageError

if TYPE_CHECKING:
    from kraftwire.transport.client_security import ClientSecurity


def client_security(
    path: str, command: str, *, to_controllers: bool = True
) -> ClientSecurity | None:
    """Read a properties file, and print what people should know; None for connections in clear.

    Raises: UsageError, with file, line and key, for what cannot be used.
    """
    from kraftwire.client.security import read_security

    try:
        found = read_security(path, to_controllers=to_controllers)
    except OSError as error:
        raise UsageError(f"--command-config {path}: {error.strerror}") from error
    for line in found.warnings if found else ():
        say(f"kraftwire {command}: {line}")
    return found
