"""Every limit in one place, each with its reason."""

from __future__ import annotations

__all__ = [
    "BATCH_SIZE_MAX",
    "CAPTURE_READ_BYTES",
    "CLUES_MAX",
    "ELEMENT_BYTES_MIN",
    "ELEMENT_FREE_COUNT",
    "FILE_WINDOW_BYTES",
    "FINDING_HEX_BYTES",
    "FOLLOWED_BATCHES_KEPT",
    "FRAME_SIZE_MAX",
    "GC_PAUSE_BYTES",
    "MESSAGE_LINE_BYTES_MAX",
    "PARTIAL_BYTES_MAX",
    "RECORDS_CHUNK_COUNT",
    "RECORDS_RATIO_MAX",
    "RECORDS_SIZE_FREE",
    "RECORDS_SIZE_MAX",
    "RESUME_BYTES_RATIO",
    "RESYNC_BATCH_BYTES_MAX",
    "STATE_FILE_BYTES_MAX",
    "UNPACKED_FILE_BYTES_MAX",
]

# socket.request.max.bytes of a Kafka broker: a longer frame is refused by every real server.
FRAME_SIZE_MAX = 100 * 1024 * 1024

# One batch may not expand beyond this when decompressed. Kafka has no such limit; a batch is at
# most message.max.bytes (1 MiB by default) on the wire, and honest data shrinks far less than
# this allows.
RECORDS_SIZE_MAX = 256 * 1024 * 1024

# Below that, a batch may expand to RECORDS_SIZE_FREE and RECORDS_RATIO_MAX bytes more for each of
# its own: a producer's batch and a snapshot's hold at most a few MiB, and only zstd packs zeros
# more tightly. A bomb of ten kilobytes stops after 26 MiB instead of the full size.
RECORDS_SIZE_FREE = 16 * 1024 * 1024
RECORDS_RATIO_MAX = 1024

# Iterating over a batch turns this many records at a time into objects, so that the memory of a
# batch with millions of tiny records stays near that of its bytes.
RECORDS_CHUNK_COUNT = 4096

# Looking for the next whole batch behind a damaged one computes CRCs of candidates; at most this
# many bytes for each byte of the buffer, so that planted headers cannot make it quadratic.
RESUME_BYTES_RATIO = 8

# A Python object costs 50 to 150 bytes while the smallest struct on the wire takes two. Arrays of
# such small structs may hold ELEMENT_FREE_COUNT elements plus one for each ELEMENT_BYTES_MIN
# bytes of the message, so that a hostile frame cannot occupy a large multiple of its own size.
ELEMENT_BYTES_MIN = 8
ELEMENT_FREE_COUNT = 10_000

# Decoding a message at least this long pauses cyclic garbage collection: nothing it builds is
# cyclic, and scanning half-built object trees takes longer than building them.
GC_PAUSE_BYTES = 4096

# Files are read through a window this long: few system calls, and little memory for many files.
FILE_WINDOW_BYTES = 1024 * 1024

# A compressed file or a pipe is copied to disk before it is decoded, at most this much of it:
# twice the largest segment that Kafka can write (positions are signed 32-bit integers).
UNPACKED_FILE_BYTES_MAX = 4 * 1024 * 1024 * 1024

# A finding shows this much of the bytes it is about.
FINDING_HEX_BYTES = 64

# In damaged bytes, a header that announces a batch longer than this is believed only if another
# header follows the batch: checking the CRC of every long candidate would take time without bound.
RESYNC_BATCH_BYTES_MAX = 1024 * 1024

# State files are read whole. The largest real one lists every partition of a broker: about 60
# bytes for each, so this allows a million of them.
STATE_FILE_BYTES_MAX = 64 * 1024 * 1024

# A header in a file that announces a longer batch is damaged. Kafka itself sets no bound, but no
# batch comes to a broker in a longer frame than FRAME_SIZE_MAX unless it is configured otherwise.
BATCH_SIZE_MAX = 256 * 1024 * 1024

# `kraftwire message` refuses a longer line: the largest frame has twice its size in hex digits,
# and up to a few times that as JSON.
MESSAGE_LINE_BYTES_MAX = 8 * FRAME_SIZE_MAX

# The leading fields of a frame with missing bytes are read as if zeros followed, at most so many:
# enough for the rest of an array of a thousand partitions to seem to be there.
PARTIAL_BYTES_MAX = 64 * 1024

# Captures are read in pieces of this size: large enough that the calls cost nothing, small enough
# to stay in the processor's cache until the last packet of the piece is decoded.
CAPTURE_READ_BYTES = 256 * 1024

# A reader that follows a growing segment remembers this many batches, to find its place again
# when the log is truncated. A truncation behind them is read again from the segment's start.
FOLLOWED_BATCHES_KEPT = 65_536

# What a decoder remembers of groups, connections and requests without an answer, each at most so
# many: a broker has a few thousand connections, and a request waits at most minutes.
CLUES_MAX = 100_000
