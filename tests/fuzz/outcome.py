"""What may come of decoding any bytes: a `WireError`, or a message that can be written again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from kraftwire.errors import WireError
from kraftwire.messages import find
from kraftwire.wire.message import Message
from kraftwire.wire.reader import read_message
from tests.support.messages.random_messages import SEED_VARIABLE
from tests.support.messages.vectors import vectors

# All runs are alike unless the variable asks for a different one.
_SEED = 20251121
_SAMPLE_SIZE = 160


@dataclass(frozen=True, slots=True)
class Decoded:
    """A message and the position after it; None both if the bytes were refused."""

    message: Message | None
    end: int | None


class _Stumbled(Exception):
    """The fast decoder wanted to hand over."""


def seed() -> int:
    """The seed of this run; KRAFTWIRE_SEED sets it."""
    value = int(os.environ.get(SEED_VARIABLE, _SEED))
    print(f"{SEED_VARIABLE}={value}")
    return value


@cache
def samples() -> tuple[tuple[type[Message], int, bytes], ...]:
    """One message of every kind in every version: the one whose size is nearest to 160 bytes.

    Empty messages reach little code, and long ones have too many bytes to damage.
    """
    chosen: dict[tuple[str, int], bytes] = {}
    for vector in (each for group in vectors().values() for each in group):
        key = (vector.name, vector.version)
        if key not in chosen or _distance(vector.data) < _distance(chosen[key]):
            chosen[key] = vector.data
    return tuple((find(name), version, data) for (name, version), data in chosen.items())


def _distance(data: bytes) -> int:
    return abs(len(data) - _SAMPLE_SIZE)


@contextmanager
def naming(cls: type[Message], version: int, data: bytes) -> Iterator[None]:
    """Add the bytes to any error that is raised inside, so that it can be reproduced."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"{cls.NAME} v{version} {data.hex()}")
        raise


def survive(cls: type[Message], version: int, data: bytes) -> Decoded:
    """Decode bytes and, if they are accepted, write and read the message once more.

    Raises: AssertionError if that gives another message; any error but `WireError` that occurs.
    """
    try:
        message, end = cls.decode(data, version)
    except WireError:
        return Decoded(None, None)
    assert 0 <= end <= len(data)
    written = message.encode(version)
    again, end_again = cls.decode(written, version)
    assert end_again == len(written)
    assert again.encode(version) == written
    return Decoded(message, end)


def decode_fast(cls: type[Message], version: int, data: bytes) -> Decoded:
    """Decode with the generated functions alone.

    Order: only inside a test that has put `refuse_slowly` in place of the slow reader.
    """
    try:
        return Decoded(*cls.decode(data, version))
    except _Stumbled:
        return Decoded(None, None)


def refuse_slowly(*_: Any) -> Any:
    """Stands in for the hand-over to the slow reader."""
    raise _Stumbled


def decode_slow(cls: type[Message], version: int, data: bytes) -> Decoded:
    """Decode with the slow reader alone."""
    try:
        message, end = read_message(cls.facts(), data, version)
    except WireError:
        return Decoded(None, None)
    return Decoded(message, end)


def same(one: Decoded, other: Decoded, version: int) -> bool:
    """Whether both accepted the same message, or both refused."""
    if one.message is None or other.message is None:
        return one == other
    if one.end != other.end:
        return False
    # A float that is not a number differs from itself, its bytes do not.
    return one == other or one.message.encode(version) == other.message.encode(version)
