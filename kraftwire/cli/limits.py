"""Limits of `kraftwire message`, each with its reason."""

from __future__ import annotations

from kraftwire.limits import FRAME_SIZE_MAX

# `kraftwire message` refuses a longer line, and skips it without keeping it: the largest frame has
# twice its size in hex digits, less in base64, and a mebibyte is enough for the other keys.
MESSAGE_LINE_BYTES_MAX = 2 * FRAME_SIZE_MAX + 1024 * 1024

# Limits of memory for `kraftwire message`, relative to the bytes of a message or line: for the
# objects of a message, for its JSON (a generous estimate), and for JSON that is read.
MESSAGE_DECODED_FREE = 24 * 1024 * 1024
MESSAGE_DECODED_RATIO = 6
MESSAGE_SHOWN_FREE = 40 * 1024 * 1024
MESSAGE_SHOWN_RATIO = 12
MESSAGE_JSON_FREE = 16 * 1024 * 1024
MESSAGE_JSON_RATIO = 9
