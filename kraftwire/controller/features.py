"""The features that this software supports, and the levels that may be finalized.

The checks are pure functions of image, quorum and request, in Kafka's order. Features of groups and
transactions concern brokers: the controller only keeps their levels.

Source: Kafka's `FeatureControlManager` and `Feature`; R-SRV-3, R-UPG-3, C-FEA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraftwire.controller.cluster import MIN_INSYNC_REPLICAS, Cluster
from kraftwire.controller.image import MetadataImage
from kraftwire.controller.step import VersionedRecord, config_record
from kraftwire.controller.versions import (
    CHANGED_METADATA,
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    WITH_CONTROLLERS,
)
from kraftwire.errors import ApiError
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.update_features_request import FeatureUpdateKey
from kraftwire.protocol.config_resources import BROKER_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode

# The feature by which voters of kraftwire know each other: with voters of Kafka in the quorum, one
# of the voters of kraftwire is to be the active controller. It is never finalized.
OWN_FEATURES: Mapping[str, tuple[int, int]] = {"kraftwire.version": (1, 1)}

# The features that nodes announce.
ANNOUNCED_FEATURES: Mapping[str, tuple[int, int]] = {**SUPPORTED_FEATURES, **OWN_FEATURES}

# The level of metadata.version that eligible leader replicas need (4.0-IV1).
_ELR_NEEDS = 23

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

_Ranges = Mapping[str, tuple[int, int]]
_Levels = Mapping[str, int]


def check_updates(
    image: MetadataImage,
    updates: Iterable[FeatureUpdateKey],
    *,
    kraft_version: int,
    own_id: int,
    configured: Iterable[int],
) -> None:
    """Check updates of features; all of them are applied or none.

    `configured` are the ids of the voters in the configuration, who have to be registered
    controllers. Raises: ApiError INVALID_UPDATE_VERSION with the reason for the first invalid one.
    """
    updates = list(updates)
    proposed = image.features | {one.feature: one.max_version_level for one in updates}
    for update in updates:
        levels = image.features | {KRAFT_VERSION: kraft_version}
        level = levels.get(update.feature, 0)
        reason = (
            _update_problem(update)
            or _unsupported_by(image, update, own_id, frozenset(configured))
            or _direction_problem(update, level)
            or _missing_dependency(update, proposed)
        )
        if reason:
            text = f"feature {update.feature} cannot be set to {update.max_version_level}: {reason}"
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)


def feature_records(
    cluster: Cluster, updates: Iterable[FeatureUpdateKey]
) -> list[VersionedRecord]:
    """Return the records that finalize the levels; kraft.version is in the voters' control
    records."""
    levels = {one.feature: one.max_version_level for one in updates}
    records = _min_isr_records(cluster) if levels.get(ELR_VERSION) else []
    for name, level in levels.items():
        if name != KRAFT_VERSION and cluster.image.features.get(name, 0) != level:
            records.append((FeatureLevelRecord(name=name, feature_level=level), 0))
    return records


def _min_isr_records(cluster: Cluster) -> list[VersionedRecord]:
    """Return the records that set one min.insync.replicas for all brokers, which eligible leader
    replicas need (C-FEA-8)."""
    configs = cluster.image.configs
    values: dict[str, str | None] = {
        name: None
        for kind, name in configs
        if kind == BROKER_RESOURCE and name and MIN_INSYNC_REPLICAS in configs[kind, name]
    }
    if MIN_INSYNC_REPLICAS not in configs.get((BROKER_RESOURCE, ""), {}):
        values[""] = cluster.settings.get(MIN_INSYNC_REPLICAS, "1")
    return [
        config_record(BROKER_RESOURCE, name, MIN_INSYNC_REPLICAS, value)
        for name, value in sorted(values.items())
    ]


def _update_problem(update: FeatureUpdateKey) -> str:
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"upgrade type {update.upgrade_type} is unknown"
    return "a level cannot be negative" if update.max_version_level < 0 else ""


def _unsupported_by(
    image: MetadataImage, update: FeatureUpdateKey, own_id: int, configured: frozenset[int]
) -> str:
    """Return which node does not support the level."""
    name, level = update.feature, update.max_version_level
    if name not in SUPPORTED_FEATURES:
        return f"controller {own_id} does not know this feature"
    nodes: list[tuple[str, _Ranges]] = [(f"controller {own_id}", SUPPORTED_FEATURES)]
    nodes += [(f"broker {broker.id}", broker.features) for broker in image.brokers.values()]
    if (image.metadata_version or 0) >= WITH_CONTROLLERS:
        controllers = image.controllers
        nodes += [(f"controller {one.id}", one.features) for one in controllers.values()]
        missing = configured - controllers.keys() - {own_id}
        if missing:
            return f"controller {min(missing)} has not registered and may not support it"
    for node, ranges in nodes:
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            return f"{node} supports levels {low} to {high}"
    return ""


def _missing_dependency(update: FeatureUpdateKey, proposed: _Levels) -> str:
    """Return which other feature is too low with all updates applied (C-FEA-4)."""
    level = proposed.get(METADATA_VERSION, 0)
    if update.feature == ELR_VERSION and update.max_version_level and level < _ELR_NEEDS:
        return f"it needs {METADATA_VERSION} {_ELR_NEEDS}, which is {level}"
    return ""


def _direction_problem(update: FeatureUpdateKey, current: int) -> str:
    level, kind = update.max_version_level, update.upgrade_type
    if level > current and kind != UPGRADE:
        return f"this would be an upgrade from {current}, but a downgrade was requested"
    if level >= current:
        return ""
    if kind == UPGRADE:
        return f"this would be a downgrade from {current}, but an upgrade was requested"
    if update.feature == KRAFT_VERSION:
        return "it can never be downgraded"
    if update.feature != METADATA_VERSION:
        return ""
    lost = [one for one in CHANGED_METADATA if level < one <= current]
    return f"records of level {min(lost)} would be lost" if lost else ""
