"""The cluster with which a script begins: its level of metadata.version, and racks."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from kraftwire.log.features import Features, FeatureWishes, choose_features

NEWEST_LEVEL = 33

# 3.3-IV3, 3.5-IV2, 3.7-IV4, 3.9-IV0, 4.0-IV0 and IV3, 4.1-IV1, 4.2-IV1, 4.3-IV0, 4.4-IV1: around
# each of these decisions or records change.
_LEVELS = (7, 11, 19, 21, 22, 25, 27, 29, 30, 32)

# How many scripts begin at another level than the newest.
_OLDER = 0.4

_RACKS_MAX = 3


def drawn(random: Random) -> list[Any]:
    """The operation with which a script begins."""
    level = random.choice(_LEVELS) if random.random() < _OLDER else NEWEST_LEVEL
    return ["cluster", level, random.randint(0, _RACKS_MAX)]


def level_of(script: Sequence[Any]) -> int:
    """The level at which the cluster of a script begins."""
    return int(script[0][1]) if script and script[0][0] == "cluster" else NEWEST_LEVEL


def rack_of(broker: int, racks: int) -> str | None:
    """The rack of a broker where there are so many; one of three has no name."""
    number = broker % racks if racks else 0
    return None if number == racks - 1 > 1 or not racks else "abc"[number]


def features_of(level: int) -> Features:
    """The features of a new cluster at a level."""
    return choose_features(FeatureWishes(level, {}), is_dynamic=False)
