"""Every limit in one place, each with its reason."""

from __future__ import annotations

__all__ = [
    "ELEMENT_BYTES_MIN",
    "ELEMENT_FREE_COUNT",
    "FILE_WINDOW_BYTES",
    "FINDING_HEX_BYTES",
    "FRAME_SIZE_MAX",
    "GC_PAUSE_BYTES",
    "RECORDS_SIZE_MAX",
    "UNPACKED_FILE_BYTES_MAX",
]

# socket.request.max.bytes of a Kafka broker: a longer frame is refused by every real server.
FRAME_SIZE_MAX = 100 * 1024 * 1024

# One batch may not expand beyond this when decompressed. Kafka has no such limit; a batch is at
# most message.max.bytes (1 MiB by default) on the wire, and honest data shrinks far less than
# this allows.
RECORDS_SIZE_MAX = 256 * 1024 * 1024

# A Python object costs 50 to 150 bytes while the smallest struct on the wire takes two. Arrays of
# such small structs may hold ELEMENT_FREE_COUNT elements plus one for each ELEMENT_BYTES_MIN
# bytes of the message, so that a hostile frame cannot occupy a large multiple of its own size.
ELEMENT_BYTES_MIN = 8
ELEMENT_FREE_COUNT = 10_000

# Decoding a message at least this long pauses cyclic garbage collection: nothing it builds is
# cyclic, and scanning half-built object trees takes longer than building them.
GC_PAUSE_BYTES = 4096

# Files are read through a window this long: few system calls, and little memory for many files.
FILE_WINDOW_BYTES = 4 * 1024 * 1024

# A compressed file or a pipe is copied to disk before it is decoded, at most this much of it:
# twice the largest segment that Kafka can write (positions are signed 32-bit integers).
UNPACKED_FILE_BYTES_MAX = 4 * 1024 * 1024 * 1024

# A finding shows this much of the bytes it is about.
FINDING_HEX_BYTES = 64
