"""Record versions by level of metadata.version.

Source: Kafka's `MetadataVersion.registerBrokerRecordVersion` and `partitionRecordVersion`.
"""

from __future__ import annotations

# Levels of metadata.version: migration from ZooKeeper (3.4-IV0), transactions (3.6-IV1),
# registered controllers (3.7-IV0), directory ids (3.7-IV2), eligible leader replicas (4.0-IV1),
# cordoned directories (4.3-IV0).
_WITH_MIGRATION = 8
WITH_TRANSACTIONS = 13
WITH_CONTROLLERS = 15
WITH_DIRECTORIES = 17
_WITH_ELR = 23
WITH_CORDONED = 30

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


def record_version(name: str, level: int) -> int:
    """Return the version in which Kafka writes a record at a level of metadata.version."""
    return next((version for low, version in _VERSIONS.get(name, ()) if level >= low), 0)
