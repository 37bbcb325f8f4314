"""From Kafka's names to those of JSON and Python."""

from __future__ import annotations

import keyword
import re

_WORD = re.compile(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])")


def json_name(name: str) -> str:
    """Key of a field in the JSON of Kafka's converters: the first letter in lower case."""
    return name[:1].lower() + name[1:]


def snake(name: str) -> str:
    """``LastFetchTimestamp`` -> ``last_fetch_timestamp``; KRaft counts as one word."""
    parts = _WORD.sub(r"\1\3_\2\4", name.replace("KRaft", "Kraft").replace("kRaft", "kraft"))
    result = parts.lower()
    return result + "_" if keyword.iskeyword(result) else result
