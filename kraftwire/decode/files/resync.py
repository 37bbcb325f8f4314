"""Finding the next batch in damaged bytes: a plausible header, confirmed by the batch's CRC."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kraftwire.decode.files.headers import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    crc_of,
    read_header,
)
from kraftwire.decode.files.source import ByteSource
from kraftwire.limits import FILE_WINDOW_BYTES

__all__ = ["find_batch", "zeros_end"]

# In damaged bytes, a header that announces a batch longer than this is believed only if another
# header follows the batch: checking the CRC of every long candidate would take time without bound.
RESYNC_BATCH_BYTES_MAX = 1024 * 1024

_MAGIC_AT = 16
# A magic with what follows it in a header: CRC, attributes, and the last offset delta of the
# current format, which is not negative.
_CURRENT = re.compile(rb"\x02(?=.{4}\x00[\x00-\x7f][\x00-\x7f])", re.DOTALL)
_ANY = re.compile(
    rb"\x02(?=.{4}\x00[\x00-\x7f][\x00-\x7f])|[\x00\x01](?=[\x00-\x04\x08-\x0c])", re.DOTALL
)

_NOT_ZERO = re.compile(rb"[^\x00]")
_ZEROS = bytes(FILE_WINDOW_BYTES)


def find_batch(source: ByteSource, position: int, *, with_legacy: bool) -> int | None:
    """The position of the first batch at or after `position` whose CRC is right, or None.

    Messages of the legacy formats are looked for only if asked: their headers have so few
    fixed bytes that the search takes an order of magnitude longer.
    """
    # A batch may begin with the zeros of a small base offset and of a short length.
    start = max(position, zeros_end(source, position) - (LOG_OVERHEAD - 1))
    pattern = _ANY if with_legacy else _CURRENT
    for candidate in _candidates(source, start, pattern):
        if _is_batch(source, candidate):
            return candidate
    return None


def zeros_end(source: ByteSource, position: int) -> int:
    """The position of the first byte at or after `position` that is not zero, or the end."""
    while chunk := bytes(source.read(position, FILE_WINDOW_BYTES)):
        # Comparing is far faster than searching, and holes are long.
        if chunk != _ZEROS[: len(chunk)]:
            match = _NOT_ZERO.search(chunk)
            return position + match.start() if match else position
        position += len(chunk)
    return position


def _candidates(source: ByteSource, start: int, pattern: re.Pattern[bytes]) -> Iterator[int]:
    """Positions whose bytes look like a header, in order."""
    while source.size - start > LOG_OVERHEAD:
        window = source.read(start, FILE_WINDOW_BYTES)
        for match in pattern.finditer(window, _MAGIC_AT):
            yield start + match.start() - _MAGIC_AT
        if start + len(window) >= source.size:
            return
        # The last header that could begin in this window may end after it.
        start += len(window) - HEADER_SIZE


def _is_batch(source: ByteSource, position: int) -> bool:
    header = read_header(source.read(position, HEADER_SIZE))
    if header is None or not header.is_strict or position + header.size > source.size:
        return False
    if header.size > source.whole_max:
        return False
    if header.size > RESYNC_BATCH_BYTES_MAX and not _is_followed(source, position + header.size):
        return False
    batch = source.read(position, header.size)
    return len(batch) == header.size and crc_of(batch, header.magic) == header.crc


def _is_followed(source: ByteSource, end: int) -> bool:
    following: BatchHeader | None = read_header(source.read(end, HEADER_SIZE))
    return end == source.size or (following is not None and following.is_strict)
