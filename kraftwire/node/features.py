"""The features that this software supports, and the levels that may be finalized.

The checks are pure functions of image, quorum and request, in Kafka's order. Features of topics,
groups and transactions are unknown here: only formatting a directory can finalize them.

Source: Kafka's `FeatureControlManager`; R-SRV-3, R-UPG-3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraftwire.errors import ApiError
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.update_features_request import FeatureUpdateKey
from kraftwire.node.image import METADATA_VERSION, MetadataImage
from kraftwire.node.image.versions import WITH_CONTROLLERS
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message

KRAFT_VERSION = "kraft.version"

# Lowest and highest level by name.
SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    KRAFT_VERSION: (0, 1),
    "metadata.version": (7, 30),
}

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

# Levels of metadata.version that introduced records or fields. Source: `didMetadataChange`.
_CHANGED_METADATA = frozenset((7, 8, 11, 13, 14, 15, 17, 23, 30))

_Ranges = Mapping[str, tuple[int, int]]


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
    for update in updates:
        levels = image.features | {KRAFT_VERSION: kraft_version}
        level = levels.get(update.feature, 0)
        reason = (
            _illegal(update)
            or _unsupported(image, update, own_id, frozenset(configured))
            or _wrong_direction(update, level)
        )
        if reason:
            text = f"feature {update.feature} cannot be set to {update.max_version_level}: {reason}"
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)


def level_records(
    image: MetadataImage, updates: Iterable[FeatureUpdateKey]
) -> list[tuple[Message, int]]:
    """Return the records that finalize the levels; kraft.version is in the voters' control
    records."""
    return [
        (FeatureLevelRecord(name=one.feature, feature_level=one.max_version_level), 0)
        for one in updates
        if one.feature == METADATA_VERSION
        and image.features.get(one.feature) != one.max_version_level
    ]


def _illegal(update: FeatureUpdateKey) -> str:
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"upgrade type {update.upgrade_type} is unknown"
    return "a level cannot be negative" if update.max_version_level < 0 else ""


def _unsupported(
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


def _wrong_direction(update: FeatureUpdateKey, current: int) -> str:
    level, kind = update.max_version_level, update.upgrade_type
    if level > current and kind != UPGRADE:
        return f"this would be an upgrade from {current}, but a downgrade was requested"
    if level >= current:
        return ""
    if kind == UPGRADE:
        return f"this would be a downgrade from {current}, but an upgrade was requested"
    if update.feature == KRAFT_VERSION:
        return "it can never be downgraded"
    lost = [one for one in _CHANGED_METADATA if level < one <= current]
    return f"records of level {min(lost)} would be lost" if lost else ""
