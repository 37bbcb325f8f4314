"""The names of all configuration keys that a broker or controller of Kafka knows.

Source: `AbstractKafkaConfig.CONFIG_DEF` of Kafka 4.3.1. `data/kafka_keys.txt` lists its names,
internal ones included, and the few that can only be changed while a broker runs.
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["is_kafka_key", "kafka_keys"]

# A key of one listener, or of one mechanism of SASL on it.
_OF_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?:[\w-]+\.(?=sasl\.|connections\.))?")


@cache
def kafka_keys() -> frozenset[str]:
    """Return the names of all keys that Kafka 4.3.1 knows, including internal ones."""
    # Every command that decodes imports this file, few need the names.
    from importlib.resources import files

    text = files("kraftwire.protocol").joinpath("data", "kafka_keys.txt").read_text("ascii")
    return frozenset(text.split())


def is_kafka_key(key: str) -> bool:
    """Whether Kafka knows a key, or the key of all listeners of which it is that of one."""
    return key in kafka_keys() or _OF_LISTENER.sub("", key, count=1) in kafka_keys()
