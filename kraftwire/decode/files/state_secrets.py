"""Secrets in small files: values under keys that no version defines, and text that names secrets.

The meaning of a key that Kafka does not define is unknown, so its value is not shown.
"""

from __future__ import annotations

import re

from kraftwire.decode.body.secrets import REDACTED, is_secret_config, is_secret_value
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.state import QUORUM_STATE_KEYS, StateFile

__all__ = ["hide_unknown", "may_be_secret"]

_KNOWN = {
    FileKind.QUORUM_STATE: frozenset[str]().union(*QUORUM_STATE_KEYS.values()),
    FileKind.META_PROPERTIES: frozenset(
        {"version", "cluster.id", "node.id", "broker.id", "directory.id"}
    ),
    FileKind.PARTITION_METADATA: frozenset({"version", "topic_id"}),
    FileKind.CLEAN_SHUTDOWN: frozenset({"version", "brokerEpoch"}),
}
_NAME = re.compile(r"[\w.-]+")


def hide_unknown(kind: FileKind, state: StateFile) -> bool:
    """Put a mark in place of the values of unknown keys; returns whether there were any."""
    known = _KNOWN.get(kind)
    found = [] if known is None else [key for key in state.data if key not in known]
    for key in found:
        state.data[key] = REDACTED
    return bool(found)


def may_be_secret(content: bytes) -> bool:
    """Whether a file that could not be read names something secret, or holds it."""
    text = content.decode("latin-1")
    return is_secret_value(text) or any(map(is_secret_config, _NAME.findall(text)))
