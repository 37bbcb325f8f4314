"""Findings of frames: what is unusual, damaged or missing, under stable ids.

Owns the ids of findings inside a frame, and which ids mean that bytes stay undecoded. Those of
packets and streams are described in `framing.frames`, those of files in `files.report`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kraftwire.capture.framing.frames import BEFORE_CAPTURE
from kraftwire.errors import WireError
from kraftwire.limits import FINDING_HEX_BYTES

# Id -> meaning. The README of `kraftwire/decode` shows this table.
FINDINGS = {
    "api-versions-newer": "ApiVersions in a version that no schema has yet; the fields of the "
    "newest known one are read",
    "api-versions-v0": "an answer to ApiVersions in version 0, from a server that lacks the "
    "version asked for",
    "batch-bomb": "a batch, or a record of it, that would become far more than its bytes account "
    "for; it is not read",
    "batch-crc": "the CRC of a record batch is wrong",
    "batch-cut": "the last record batch is cut off, as servers do at a size limit",
    "batch-damaged": "bytes among record batches that are none, or records that cannot be read",
    "batch-unaligned": "a slice of a snapshot begins or ends inside a record batch",
    "header-undecoded": "the header of the frame cannot be read",
    "incomplete": "bytes of the frame are missing; what stands before them is shown",
    "message-bomb": "a message with so many values that they would fill the memory; its "
    "first bytes are shown",
    "nested-undecoded": "bytes inside a field do not follow the format they should have",
    "not-canonical": "Kafka itself writes the same message in other bytes, such as shorter varints",
    "record-undecoded": "a record of an internal topic whose type, version or bytes fit no schema",
    BEFORE_CAPTURE: "a response to a request from before the capture; its API and version are not "
    "known",
    "sasl-token": "a SASL token without any header, as after a SaslHandshake of version 0",
    "trailing-bytes": "bytes after the end of the message",
    "undecoded": "the bytes do not follow the schema from here on",
    "unknown-api": "no schema has this API key",
    "unknown-tag": "a tagged field that the schema lacks",
    "unknown-version": "no schema has this version; the nearest one is assumed",
    "unmatched-response": "a response whose request is not known, and thus its API and version",
}

# Ids that mean: bytes of Kafka's stay undecoded, or are decoded by guess. The exit code is 3.
LOSSES = frozenset(
    {
        "batch-bomb",
        "batch-crc",
        "batch-damaged",
        "conflict",
        "cut-by-close",
        "gap",
        "header-undecoded",
        "memory-limit",
        "message-bomb",
        "record-undecoded",
        "response-not-captured",
        "resync",
        "truncated-packet",
        "undecoded",
        "unknown-api",
        "unknown-version",
        "unmatched-response",
    }
)

_WORD_START = re.compile(r"_(\w)")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a frame that its reader should know.

    `offset` counts from the first byte after the frame's length, None where no byte can be
    named; `path` is that of the JSON form; `rest` holds the first bytes that the finding is about.
    """

    id: str
    offset: int | None
    path: str
    detail: str
    rest: bytes = b""

    @property
    def is_loss(self) -> bool:
        """Whether bytes stay undecoded, or are decoded by guess."""
        return self.id in LOSSES

    def text(self, *, show_bytes: bool) -> str:
        """The detail, with the bytes in hex where they may be shown."""
        if not self.rest:
            return self.detail
        return f"{self.detail}; bytes {self.rest.hex() if show_bytes else 'not shown'}"

    def to_json(self, *, show_bytes: bool) -> dict[str, Any]:
        """The finding as an element of ``findings``."""
        return {
            "id": self.id,
            "offset": self.offset,
            "path": self.path,
            "detail": self.text(show_bytes=show_bytes),
        }


def finding_of(
    error: WireError, id: str, *, rest: bytes | memoryview = b"", at: int = 0, within: str = ""
) -> Finding:
    """Turn an error into a finding.

    The error's offset counts from `at` in the buffer, and its path from `within` in the
    message; of `rest` the first bytes are kept.
    """
    detail = error.problem
    if error.expected or error.found:
        detail += f" (expected {error.expected or 'nothing'}, found {error.found or 'nothing'})"
    offset = None if error.offset is None else at + error.offset
    path = ".".join(filter(None, (within, json_path(error.path))))
    return Finding(id, offset, path, detail, bytes(rest[:FINDING_HEX_BYTES]))


def json_path(path: str) -> str:
    """Translate a path of Python attributes into the names of the JSON form."""
    return _WORD_START.sub(lambda match: match[1].upper(), path)
