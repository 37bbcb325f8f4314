"""Messages of so many values that decoding them would fill the memory."""

from __future__ import annotations

from kraftwire.capture.limits import (
    DECODED_BYTES_FREE,
    DECODED_BYTES_RATIO,
    DECODED_PACKED_FREE,
)
from kraftwire.wire.message import Message
from kraftwire.wire.scales import is_too_dense


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
