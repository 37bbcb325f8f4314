"""Random messages, whole and damaged, through both engines."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from kraftwire.messages import find, names
from kraftwire.wire.message import Message
from tests.engine.twins import compare_decoding, compare_encoding, spoil
from tests.support.messages.mutations import mutated
from tests.support.messages.random_messages import random_message

# For each message, the number of damaged copies and of messages with odd values.
_DAMAGED = 40
_ODD = 4


def versions() -> Iterator[tuple[type[Message], int]]:
    """Every message in every version."""
    for name in names():
        cls = find(name)
        for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
            yield cls, version


def search_messages(source: random.Random) -> Counter[str]:
    """Compare the engines once on every message-version; returns how many cases of each kind.

    `kept` counts what the engine did not leave to Python. Raises: AssertionError at the
    first difference, with the message and its bytes.
    """
    counts: Counter[str] = Counter()
    for cls, version in versions():
        message = random_message(
            cls, version, source, unknown_tags=source.random() < 0.5,
            foreign_versions=range(cls.VERSIONS.low, cls.VERSIONS.high + 1)
            if source.random() < 0.2
            else range(0),
        )  # fmt: skip
        _search(message, version, source, counts)
    return counts


def _search(
    message: Message, version: int, source: random.Random, counts: Counter[str]
) -> None:
    cls: type[Message] = message.__class__
    data = b""
    try:
        data = compare_encoding(message, version) or b""
        counts["whole"] += 1
        counts["whole kept"] += bool(data)
        if data:
            decoded = compare_decoding(cls, version, data)
            assert decoded is not None, "what the engine writes it must read"
            assert compare_encoding(decoded, version) == data, "a round trip loses something"
        for _ in range(_DAMAGED if data else 0):
            damaged = mutated(data[:2000], source)
            counts["damaged"] += 1
            counts["damaged kept"] += compare_decoding(cls, version, damaged) is not None
        for _ in range(_ODD if data else 0):
            spoiled, _ = cls.decode(data, version)
            spoil(spoiled, source)
            counts["odd"] += 1
            counts["odd kept"] += compare_encoding(spoiled, version) is not None
    except BaseException as error:
        error.add_note(f"{cls.NAME} v{version} {data[:4000].hex()}")
        raise
