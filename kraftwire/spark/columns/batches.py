"""The headers of all batches of a buffer at once, and their CRCs.

Only batches that look like magic 2 are cut here; the caller passes the rest to a reader that judges
bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kraftwire.errors import WireError
from kraftwire.limits import BATCH_SIZE_MAX
from kraftwire.records.compression import CODEC_MASK, decompress
from kraftwire.records.crc import crc32c
from kraftwire.records.header import (
    CONTROL,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    fields,
)
from kraftwire.records.limits import count_limit

_NAMES = (
    "base_offset", "batch_length", "leader_epoch", "magic", "crc", "attributes",
    "last_offset_delta", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch",
    "base_sequence", "count",
)  # fmt: skip
_CODES = {"q": ">i8", "i": ">i4", "h": ">i2", "b": "i1", "I": ">u4"}
_LAYOUT = np.dtype(
    [
        (name, _CODES[code])
        for name, code in zip(_NAMES, HEADER.format.removeprefix(">"), strict=True)
    ]
)
_START = fields("batch_length", "magic")
_START_SIZE = struct.calcsize(_START.format)


@dataclass(frozen=True)
class Batches:
    """Batches of magic 2 in a buffer, by columns.

    `positions` are where they begin, ascending; `header` has a row for each, with the
    fields of `kraftwire.records.header` (`leader_epoch` for the partition's leader epoch). The
    bytes after the last batch begin at `end`; they are not examined.
    """

    buffer: bytes
    positions: Any
    header: Any
    end: int

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def sizes(self) -> Any:
        """Return the size of each batch, header included."""
        return self.header["batch_length"].astype(np.int64) + LOG_OVERHEAD

    @cached_property
    def last_offsets(self) -> Any:
        """Return the last offset of each batch."""
        return self.header["base_offset"].astype(np.int64) + self.header["last_offset_delta"]

    @cached_property
    def is_valid(self) -> Any:
        """Return whether the CRC of each batch is correct."""
        view = memoryview(self.buffer)
        starts = self.positions + CRC_START
        spans = zip(starts.tolist(), (self.positions + self.sizes).tolist(), strict=True)
        found = np.fromiter(
            (crc32c(view[start:end]) for start, end in spans), np.uint32, len(self)
        )
        return found == self.header["crc"]

    @property
    def codecs(self) -> Any:
        """Return the id of each batch's compression codec."""
        return self.header["attributes"] & CODEC_MASK

    @cached_property
    def has_too_many(self) -> Any:
        """Return which batches are compressed and claim more records than their bytes can hold."""
        return (self.codecs != 0) & (self.header["count"] > count_limit(self.sizes))

    @property
    def is_control(self) -> Any:
        """Return whether each batch holds control records."""
        return self.header["attributes"] & CONTROL != 0

    @property
    def is_transactional(self) -> Any:
        """Return whether each batch belongs to a transaction."""
        return self.header["attributes"] & TRANSACTIONAL != 0

    def first(self, count: int) -> Batches:
        """Return the first `count` batches."""
        if count >= len(self):
            return self
        return self._some(slice(0, count), int(self.positions[count]))

    def chosen(self, mask: Any) -> Batches:
        """Return the batches that a mask selects."""
        return self if mask.all() else self._some(mask, self.end)

    def _some(self, which: Any, end: int) -> Batches:
        some = Batches(self.buffer, self.positions[which], self.header[which], end)
        # CRCs are not computed again.
        if "is_valid" in self.__dict__:
            some.__dict__["is_valid"] = self.is_valid[which]
        return some


def cut(buffer: bytes, position: int = 0, end: int | None = None) -> Batches:
    """Return the contiguous batches from a position on.

    Stops before a batch that is cut off, has another magic or an impossible header, and before the
    first that begins at `end` or later.
    """
    size = len(buffer)
    last = min(size - HEADER_SIZE, size if end is None else end - 1)
    positions = []
    read = _START.unpack_from
    while position <= last:
        length, magic = read(buffer, position)
        if magic != MAGIC or length < LENGTH_MIN or position + LOG_OVERHEAD + length > size:
            break
        positions.append(position)
        position += LOG_OVERHEAD + length
    places = np.array(positions, np.int64)
    batches = Batches(buffer, places, _headers(buffer, places), position)
    return batches.first(_plausible_count(batches))


def unpacked(batches: Batches, index: int) -> bytes | None:
    """Return the records of a compressed batch; None if the reader has to explain what is wrong."""
    if batches.has_too_many[index]:
        return None
    start = int(batches.positions[index])
    data = memoryview(batches.buffer)[start + HEADER_SIZE : start + int(batches.sizes[index])]
    try:
        return decompress(int(batches.codecs[index]), data)
    except WireError:
        return None


def _headers(buffer: bytes, positions: Any) -> Any:
    """Return the headers at some positions, in native byte order."""
    if not len(positions):
        return np.empty(0, _LAYOUT.newbyteorder("="))
    data = np.frombuffer(buffer, np.uint8)
    # One row of bytes for each header: a view of the buffer that begins at every byte.
    rows = np.lib.stride_tricks.as_strided(
        data, (len(data) - HEADER_SIZE + 1, HEADER_SIZE), (1, 1), writeable=False
    )
    return rows[positions].view(_LAYOUT)[:, 0].astype(_LAYOUT.newbyteorder("="))


def _plausible_count(batches: Batches) -> int:
    """Return how many batches precede the first impossible header."""
    header = batches.header
    wrong = (
        (header["base_offset"] < 0)
        | (header["leader_epoch"] < -1)
        | (header["last_offset_delta"] < 0)
        | (header["batch_length"] > BATCH_SIZE_MAX - LOG_OVERHEAD)
    )
    return int(wrong.argmax()) if wrong.any() else len(batches)
