"""Messages of so many values that decoding them would fill the memory."""

from __future__ import annotations

from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import is_too_dense

# What a decoded message may take: DECODED_BYTES_FREE, and DECODED_BYTES_RATIO times its length.
# Metadata of 75,000 partitions take fourteen times their 3 MiB, and are within that; few messages
# are denser. A message that is longer than its compressed capture may take DECODED_PACKED_FREE, and
# as many times the length of the capture.
DECODED_BYTES_FREE = 26 * 1024 * 1024
DECODED_BYTES_RATIO = 6
DECODED_PACKED_FREE = 18 * 1024 * 1024


def is_message_bomb(
    cls: type[Message], data: bytes, version: int, start: int, *, worth: int | None = None
) -> bool:
    """Whether a body would take far more memory than its bytes account for, in any output.

    `worth` is how many bytes of the input these came from, where they are more than that.
    """
    free, ratio = DECODED_BYTES_FREE, DECODED_BYTES_RATIO
    size = len(data) - start
    if worth is not None and worth < size:
        free, ratio = DECODED_PACKED_FREE + ratio * worth, 0
    return is_too_dense(cls, data, version, start, free=free, ratio=ratio)
