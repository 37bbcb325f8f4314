"""Kafka's client properties, as a caller gives them, made into what secures connections.

What that takes is imported only for properties that ask for it: a client in clear loads none of it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from kraftwire.transport.client_security import ClientSecurity

# Properties, the path of a file of them, or what `read_security` returned.
Given: TypeAlias = "Mapping[str, object] | str | os.PathLike[str] | ClientSecurity | None"


def client_security(given: Given, *, to_controllers: bool = True) -> ClientSecurity | None:
    """Return the security of a client's connections; None if they are in clear.

    What people should know is a Python warning. Raises: as `read_security`.
    """
    if given is None:
        return None
    if not isinstance(given, (str, os.PathLike, Mapping)):
        return given
    found = read_security(given, to_controllers=to_controllers)
    for line in found.warnings if found else ():
        warnings.warn(line, stacklevel=3)
    return found


def read_security(
    given: Mapping[str, object] | str | os.PathLike[str], *, to_controllers: bool = True
) -> ClientSecurity | None:
    """Read properties, or a file of them; None if connections are in clear.

    `to_controllers` selects the listener of a node's own file. Raises: UsageError, with file, line
    and key, for what cannot be used; OSError if the file cannot be read.
    """
    from kraftwire.properties import Properties
    from kraftwire.security.settings import PLAINTEXT, client_settings

    properties = Properties.given(given, "security")
    settings = client_settings(properties, to_controllers=to_controllers)
    if settings.protocol == PLAINTEXT:
        return None
    from kraftwire.transport.client_security import ClientSecurity

    return ClientSecurity(settings)
