"""Limits of the decoder alone, each with its reason; `kraftwire/limits.py` has the others."""

from __future__ import annotations

__all__ = [
    "ANNOTATIONS_MAX",
    "CAPTURE_HELD_BYTES_MAX",
    "CAPTURE_HELD_FREE",
    "CAPTURE_HELD_RATIO",
    "COMPARED_BYTES_FREE",
    "COMPARED_BYTES_RATIO",
    "COMPARED_PROBLEMS_MAX",
    "CONNECTION_OBJECT_BYTES",
    "DECODED_BYTES_FREE",
    "DECODED_BYTES_RATIO",
    "DECODED_PACKED_FREE",
    "GROUPS_MAX",
    "GROUP_GENERATIONS_MAX",
    "GROUP_MEMBERS_MAX",
    "GROUP_OFFSETS_MAX",
    "HELD_BYTES_MAX",
    "HELD_BYTES_WAITING_MAX",
    "HOLE_PACKETS",
    "HOLE_WAIT_NS",
    "HOLE_WAIT_RETRANSMISSION_NS",
    "JSON_ROWS_FREE",
    "JSON_ROW_BYTES_MIN",
    "PACKED_BATCH_FREE",
    "PACKED_BATCH_RATIO",
    "PACKED_FRAME_FREE",
    "PACKED_FRAME_RATIO",
    "PENDING_BYTES_MAX",
    "PENDING_REQUESTS_KEPT",
    "PIECE_OBJECT_BYTES",
    "RELIEVED_BYTES_MIN",
    "SHED_FRAME_BYTES",
    "SHOWN_BYTES_FREE",
    "SHOWN_BYTES_RATIO",
    "SHOWN_TEXT_RATIO",
    "STORY_EVENTS_MAX",
    "TAKEN_APART_BYTES_MAX",
    "TOPICS_MAX",
    "TOPIC_CLIENTS_MAX",
    "TOPIC_PARTITIONS_MAX",
    "TRANSACTIONAL_IDS_MAX",
    "TRANSACTIONS_MAX",
    "TRANSACTION_PARTITIONS_MAX",
    "WINDOW_BYTES_FREE",
    "WINDOW_BYTES_MAX",
    "WINDOW_BYTES_RATIO",
    "ZSTD_WINDOW_MAX",
]

# How many records of a frame, or of a batch of a file, get their JSON form at once: JSON_ROWS_FREE,
# and one more for each JSON_ROW_BYTES_MIN bytes of it. Further records get theirs one by one when
# they are written. In this form a record takes a few hundred bytes to a thousand.
JSON_ROWS_FREE = 8 * 1024
JSON_ROW_BYTES_MIN = 256

# What a decoded message may take: DECODED_BYTES_FREE, and DECODED_BYTES_RATIO times its length.
# Metadata of 75,000 partitions take fourteen times their 3 MiB, and are within that; few messages
# are denser. A message that is longer than its compressed capture may take DECODED_PACKED_FREE, and
# as many times the length of the capture.
DECODED_BYTES_FREE = 26 * 1024 * 1024
DECODED_BYTES_RATIO = 6
DECODED_PACKED_FREE = 18 * 1024 * 1024

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

# A batch of a compressed file, or a state file that is compressed, may have PACKED_BATCH_FREE bytes
# and PACKED_BATCH_RATIO more for each byte of the compressed file: they are read whole, and a few
# bytes can claim to be any length. No batch of the quorum has more than 8 MiB.
PACKED_BATCH_FREE = 8 * 1024 * 1024
PACKED_BATCH_RATIO = 2

# A frame in a compressed capture may have PACKED_FRAME_FREE bytes and PACKED_FRAME_RATIO more for
# each byte of the compressed file, or of what a pipe has delivered so far. Of a longer frame only
# the first packet is kept.
PACKED_FRAME_FREE = 3 * 1024 * 1024
PACKED_FRAME_RATIO = 1

