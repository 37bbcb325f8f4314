"""The message codecs of other Python projects with one small interface.

Each adapter returns None if its project does not know the message or the version. None of them
copies more or checks less than that project's own client in the same call.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tests.bench.corpus import Item

__all__ = ["PEERS", "Codec", "ours"]


@dataclass(frozen=True, slots=True)
class Codec:
    """Decoding one item and encoding the result of that, without arguments.

    Order: construction decodes once, so that `encode` has a message to work on.
    """

    decode: Callable[[], object]
    encode: Callable[[], bytes]


def ours(item: Item) -> Codec:
    """This project's codec."""
    from kraftwire import messages

    cls = messages.find(item.message)
    data, version = item.data, item.version
    message, end = cls.decode(data, version)
    if end != len(data):
        raise AssertionError(f"{item.name}: {len(data) - end} bytes left")
    return Codec(lambda: cls.decode(data, version), lambda: message.encode(version))


def kio(item: Item) -> Codec | None:
    """kio: a Rust decoder, a Python encoder; one frozen dataclass per version."""
    from kio.index import UnknownAPIKey, UnknownEntity, load_payload_module
    from kio.serial import entity_reader, entity_writer
    from kio.static.constants import EntityType

    kind = EntityType.request if item.message.endswith("Request") else EntityType.response
    try:
        module = load_payload_module(item.api_key, item.version, kind)
    except (UnknownAPIKey, UnknownEntity):
        return None
    cls = getattr(module, item.message)
    read, write = entity_reader(cls), entity_writer(cls)
    data = item.data
    entity, _ = read(data, 0)

    def encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, entity)
        return buffer.getvalue()

    return Codec(lambda: read(data, 0), encode)


def kafka_python(item: Item) -> Codec | None:
    """kafka-python 3: straight-line Python, compiled per version when first used."""
    cls = _find("kafka.protocol", ("admin", "consumer", "metadata", "producer"), item.message)
    if cls is None or item.version > cls.max_version:
        return None
    versioned, data = cls[item.version], item.data
    message = versioned.decode(data)
    # A decoded message lacks the header that its encoder needs.
    message._header = None
    message.API_VERSION = item.version
    return Codec(lambda: versioned.decode(data), message.encode)


def aiokafka(item: Item) -> Codec | None:
    """aiokafka: an interpreter of schemas in Python."""
    name = item.message.replace("ApiVersions", "ApiVersion") + f"_v{item.version}"
    cls = _find("aiokafka.protocol", ("admin", "fetch", "metadata", "produce"), name)
    if cls is None:
        return None
    data = item.data
    message = cls.decode(data)
    return Codec(lambda: cls.decode(data), message.encode)


def _find(package: str, modules: tuple[str, ...], name: str) -> Any:
    for module in modules:
        found = getattr(import_module(f"{package}.{module}"), name, None)
        if found is not None:
            return found
    return None


PEERS: dict[str, Callable[[Item], Codec | None]] = {
    "kio": kio,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}
