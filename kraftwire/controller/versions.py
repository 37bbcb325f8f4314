"""The levels of metadata.version, and the versions of records that go with them.

Source: Kafka's `MetadataVersion`: `didMetadataChange`, `registerBrokerRecordVersion` and
`partitionRecordVersion`.
"""

from __future__ import annotations

from functools import cache

METADATA_VERSION = "metadata.version"

# Levels that introduced records or fields: they would be lost below.
CHANGED_METADATA = frozenset((7, 8, 11, 13, 14, 15, 17, 23, 30))

# Levels of metadata.version: migration from ZooKeeper (3.4-IV0), users of SCRAM (3.5-IV2),
# transactions (3.6-IV1), delegation tokens (3.6-IV2), registered controllers (3.7-IV0), directory
# ids (3.7-IV2), eligible leader replicas (4.0-IV1), cordoned directories (4.3-IV0), ranges of
# addresses in ACLs (4.4-IV1).
_WITH_MIGRATION = 8
WITH_SCRAM = 11
WITH_TRANSACTIONS = 13
WITH_TOKENS = 14
WITH_CONTROLLERS = 15
WITH_DIRECTORIES = 17
_WITH_ELR = 23
WITH_CORDONED = 30
WITH_HOST_RANGES = 32

# Record -> (lowest level, version), highest level first; records with a single version are left
# out.
_VERSIONS = {
    "RegisterBrokerRecord": (
        (WITH_CORDONED, 4),
        (WITH_DIRECTORIES, 3),
        (_WITH_MIGRATION, 2),
        (0, 1),
    ),
    "PartitionRecord": ((_WITH_ELR, 2), (WITH_DIRECTORIES, 1), (0, 0)),
}


@cache
def record_version(name: str, level: int) -> int:
    """Return the version in which Kafka writes a record at a level of metadata.version."""
    return next((version for low, version in _VERSIONS.get(name, ()) if level >= low), 0)
