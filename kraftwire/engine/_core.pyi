"""The C module, which is there only where it could be built; see docs/engine.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import Buffer

INTERFACE: int

class Plan:
    """What one version of a message has, for decoding and encoding.

    `shapes` as `kraftwire.wire.plans` describes them, inner structs first; `decoder` and
    `encoder` are the generated functions, to which the plan falls back. A message may have
    `elements_free` elements of small structs, and one more for each `element_bytes_min` bytes.
    """

    def __new__(
        cls,
        shapes: tuple[tuple[Any, ...], ...],
        decoder: Callable[[bytes, int, int], tuple[Any, int]],
        encoder: Callable[[Any], bytes],
        string_size_max: int,
        elements_free: int,
        element_bytes_min: int,
        /,
    ) -> Plan: ...
    def decode(self, data: bytes, position: int, budget: int, /) -> tuple[Any, int]: ...
    def encode(self, message: Any, /) -> bytes: ...
    def read(
        self, data: bytes, is_request: bool, has_tags: bool, /
    ) -> tuple[Any, bool] | None:
        """The message in a frame without its length, and whether any error code in it is set.

        None where header or body are not as usual: tagged fields in a header that `has_tags`,
        unknown ones in the body, bytes after it, damage.
        """

class JsonPlan:
    """What one version of a message has, for JSON.

    `shapes` as `kraftwire.wire.json_form` describes them, inner structs first.
    """

    def __new__(
        cls, shapes: tuple[tuple[Any, ...], ...], string_size_max: int, /
    ) -> JsonPlan: ...
    def write(
        self, data: bytes, position: int, budget: int, /
    ) -> (
        tuple[bytes, int, list[tuple[int, int, int, str | None, bytes | None]] | None] | None
    ):
        """A message as JSON, the position after it, and its records.

        The records are a list with an item for each field: the place in the text, where the
        bytes begin and end, name and id of the topic. `budget` bounds values and elements.
        None if Python has to decide, as it does for bytes that Kafka would not write.
        """

def json_batches(
    data: bytes, start: int, end: int, head: bytes, /
) -> tuple[bytes, list[tuple[int, int, int]]] | None:
    """Whole batches of users' records as a JSON list, without their records.

    Each begins with `head`, up to the position's value. The text says that every CRC is right;
    the caller has to check that, and gets each CRC with the range of bytes that it covers.
    None if Python has to decide.
    """

def check_records(data: bytes, start: int, end: int, count: int, /) -> bool:
    """Whether a section holds `count` readable records; False if Python has to decide."""

def count_within(data: bytes, start: int, end: int, count: int, size: int, /) -> int:
    """How many of `count` records begin within `size` bytes; at least one.

    Counting ends with the first record of an unusual length.
    """

# A bitmap of what is not null (None if nothing is null), 32-bit offsets, bytes.
_Cells = tuple[bytes | None, bytes, bytes]

def read_columns(
    buffer: bytes,
    positions: Buffer,
    numbers: Buffer,
    sections: list[bytes | None],
    place: tuple[int, int, int],
    rows_max: int,
    bytes_max: int,
    /,
) -> tuple[
    tuple[int, int, int],
    bool,
    int,
    tuple[
        bytes, bytes, bytes, bytes, _Cells, _Cells, tuple[bytes, _Cells, _Cells, int] | None
    ],
]:
    """Records of batches as buffers of Arrow's arrays.

    `positions` (int64) are those of batches of magic 2 in the buffer, `numbers` (int32) their
    values in the first column; `sections` has the decompressed records of each, None if they are
    in the buffer. `place` is where reading starts: the index of a batch, of a record in it, and
    the position of that record among its records. Reading ends after `rows_max` rows or
    `bytes_max` bytes. Returns the place where it ended, whether Python has to read the batch
    there, the number of rows, and columns: number, offset, timestamp, sequence, keys, values,
    headers (offsets, names, values, count; None without headers).
    """

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
    """`count` records of a section as rows, and the position after them.

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

def join_ranges(data: bytes, starts: Any, sizes: Any, /) -> bytes:
    """Ranges of the data, one after the other.

    `starts` and `sizes` are buffers of native int64. Raises: ValueError if a range is not
    within the data.
    """

def read_ranges(descriptor: int, starts: Any, sizes: Any, /) -> bytes | None:
    """Ranges of a file that is open, one after the other, as `join_ranges` takes them.

    None if the file ends before one of them does, or cannot be read. Raises: ValueError for numbers
    that cannot be ranges of a file.
    """

class InOrder:
    """Takes packets that hold the next bytes of a known direction, and makes the frames in them.

    `classes` are those of `kraftwire.capture.capture`, `flows` the directions by their
    keys; `frames` gets the frames, and `frame_queue` places one of several files. Frames of
    `counted_size_min` bytes and more are begun by Python. `file`, `offset` and `packed` describe
    the file that is read: its name, where it begins in a series, its size if it is compressed.
    """

    payload: int
    latest_ns: int
    file: str
    offset: int
    packed: int

    def __new__(
        cls,
        classes: tuple[type, ...],
        flows: dict[bytes, Any],
        frame_queue: Any,
        frames: list[Any],
        frame_size_max: int,
        counted_size_min: int,
        /,
    ) -> InOrder: ...
    def follow(
        self, data: bytes, at: int, base: int, tick_ns: int, link: int, interface: int, /
    ) -> tuple[int, int, int, int]:
        """Take packets from a position on, until Python has to look at one, or frames wait.

        The arguments and the result are those of `kraftwire.capture.packets.packet.Follow`, with
        the time of the first packet before that of the last one. It ends at a pause.
        """

def read_packets(
    data: bytes, at: int, base: int, tick_ns: int, link: int, interface: int, to: int, /
) -> list[tuple[Any, ...]]:
    """The packets that `InOrder.follow` took with these arguments, up to where it ended.

    Each is a tuple of the values of `kraftwire.capture.packets.packet.Packet`.
    """

def index_packets(
    data: bytes,
    at: int,
    base: int,
    tick_ns: int,
    link: int,
    interface: int,
    directions: dict[bytes, Any],
    direction: type,
    informative: frozenset[bytes],
    run_bytes: int,
    /,
) -> tuple[int, int, int, int, tuple[list[int], list[int], list[int]]]:
    """Add packets to the counts of their directions, until Python has to look at one.

    The first six arguments and the first four values are those of `InOrder.follow`; the last one
    has the runs of packets: numbers of connections, positions and sizes. A run ends after
    `run_bytes`. Python looks at payloads that begin like an `informative` request, and at those of
    directions that await a response.
    """
