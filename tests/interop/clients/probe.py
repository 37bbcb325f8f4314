"""What the Python probes share: steps that are reported as JSON lines on standard output.

Probes in other languages print the same lines; README.md in this folder describes them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "METADATA_TOPIC",
    "READ_COUNT",
    "Login",
    "bootstrap_servers",
    "check_records",
    "login",
    "run",
]

METADATA_TOPIC = "__cluster_metadata"
READ_COUNT = 10


@dataclass(frozen=True)
class Login:
    """What SASL_SSL takes: a file with the authority, a mechanism, a user and its password."""

    ca: str
    mechanism: str
    user: str
    password: str


def login() -> Login | None:
    """The login of this run, from the environment; None for PLAINTEXT."""
    text = os.environ.get("KRAFTWIRE_PROBE_LOGIN")
    return Login(**json.loads(text)) if text else None


def bootstrap_servers() -> str:
    """The only argument of a probe."""
    return sys.argv[1]


def run(version: str, steps: Mapping[str, Callable[[], str]]) -> None:
    """Take the steps in order and report each; a step that fails does not stop the others."""
    _say({"version": version})
    for name, step in steps.items():
        try:
            detail = step()
        # Each client has its own errors, and all of them are results here.
        except Exception as error:  # noqa: BLE001
            _say({"step": name, "ok": False, "detail": f"{type(error).__name__}: {error}"})
        else:
            _say({"step": name, "ok": True, "detail": detail})


def check_records(records: Sequence[tuple[int, bytes]]) -> str:
    """Check the first records of the quorum's topic; returns the detail that `run` prints.

    Raises: AssertionError unless they are metadata records in order.
    """
    offsets = [offset for offset, _ in records]
    assert len(offsets) >= READ_COUNT, f"expected {READ_COUNT} records, found offsets {offsets}"
    assert offsets == sorted(set(offsets)), f"offsets out of order: {offsets}"
    # Every metadata record begins with the version of its frame.
    wrong = [offset for offset, value in records if value[:1] != b"\x01"]
    assert not wrong, f"no metadata records at {wrong}"
    return f"offsets {offsets[0]}-{offsets[-1]}"


def _say(line: Mapping[str, object]) -> None:
    print(json.dumps(line), flush=True)
