"""From Kafka's names to those of JSON and Python."""

from __future__ import annotations

from kraftwire.wire.functions.names import snake

__all__ = ["json_name", "snake"]


def json_name(name: str) -> str:
    """Key of a field in the JSON of Kafka's converters: the first letter in lower case."""
    return name[:1].lower() + name[1:]
