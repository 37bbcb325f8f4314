"""All configuration keys that a broker or controller of Kafka knows, with their types.

Source: `AbstractKafkaConfig.CONFIG_DEF`. `data/kafka_keys.txt` lists its names and
types, internal ones included, and the few that can only be changed while a broker runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

# A key of one listener, or of one mechanism of SASL on it.
_OF_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?:[\w-]+\.(?=sasl\.|connections\.))?")


@cache
def _types() -> Mapping[str, str]:
    # Every command that decodes imports this file, few need the names.
    from importlib.resources import files

    text = files("kraftwire.protocol").joinpath("data", "kafka_keys.txt").read_text("ascii")
    return dict(line.split() for line in text.splitlines())


@cache
def kafka_keys() -> frozenset[str]:
    """Return the names of all keys that Kafka knows, including internal ones."""
    return frozenset(_types())


def type_of_key(key: str) -> str | None:
    """Return the type of a key's value, Kafka's word in lower case; None if Kafka does not know the
    key. One listener's key has the type of that of all listeners."""
    return _types().get(key) or _types().get(_OF_LISTENER.sub("", key, count=1))


def is_kafka_key(key: str) -> bool:
    """Whether Kafka knows a key, or the key of all listeners of which it is that of one."""
    return type_of_key(key) is not None
