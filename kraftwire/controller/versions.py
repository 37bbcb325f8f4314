"""The levels of features, and the versions of records that go with those of metadata.version.

Source: Kafka's `Feature` and `MetadataVersion`: `didMetadataChange`, `registerBrokerRecordVersion`
and `partitionRecordVersion`; of 4.4, read by ``javap``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

ELR_VERSION = "eligible.leader.replicas.version"
KRAFT_VERSION = "kraft.version"
METADATA_VERSION = "metadata.version"

# Lowest and highest level by name.
SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 33),
    ELR_VERSION: (0, 1),
    "group.version": (0, 1),
    "share.version": (0, 2),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}

# Levels that introduced records or fields: they would be lost below.
CHANGED_METADATA = frozenset((7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33))

# Levels of metadata.version: migration from ZooKeeper (3.4-IV0), users of SCRAM (3.5-IV2),
# transactions (3.6-IV1), delegation tokens (3.6-IV2), registered controllers (3.7-IV0), directory
# ids (3.7-IV2), eligible leader replicas (4.0-IV1), cordoned directories (4.3-IV0), ranges of
# addresses in ACLs (4.4-IV1), controllers that are unregistered (4.4-IV2).
_WITH_MIGRATION = 8
WITH_SCRAM = 11
WITH_TRANSACTIONS = 13
WITH_TOKENS = 14
WITH_CONTROLLERS = 15
WITH_DIRECTORIES = 17
_WITH_ELR = 23
WITH_CORDONED = 30
WITH_HOST_RANGES = 32
WITH_UNREGISTRATION = 33

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
