"""Random uuids as Kafka makes them for directories, topics and clusters.

Source: Kafka's `Uuid.randomUuid` and `DirectoryId`.
"""

from __future__ import annotations

import os

from kraftwire.wire.json_form import uuid_to_text

# Directory ids below this number have special meanings: unassigned, lost, migrating.
_RESERVED_BELOW = 100

_VERSION_4 = 0x40
_VARIANT = 0x80


def random_uuid() -> bytes:
    """Return a random uuid whose text does not begin with a dash, which tools take for an
    option."""
    while True:
        value = bytearray(os.urandom(16))
        value[6] = value[6] & 0x0F | _VERSION_4
        value[8] = value[8] & 0x3F | _VARIANT
        uuid = bytes(value)
        if int.from_bytes(uuid, "big") >= _RESERVED_BELOW and uuid_to_text(uuid)[0] != "-":
            return uuid
