"""The C module, which is there only where it could be built; see docs/engine.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

INTERFACE: int

class Plan:
    """What one version of a message has, for decoding and encoding.

    Shape: `shapes` as `kraftwire.wire.plans` describes them, inner structs first; `decoder` and
    `encoder` are the generated functions, which decide wherever the plan gives up.
    """

    def __new__(
        cls,
        shapes: tuple[tuple[Any, ...], ...],
        decoder: Callable[[bytes, int, int], tuple[Any, int]],
        encoder: Callable[[Any], bytes],
        string_size_max: int,
        /,
    ) -> Plan: ...
    def decode(self, data: bytes, position: int, budget: int, /) -> tuple[Any, int]: ...
    def encode(self, message: Any, /) -> bytes: ...

def read_records(
    row: type[tuple[Any, ...]],
    data: bytes,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    base_sequence: int,
    /,
) -> tuple[list[Any], int]:
    """So many records of a section as rows, and the position after them.

    Raises: ValueError if Python has to read them.
    """

def split_records(
    rows: list[Any], /
) -> tuple[list[int], list[int], list[bytes | None], list[bytes | None], list[Any]]:
    """Offsets, timestamps, keys, values and headers of rows. Raises: ValueError as above."""

def write_records(
    count: int,
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Any] | None,
    offsets: Sequence[int] | None,
    base_offset: int,
    base_timestamp: int,
    /,
) -> bytes:
    """The records part of a batch, not compressed, from lists or tuples of `count` each.

    Raises: ValueError as above.
    """

def packet_places(data: bytes, at: int, captured_max: int, /) -> bytes:
    """Where the whole records of a classic little-endian capture begin, as native int64.

    Shape: from `at` on, up to one that is cut off or holds more than `captured_max` bytes.
    Raises: ValueError if `at` is outside of the data.
    """

def join_ranges(data: bytes, starts: Any, sizes: Any, /) -> bytes:
    """Ranges of the data, one after the other.

    Shape: `starts` and `sizes` are buffers of native int64. Raises: ValueError if a range is not
    within the data.
    """
