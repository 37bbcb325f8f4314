"""Cuts a segment into batches, and finds the next batch in damaged bytes."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kraftwire.decode.files.report import FindingSink
from kraftwire.decode.files.source import ByteSource
from kraftwire.limits import BATCH_SIZE_MAX, FILE_WINDOW_BYTES, FINDING_HEX_BYTES
from kraftwire.records.compression import CODEC_MASK, NAMES
from kraftwire.records.crc import crc32c
from kraftwire.records.header import CRC_START, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC_FIELD
from kraftwire.records.legacy import MESSAGE_OVERHEAD

_LEGACY = struct.Struct(">qiIbb")
_LEGACY_TIMESTAMP = struct.Struct(">q")
_KNOWN_ATTRIBUTES = 0x7F
_KNOWN_LEGACY_ATTRIBUTES = 0x0F


class BatchHeader(NamedTuple):
    """The fields of a header that the scan needs.

    `size` counts the whole batch with its overhead; a legacy message is a batch of one,
    and a compressed one says only its last offset.
    """

    base_offset: int
    last_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    max_timestamp: int

    @property
    def is_strict(self) -> bool:
        """Whether nothing in the header is unknown: the test for a header found by searching."""
        known = _KNOWN_ATTRIBUTES if self.magic == 2 else _KNOWN_LEGACY_ATTRIBUTES
        return self.attributes & ~known == 0 and self.attributes & CODEC_MASK < len(NAMES)


def read_header(head: memoryview) -> BatchHeader | None:
    """Read the header at the start of some bytes, or None if no batch starts there.

    Give `HEADER_SIZE` bytes, or what the file still has.
    """
    if len(head) < LOG_OVERHEAD + MESSAGE_OVERHEAD[0]:
        return None
    magic = head[MAGIC_FIELD]
    if magic == 2:
        return _read_current(head) if len(head) >= HEADER_SIZE else None
    return _read_legacy(head) if magic in MESSAGE_OVERHEAD else None


def _read_current(head: memoryview) -> BatchHeader | None:
    base, length, epoch, _, crc, attributes, delta, _, newest, *_ = HEADER.unpack_from(head)
    size = length + LOG_OVERHEAD
    if base < 0 or epoch < -1 or delta < 0 or not HEADER_SIZE <= size <= BATCH_SIZE_MAX:
        return None
    return BatchHeader(base, base + delta, size, epoch, 2, crc, attributes, newest)


def _read_legacy(head: memoryview) -> BatchHeader | None:
    offset, length, crc, magic, attributes = _LEGACY.unpack_from(head)
    if offset < 0 or not MESSAGE_OVERHEAD[magic] <= length <= BATCH_SIZE_MAX - LOG_OVERHEAD:
        return None
    timestamp = -1
    if magic == 1 and len(head) >= _LEGACY.size + _LEGACY_TIMESTAMP.size:
        (timestamp,) = _LEGACY_TIMESTAMP.unpack_from(head, _LEGACY.size)
    size = length + LOG_OVERHEAD
    return BatchHeader(offset, offset, size, -1, magic, crc, attributes, timestamp)


def crc_of(batch: memoryview, magic: int) -> int:
    """The CRC that a batch of this magic must carry."""
    if magic == 2:
        value: int = crc32c(batch[CRC_START:])
        return value
    return zlib.crc32(batch[MAGIC_FIELD:])


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


_GUESS_FACTOR = 4


@dataclass(slots=True)
class FoundBatch:
    """A batch that was found at `position` of the file.

    Its bytes are `buffer[start : start + header.size]`; `is_valid` says whether the CRC
    is right.
    """

    position: int
    header: BatchHeader
    buffer: bytes
    start: int
    is_valid: bool


class Scanner:
    """Walks the batches of a segment or snapshot, or those that begin in a range of its bytes.

    The range is [`start`, `end`), of which both are borders of batches; a batch that begins
    in it is read whole. `before` is the header of the last batch before the present position, so
    that the order of a range's first batch can be checked as well. Adjacent ranges together yield
    what the whole file yields, except that damage at a border is reported in two pieces.
    Order: `position` is where the walk is; iterating again continues from this position.
    """

    def __init__(
        self,
        source: ByteSource,
        sink: FindingSink,
        start: int = 0,
        end: int | None = None,
        *,
        before: BatchHeader | None = None,
    ) -> None:
        self.position = self.start = start
        self.before = before
        self._end = end
        self._source = source
        self._sink = sink
        self._seen_magics: set[int] = set()
        # The last search: its start, the file's size then, and what it found.
        self._search: tuple[int, int, int | None] | None = None
        # Bytes that may still be spent on CRCs over lengths that no header vouches for.
        self._guess_budget = _GUESS_FACTOR * source.size + BATCH_SIZE_MAX

    def batches(self) -> Iterator[FoundBatch]:
        """The batches from the present position to the end of the range, or of the file."""
        while self.position < self.end:
            found = self.step()
            if found is not None:
                yield found

    def step(self) -> FoundBatch | None:
        """Return the next batch, or None after skipping bytes that hold none."""
        found = self._intact_at(self.position) or self._recover()
        if found is not None:
            self._seen_magics.add(found.header.magic)
            self.position = found.position + found.header.size
            self.before = found.header
        return found

    @property
    def end(self) -> int:
        """Where the walk ends: the end of the range, or that of the file."""
        size = self._source.size
        return size if self._end is None else min(self._end, size)

    @property
    def is_whole_file(self) -> bool:
        """Whether the range has all bytes of the file."""
        return self.start == 0 and self.end == self._source.size

    def is_unfinished(self) -> bool:
        """Whether what follows may be a batch that is still being written."""
        position, size = self.position, self._source.size
        header = self._header_at(position)
        if header is not None:
            return position + header.size >= size and self._intact_at(position) is None
        rest = size - position
        return rest < HEADER_SIZE or zeros_end(self._source, position) == size

    def _intact_at(self, position: int) -> FoundBatch | None:
        header = self._header_at(position)
        if header is None or position + header.size > self._source.size:
            return None
        if header.size > self._source.whole_max:
            return None
        data = self._source.read(position, header.size)
        # The file may have become shorter since its size was read.
        if len(data) < header.size or crc_of(data, header.magic) != header.crc:
            return None
        return self._found(position, header, is_valid=True)

    def _recover(self) -> FoundBatch | None:
        """Return a batch from a damaged place, or None after skipping it."""
        position = self.position
        header = self._header_at(position)
        if header is None:
            self._skip_unknown(position)
            return None
        self._seen_magics.add(header.magic)
        if position + header.size > self._source.size:
            return self._longer_than_file(position, header)
        if header.size > self._source.whole_max:
            self._too_long(position, header)
            return None
        return self._damaged(position, header)

    def _too_long(self, position: int, header: BatchHeader) -> None:
        """Skip a batch that would be read whole and is far longer than its compressed file.

        Its header is believed if another one follows where it ends, or nothing.
        """
        self._sink.add(
            "batch-bomb",
            position,
            f"a batch of {header.size} bytes in a compressed file, of which at most "
            f"{self._source.whole_max} are read at once",
            size=header.size,
        )
        end = position + header.size
        if end == self._source.size or self._header_at(end) is not None:
            self.position = end
        else:
            following = self._find(position + 1)
            self._skip_to(self._source.size if following is None else following)

    def _damaged(self, position: int, header: BatchHeader) -> FoundBatch | None:
        """Return a batch with a wrong CRC: either its content is damaged or its length is."""
        end = position + header.size
        if end < self._source.size and self._intact_at(end) is None:
            following = self._find(position + 1)
            repaired = self._with_length(position, header, following)
            if repaired is not None:
                return repaired
            if following is not None and following < end:
                self._skip_to(following)
                return None
        data = self._source.read(position, header.size)
        self._sink.add(
            "batch-crc",
            position,
            f"the CRC is {crc_of(data, header.magic)}, the batch at offset {header.base_offset} "
            f"says {header.crc}",
            size=header.size,
        )
        return self._found(position, header, is_valid=False)

    def _longer_than_file(self, position: int, header: BatchHeader) -> FoundBatch | None:
        """The end of an active segment, or a damaged length if another batch follows."""
        following = self._find(position + 1)
        repaired = self._with_length(position, header, following)
        if repaired is not None:
            return repaired
        if following is not None:
            self._skip_to(following)
        else:
            base = header.base_offset
            self._cut(position, f"a batch of {header.size} bytes with base offset {base}")
        return None

    def _with_length(
        self, position: int, header: BatchHeader, end: int | None
    ) -> FoundBatch | None:
        """The batch with the length that makes its CRC right, if it ends where the next begins."""
        size = (self._source.size if end is None else end) - position
        if not HEADER_SIZE <= size <= min(self._source.whole_max, self._guess_budget):
            return None
        self._guess_budget -= size
        data = self._source.read(position, size)
        if len(data) < size or header.size == size or crc_of(data, header.magic) != header.crc:
            return None
        self._sink.add(
            "wrong-length",
            position,
            f"the batch says {header.size} bytes, its CRC covers {size}",
            size=LOG_OVERHEAD,
            rest=data[:LOG_OVERHEAD],
        )
        fixed = bytearray(data)
        fixed[8:LOG_OVERHEAD] = (size - LOG_OVERHEAD).to_bytes(4, "big")
        return FoundBatch(position, header._replace(size=size), bytes(fixed), 0, True)

    def _skip_unknown(self, position: int) -> None:
        """Skip bytes without a header: the start of one, the zeros of a hole, or something else."""
        size = self._source.size - position
        if size < HEADER_SIZE and self._may_begin_header(position, size):
            self._cut(position, "a batch's header")
            return
        following = self._find(position + 1)
        self._skip_to(self._source.size if following is None else following)

    def _may_begin_header(self, position: int, size: int) -> bool:
        head = self._source.read(position, size)
        return any(head) and head[0] < 0x80 and (size <= 16 or head[16] <= 2)

    def _cut(self, position: int, of_what: str) -> None:
        size = self._source.size - position
        self._sink.add(
            "batch-cut",
            position,
            f"the file ends {size} bytes into {of_what}",
            size=size,
            rest=self._source.read(position, min(size, FINDING_HEX_BYTES)),
        )
        self.position = self._source.size

    def _skip_to(self, end: int) -> None:
        """Report the bytes up to `end`, or to the end of the range, and continue there."""
        following = end
        end = min(end, self.end)
        position, size = self.position, end - self.position
        is_last = end == self._source.size
        zeros = min(zeros_end(self._source, position), end) - position
        self.position = end
        if zeros == size and is_last:
            # A segment may be preallocated (log.preallocate), and a crash may leave such a tail.
            self._sink.add("zero-tail", position, f"{size} bytes of zeros to the end", size=size)
            return
        start = position + zeros % size
        self._sink.add(
            "hole" if zeros > LOG_OVERHEAD else "garbage",
            position,
            f"no batch for {size} bytes, the first {zeros} of them zeros; "
            + ("none follows" if is_last else f"the next begins at {following}"),
            size=size,
            rest=self._source.read(start, min(end - start, FINDING_HEX_BYTES)),
        )

    def _found(self, position: int, header: BatchHeader, *, is_valid: bool) -> FoundBatch:
        buffer, start = self._source.locate(position, header.size)
        return FoundBatch(position, header, buffer, start, is_valid)

    def _header_at(self, position: int) -> BatchHeader | None:
        return read_header(self._source.read(position, HEADER_SIZE))

    def _find(self, position: int) -> int | None:
        """Return the position of the next intact batch; a valid earlier search is not repeated."""
        if self._search is not None:
            start, size, found = self._search
            is_good = size == self._source.size and start <= position
            if is_good and (found is None or position <= found):
                return found
        with_legacy = not self._seen_magics or bool(self._seen_magics & {0, 1})
        found = find_batch(self._source, position, with_legacy=with_legacy)
        self._search = (position, self._source.size, found)
        return found
