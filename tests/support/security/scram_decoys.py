"""Decoys for servers of SCRAM whose test is about something else."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.security.decoys import Decoys
from kraftwire.security.scram import ScramCredential


def decoys(mechanism: str) -> Callable[[str, bool], ScramCredential]:
    """What `ScramServer` asks for an unknown user."""
    made = Decoys(b"secret of the server")
    return lambda name, is_token: (made.token if is_token else made.user)(mechanism, name)
