"""Limits that several modules of captures share; others are beside their users."""

from __future__ import annotations

from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import is_too_dense

# What a connection counts for in the budget of a capture's memory, and each piece that it holds:
# see `UnfinishedBudget` in `framing/frames.py`.
CONNECTION_OBJECT_BYTES = 4 * 1024
PIECE_OBJECT_BYTES = 300

# A client id or another name of a client, which is kept beyond its frame, is kept up to this many
# characters: those of real clients have tens, and 32,767 bytes that repeat take next to nothing in
# a compressed capture.
NAME_CHARACTERS_MAX = 255

# The dictionary of an xz file, or the window of a zstd file, may have WINDOW_BYTES_FREE: xz -6 and
# zstd -19 take 8 MiB. A larger one, up to what xz -9 takes, is filled as far as the file was
# unpacked, which may be WINDOW_BYTES_FREE and WINDOW_BYTES_RATIO for each of its bytes.
WINDOW_BYTES_FREE = 16 * 1024 * 1024
WINDOW_BYTES_RATIO = 6
WINDOW_BYTES_MAX = 64 * 1024 * 1024
ZSTD_WINDOW_MAX = 128 * 1024 * 1024

# What a decoded message may take: DECODED_BYTES_FREE, and DECODED_BYTES_RATIO times its length.
# Metadata of 75,000 partitions take fourteen times their 3 MiB, and are within that; few messages
# are denser. A message that is longer than its compressed capture may take DECODED_PACKED_FREE, and
# as many times the length of the capture.
DECODED_BYTES_FREE = 26 * 1024 * 1024
DECODED_BYTES_RATIO = 6
DECODED_PACKED_FREE = 18 * 1024 * 1024


def shortened(name: str) -> str:
    """Return a name as it is kept beyond its frame: a very long one is cut, with a mark."""
    if len(name) <= NAME_CHARACTERS_MAX:
        return name
    return f"{name[:NAME_CHARACTERS_MAX]}… ({len(name):,} characters)"


def is_message_bomb(
    cls: type[Message], data: bytes, version: int, start: int, *, input_bytes: int | None = None
) -> bool:
    """Whether a body would take far more memory than its bytes account for, in any output.

    `input_bytes` is the size in the input, where the data is longer: in a compressed capture.
    """
    free, ratio = DECODED_BYTES_FREE, DECODED_BYTES_RATIO
    size = len(data) - start
    if input_bytes is not None and input_bytes < size:
        free, ratio = DECODED_PACKED_FREE + ratio * input_bytes, 0
    return is_too_dense(cls, data, version, start, free=free, ratio=ratio)
