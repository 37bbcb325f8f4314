"""The features of a new cluster, by release of Kafka.

Source: Kafka's `MetadataVersion`, `Feature` and `Formatter`; `kafka-storage version-mapping`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kraftwire.errors import UsageError

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"

_FIRST_LEVEL = 7
_UNSTABLE_LEVEL = 34
_UNSTABLE_NAME = "4.5-IV0"

# Release -> how many levels of metadata.version it has: 3.5 has 3.5-IV0, 3.5-IV1 and 3.5-IV2.
_LEVEL_COUNTS = {
    "3.4": 1, "3.5": 3, "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1,
    "4.0": 4, "4.1": 2, "4.2": 2, "4.3": 1, "4.4": 3,
}  # fmt: skip
_NAMES = [
    "3.3-IV3",
    *(f"{release}-IV{i}" for release, count in _LEVEL_COUNTS.items() for i in range(count)),
]
_LEVELS = {name: level for level, name in enumerate(_NAMES, _FIRST_LEVEL)}

# Feature -> levels in order, each with the first metadata.version for which it is the default.
_DEFAULTS = {
    "eligible.leader.replicas.version": {1: 26},
    "group.version": {1: 22},
    KRAFT_VERSION: {1: 21},
    "share.version": {1: 28, 2: 31},
    "streams.version": {1: 29},
    "transaction.version": {1: 24, 2: 24},
}
_NEEDS = {("eligible.leader.replicas.version", 1): 23}


@dataclass(frozen=True, slots=True)
class FeatureWishes:
    """The features requested on the command line: a release, and levels of single features."""

    release_level: int | None
    levels: dict[str, int]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a new cluster.

    `release` is the name of the level of metadata.version. `levels` are those above 0 in order of
    name, without metadata.version and kraft.version.
    """

    metadata_version: int
    release: str
    levels: tuple[tuple[str, int], ...]


def parse_features(release: str | None, settings: Iterable[str]) -> FeatureWishes:
    """Read a release and texts `feature=level`.

    Raises: UsageError for an unknown release, or a text that cannot be read.
    """
    level = None if release is None else _level_of(release)
    return FeatureWishes(level, dict(map(_parse, settings)))


def choose_features(wishes: FeatureWishes, *, is_dynamic: bool) -> Features:
    """Return the features of a release, by default the newest, with single levels changed.

    `is_dynamic` is True if the voters are kept in the log, which determines kraft.version: a level
    for it can only repeat that. Raises: UsageError as kafka-storage refuses: an unknown feature or
    level, a level that needs a later metadata.version.
    """
    chosen = dict(wishes.levels)
    unknown = sorted(chosen.keys() - _DEFAULTS.keys() - {METADATA_VERSION})
    if unknown:
        names = ", ".join(_DEFAULTS)
        raise UsageError(f"Unsupported feature: {unknown[0]}. Supported features are: {names}")
    if wishes.release_level is not None and METADATA_VERSION in chosen:
        raise UsageError(
            "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
        )
    level = _level(wishes.release_level, chosen.pop(METADATA_VERSION, None))
    if KRAFT_VERSION in chosen:
        _check_kraft_version(chosen[KRAFT_VERSION], is_dynamic)
    levels = {name: _default(name, level) for name in _DEFAULTS} | chosen
    for name, value in levels.items():
        _check_level(name, value, level)
    del levels[KRAFT_VERSION]
    return Features(
        metadata_version=level,
        release=_NAMES[level - _FIRST_LEVEL],
        levels=tuple((name, value) for name, value in sorted(levels.items()) if value),
    )


def _check_kraft_version(level: int, is_dynamic: bool) -> None:
    condition = (
        "controller.quorum.voters is empty and one of the flags --standalone, "
        "--initial-controllers, or --no-initial-controllers is used. For dynamic controllers "
        "support, try "
    )
    if level != 0 and not is_dynamic:
        raise UsageError(
            f"Cannot set kraft.version to {level} unless {condition}using one of --standalone, "
            "--initial-controllers, or --no-initial-controllers and removing "
            "controller.quorum.voters."
        )
    if level == 0 and is_dynamic:
        raise UsageError(
            f"Cannot set kraft.version to 0 if {condition}removing the --feature flag for "
            "kraft.version."
        )


def _parse(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    problem = f"Can't parse feature=level string {text}: "
    if not equals:
        raise UsageError(problem + "equals sign not found.")
    if re.fullmatch(r"-?[0-9]{1,5}", value) is None or not -0x8000 <= int(value) <= 0x7FFF:
        raise UsageError(problem + f"unable to parse {value} as a short.")
    return name, int(value)


def _level(of_release: int | None, level: int | None) -> int:
    """Return the level of metadata.version."""
    if level is None:
        return _LEVELS[_NAMES[-1]] if of_release is None else of_release
    if level == _UNSTABLE_LEVEL:
        raise UsageError(f"metadata.version {_UNSTABLE_NAME} is not yet stable.")
    if not _FIRST_LEVEL <= level < _UNSTABLE_LEVEL:
        raise UsageError(
            f"No MetadataVersion with feature level {level}. "
            f"Valid feature levels are from {_FIRST_LEVEL} to {_UNSTABLE_LEVEL}."
        )
    return level


def _level_of(release: str) -> int:
    """Return the last level for 4.1, 4.1.2 and 4.1-IV1, and the first one for 4.1-IV0."""
    key = ".".join(release.split(".")[:2])
    matches = [name for name in _NAMES if key in (name, name.partition("-")[0])]
    if not matches:
        raise UsageError(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: "
            + ", ".join(_NAMES)
        )
    return _LEVELS[matches[-1]]


def _default(name: str, metadata_version: int) -> int:
    levels = _DEFAULTS[name]
    return max((level for level, first in levels.items() if first <= metadata_version), default=0)


def _check_level(name: str, level: int, metadata_version: int) -> None:
    if level and level not in _DEFAULTS[name]:
        raise UsageError(f"No feature:{name} with feature level {level}")
    needed = _NEEDS.get((name, level), 0)
    if metadata_version < needed:
        raise UsageError(
            f"{name} could not be set to {level} because it depends on "
            f"metadata.version level {needed}"
        )
