"""Limits that several modules of captures and decoding share; others are beside their users."""

from __future__ import annotations

# How many records of a frame, or of a batch of a file, get their JSON form at once: JSON_ROWS_FREE,
# and one more for each JSON_ROW_BYTES_MIN bytes of it. Further records get theirs one by one when
# they are written. In this form a record takes a few hundred bytes to a thousand.
JSON_ROWS_FREE = 8 * 1024
JSON_ROW_BYTES_MIN = 256

# What a frame may take as JSON, as a tree, or as bytes by field, by an estimate: SHOWN_BYTES_FREE,
# and SHOWN_BYTES_RATIO times its length. Of a frame that would take more, and of one that stops
# somewhere, the first ANNOTATIONS_MAX fields are taken apart, half a kilobyte each.
SHOWN_BYTES_FREE = 24 * 1024 * 1024
SHOWN_BYTES_RATIO = 4
# What each byte of a frame takes in these forms, however few values the frame has.
SHOWN_TEXT_RATIO = 10
# The first fields of a message of too many values, in a frame that is longer than its capture.
TAKEN_APART_BYTES_MAX = SHOWN_BYTES_FREE // SHOWN_TEXT_RATIO
ANNOTATIONS_MAX = 40_000

# What a connection counts for in the budget of a capture's memory, and each piece that it holds:
# see `connections.memory_budget`.
CONNECTION_OBJECT_BYTES = 8 * 1024
PIECE_OBJECT_BYTES = 300

# Requests that outputs hold back until their responses come; those of stories keep their decoded
# objects. Above the limit the oldest are shown alone.
PENDING_BYTES_MAX = 16 * 1024 * 1024

# The dictionary of an xz file, or the window of a zstd file, may have WINDOW_BYTES_FREE: xz -6 and
# zstd -19 take 8 MiB. A larger one, up to what xz -9 takes, is filled as far as the file was
# unpacked, which may be WINDOW_BYTES_FREE and WINDOW_BYTES_RATIO for each of its bytes.
WINDOW_BYTES_FREE = 16 * 1024 * 1024
WINDOW_BYTES_RATIO = 6
WINDOW_BYTES_MAX = 64 * 1024 * 1024
ZSTD_WINDOW_MAX = 128 * 1024 * 1024
