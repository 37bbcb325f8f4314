"""Why a partition has no leader, and which log directories are offline, from the state of a log.

A leader is chosen among the replicas in sync and the eligible ones, if its broker is active and its
log directory online. A broker registers the directories that are online: another one that a
partition of its names is not.

Source: Kafka's `PartitionChangeBuilder` and `ClusterControlManager`; rule C-DIR-1.
"""

from __future__ import annotations

from collections import defaultdict

from kraftwire.controller.cluster import RESERVED_DIRECTORIES, Cluster
from kraftwire.controller.image import MetadataImage
from kraftwire.messages.partition_record import PartitionRecord

_UNASSIGNED = bytes(16)


def reason(image: MetadataImage, partition: PartitionRecord) -> str:
    """Return what each replica of a partition without a leader lacks to lead it."""
    in_sync, eligible = partition.isr, partition.eligible_leader_replicas or []
    last_known = partition.last_known_elr or []
    named = {*in_sync, *eligible, *last_known}
    groups = {
        "in sync": in_sync,
        "eligible": eligible,
        "last known to be eligible": last_known,
        "not in sync": [each for each in partition.replicas if each not in named],
    }
    directories = dict(zip(partition.replicas, partition.directories, strict=False))
    parts = [
        f"{name}: {', '.join(f'{id} ({_state(image, id, directories.get(id))})' for id in ids)}"
        for name, ids in groups.items()
        if ids
    ]
    if not in_sync and not eligible:
        parts.insert(0, "no replica is in sync")
    return "; ".join(parts)


def _state(image: MetadataImage, id: int, directory: bytes | None) -> str:
    broker = image.brokers.get(id)
    if broker is None:
        return "not registered"
    if not Cluster(image).is_online(_UNASSIGNED if directory is None else directory, id):
        return "log directory offline"
    if broker.is_fenced:
        return "fenced"
    return "shutting down" if broker.in_controlled_shutdown else "active"


def offline_directories(image: MetadataImage) -> dict[int, list[bytes]]:
    """Return the ids of log directories that partitions name and their brokers, which are
    registered, do not have online, by the brokers' ids."""
    found: defaultdict[int, set[bytes]] = defaultdict(set)
    cluster = Cluster(image)
    for _, partition in image.topics.all():
        for id, directory in zip(partition.replicas, partition.directories, strict=False):
            if (
                directory >= RESERVED_DIRECTORIES
                and id in image.brokers
                and not cluster.is_online(directory, id)
            ):
                found[id].add(directory)
    return {id: sorted(directories) for id, directories in found.items()}