# All that the connections of a capture hold together: bytes after holes, unfinished frames, bytes
# that are searched, responses and requests that wait, and the connections themselves. It may be
# CAPTURE_HELD_FREE, and CAPTURE_HELD_RATIO for each byte read so far (compressed, if the capture
# is), but never more than CAPTURE_HELD_BYTES_MAX. Uncompressed captures rarely reach that. A
# connection itself counts as CONNECTION_OBJECT_BYTES, and each piece that it holds as
# PIECE_OBJECT_BYTES.
CAPTURE_HELD_FREE = 20 * 1024 * 1024
CAPTURE_HELD_RATIO = 4
CAPTURE_HELD_BYTES_MAX = 256 * 1024 * 1024
CONNECTION_OBJECT_BYTES = 8 * 1024
PIECE_OBJECT_BYTES = 300

# Connections that hold less than this, themselves included, are dropped last, and as a whole.
RELIEVED_BYTES_MIN = 16 * 1024

# The bytes that are kept of an unfinished frame that was given up: header and first fields.
SHED_FRAME_BYTES = 1024

# Requests that outputs hold back until their responses come; those of stories keep their decoded
# objects. Above the limit the oldest are shown alone.
PENDING_BYTES_MAX = 16 * 1024 * 1024

# Requests that a connection keeps waiting for after it had to give up the rest.
PENDING_REQUESTS_KEPT = 16

# What is kept of the frames of a capture that is compared with another one: COMPARED_BYTES_FREE,
# and COMPARED_BYTES_RATIO for each byte of its file. COMPARED_PROBLEMS_MAX problems are kept, and
# the rest counted.
COMPARED_BYTES_FREE = 12 * 1024 * 1024
COMPARED_BYTES_RATIO = 4
COMPARED_PROBLEMS_MAX = 20

# The dictionary of an xz file, or the window of a zstd file, may have WINDOW_BYTES_FREE: xz -6 and
# zstd -19 take 8 MiB. A larger one, up to what xz -9 takes, is filled as far as the file was
# unpacked, which may be WINDOW_BYTES_FREE and WINDOW_BYTES_RATIO for each of its bytes.
WINDOW_BYTES_FREE = 16 * 1024 * 1024
WINDOW_BYTES_RATIO = 6
WINDOW_BYTES_MAX = 64 * 1024 * 1024
ZSTD_WINDOW_MAX = 128 * 1024 * 1024

# Bytes after a hole in a TCP stream are held until the hole is filled or hopeless. It is hopeless
# HOLE_PACKETS packets after a sign that the receiver has the bytes (captures confuse the order of
# packets by a few only), or when HELD_BYTES_MAX are held, or after HOLE_WAIT_NS. Where the receiver
# is seen asking for the bytes, they will be sent again, so the wait is longer: for the largest
# usual window, and for some doublings of the retransmission timer.
HOLE_PACKETS = 16
HELD_BYTES_MAX = 1024 * 1024
HELD_BYTES_WAITING_MAX = 16 * 1024 * 1024
HOLE_WAIT_NS = 3_000_000_000
HOLE_WAIT_RETRANSMISSION_NS = 30_000_000_000

# Stories of groups, transactions and topics keep this many events and count the rest. An event with
# its texts takes up to a kilobyte.
STORY_EVENTS_MAX = 20_000

# Groups, their members and the partitions that they commit, each over all of a story; the rest is
# only counted. A member takes about a kilobyte. Above the limit of generations, a group drops its
# first one for each new one.
GROUPS_MAX = 5_000
GROUP_MEMBERS_MAX = 20_000
GROUP_OFFSETS_MAX = 100_000
GROUP_GENERATIONS_MAX = 20_000

# Transactional ids and producers, the transactions that are listed, and the partitions of these.
TRANSACTIONAL_IDS_MAX = 20_000
TRANSACTIONS_MAX = 50_000
TRANSACTION_PARTITIONS_MAX = 200_000

# Topics, their partitions, and the clients of each; further clients share one row.
TOPICS_MAX = 20_000
TOPIC_PARTITIONS_MAX = 200_000
TOPIC_CLIENTS_MAX = 20
