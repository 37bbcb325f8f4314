"""From Kafka's CamelCase names to Python's: one rule, used everywhere."""

from __future__ import annotations

import keyword
import re

__all__ = ["function_stem", "ranges", "snake"]

_WORD = re.compile(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])")


def snake(name: str) -> str:
    """``LastFetchTimestamp`` -> ``last_fetch_timestamp``; KRaft counts as one word."""
    parts = _WORD.sub(r"\1\3_\2\4", name.replace("KRaft", "Kraft").replace("kRaft", "kraft"))
    result = parts.lower()
    return result + "_" if keyword.iskeyword(result) else result


def function_stem(struct: str, versions: list[int]) -> str:
    """Name of a struct's functions: ``TopicData`` of versions 2, 3 and 7 -> ``topic_data_2``."""
    return f"{snake(struct)}_{versions[0]}"


def ranges(versions: list[int]) -> str:
    """Ascending versions in few words: ``0-3,5``."""
    found: list[list[int]] = []
    for version in versions:
        if found and found[-1][-1] == version - 1:
            found[-1][1:] = [version]
        else:
            found.append([version])
    return ",".join("-".join(map(str, ends)) for ends in found)
