"""Limits of the decoder alone, each with its reason; `kraftwire/limits.py` has the others."""

from __future__ import annotations

__all__ = [
    "ANNOTATIONS_MAX",
    "CAPTURE_HELD_BYTES_MAX",
    "CAPTURE_HELD_FREE",
    "CAPTURE_HELD_RATIO",
    "CONNECTION_OBJECT_BYTES",
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
    "PENDING_REQUESTS_KEPT",
    "PIECE_OBJECT_BYTES",
    "RELIEVED_BYTES_MIN",
    "SHED_FRAME_BYTES",
    "SHOWN_BYTES_FREE",
    "SHOWN_BYTES_RATIO",
    "STORY_EVENTS_MAX",
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

# The JSON form of records is made at once for so many of a frame or a batch of a file, and one more
# for so many bytes of it; further ones are made one by one when they are written. A record is a few
# hundred bytes to a thousand in this form.
JSON_ROWS_FREE = 8 * 1024
JSON_ROW_BYTES_MIN = 256

# What a frame may take once it is JSON, a tree, or bytes by field: so much, and so many times its
# length, by an estimate. Of one that would take more, and of one that stops somewhere, the first
# ANNOTATIONS_MAX fields are taken apart, half a kilobyte each.
SHOWN_BYTES_FREE = 24 * 1024 * 1024
SHOWN_BYTES_RATIO = 4
ANNOTATIONS_MAX = 40_000

# A batch of a compressed file, or a state file that is compressed, may have PACKED_BATCH_FREE bytes
# and PACKED_BATCH_RATIO more for each byte of the compressed file: they are read whole, and a few
# bytes can claim to be any length. No batch of the quorum has more than 8 MiB.
PACKED_BATCH_FREE = 8 * 1024 * 1024
PACKED_BATCH_RATIO = 2

# All that the connections of a capture hold together: bytes after holes, unfinished frames, bytes
# that are searched, responses and requests that wait, and the connections themselves. It is
# CAPTURE_HELD_FREE and CAPTURE_HELD_RATIO for each byte of the capture so far, packed if it is
# packed, but never more than CAPTURE_HELD_BYTES_MAX. A capture that is not packed hardly ever gets
# there. A connection counts for so many bytes itself, and so does a piece that it holds.
CAPTURE_HELD_FREE = 20 * 1024 * 1024
CAPTURE_HELD_RATIO = 4
CAPTURE_HELD_BYTES_MAX = 256 * 1024 * 1024
CONNECTION_OBJECT_BYTES = 8 * 1024
PIECE_OBJECT_BYTES = 300

# Connections that hold less than this, themselves included, give way last, and as a whole.
RELIEVED_BYTES_MIN = 16 * 1024

# What is kept of an unfinished frame that gave way: its header, and the first fields.
SHED_FRAME_BYTES = 1024

# Requests that a connection goes on waiting for when it had to give up the rest.
PENDING_REQUESTS_KEPT = 16

# The dictionary of an xz file, or the window of a zstd file, may have WINDOW_BYTES_FREE: xz -6 and
# zstd -19 take 8 MiB. A larger one, up to what xz -9 takes, is filled as far as the file was
# unpacked, which may be WINDOW_BYTES_FREE and WINDOW_BYTES_RATIO for each of its bytes.
WINDOW_BYTES_FREE = 16 * 1024 * 1024
WINDOW_BYTES_RATIO = 6
WINDOW_BYTES_MAX = 64 * 1024 * 1024
ZSTD_WINDOW_MAX = 128 * 1024 * 1024

# Bytes behind a hole in a TCP stream are held until the hole is filled, or hopeless: this many
# packets of the connection after a sign that the receiver has the bytes (captures confuse the
# order of packets by a few only), or when so many bytes are held, or after so much time. Where the
# receiver is seen asking for the bytes they will be sent again, so there is reason to wait longer:
# for the largest usual window, and for some doublings of the retransmission timer.
HOLE_PACKETS = 16
HELD_BYTES_MAX = 1024 * 1024
HELD_BYTES_WAITING_MAX = 16 * 1024 * 1024
HOLE_WAIT_NS = 3_000_000_000
HOLE_WAIT_RETRANSMISSION_NS = 30_000_000_000

# Stories of groups, transactions and topics keep this many events and count the rest. An event with
# its texts takes up to a kilobyte.
STORY_EVENTS_MAX = 20_000

# Groups, their members and the partitions that they commit, each over all of a story; more are
# counted, not kept. A member takes about a kilobyte. Beyond the generations that are kept, a group
# gives up its first one for each new one.
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
