"""Limits that several packages share, or that docs/security.md promises, each with its reason.

A limit with one user stands beside it; `records.limits` has those of batches.
"""

from __future__ import annotations

# socket.request.max.bytes of a Kafka broker: a longer frame is refused by every real server.
FRAME_SIZE_MAX = 100 * 1024 * 1024

# Looking for the next whole batch after a damaged one computes CRCs of candidates; at most this
# many bytes for each byte of the buffer, so that planted headers cannot make it quadratic.
RESUME_BYTES_RATIO = 8

# A Python object costs 50 to 150 bytes while the smallest struct on the wire takes two. Arrays of
# such small structs may hold ELEMENT_FREE_COUNT elements plus one for each ELEMENT_BYTES_MIN
# bytes of the message, so that a hostile frame cannot occupy a large multiple of its own size.
ELEMENT_BYTES_MIN = 8
ELEMENT_FREE_COUNT = 10_000

# A message in a record, or in a field of another message, may take this much memory once it is
# decoded, plus this many times its length. What Kafka and its clients write takes far less.
INNER_DECODED_FREE = 4 * 1024 * 1024
INNER_DECODED_RATIO = 2

# Files are read through a window this long: few system calls, and little memory for many files.
FILE_WINDOW_BYTES = 1024 * 1024

# A compressed file or a pipe is copied to disk before it is decoded, up to this size: twice the
# largest segment that Kafka can write (positions are signed 32-bit integers).
UNPACKED_FILE_BYTES_MAX = 4 * 1024 * 1024 * 1024

# A finding shows this much of the bytes it is about.
FINDING_HEX_BYTES = 64

# In damaged bytes, a header that announces a batch longer than this is believed only if another
# header follows the batch: checking the CRC of every long candidate would take time without bound.
RESYNC_BATCH_BYTES_MAX = 1024 * 1024

# State files are read whole. The largest real one lists every partition of a broker: about 60
# bytes for each, so this allows a million of them.
STATE_FILE_BYTES_MAX = 64 * 1024 * 1024

# A header in a file that announces a longer batch is damaged. Kafka itself sets no bound, but by
# default no broker receives a batch in a frame longer than FRAME_SIZE_MAX.
BATCH_SIZE_MAX = 256 * 1024 * 1024

# Lines are read in pieces of this size; nearly every line is one piece.
LINE_READ_BYTES = 64 * 1024

# A longer line of `kraftwire decode --input hex` is skipped. The largest frame has this size with
# colons between its bytes, and leaves room for a comment.
HEX_LINE_BYTES_MAX = 3 * FRAME_SIZE_MAX + 64 * 1024

# The leading fields of a frame with missing bytes are read as if zeros followed, at most this many:
# enough to stand for the rest of an array of a thousand partitions.
PARTIAL_BYTES_MAX = 64 * 1024

# Captures are read in pieces of this size: large enough that the calls cost nothing, small enough
# to stay in the processor's cache until the last packet of the piece is decoded.
CAPTURE_READ_BYTES = 256 * 1024

# A reader that follows a growing segment remembers this many batches, to find its place again
# when the log is truncated. After a truncation below them all, it reads from the segment's start.
FOLLOWED_BATCHES_KEPT = 65_536

# How many groups, connections and unanswered requests a decoder remembers, of each kind: a broker
# has a few thousand connections, and a request waits for minutes at most.
CLUES_MAX = 100_000

# Clusters of one capture whose histories are shown separately.
RAFT_CLUSTER_COUNT_MAX = 64

# The Raft timeline keeps this many events of each kind and counts the rest: a quorum that votes all
# day without result must not fill memory, and nobody reads that far.
RAFT_EVENT_COUNT_MAX = 20_000

# The Raft timeline quotes this many records of the metadata log and counts the rest.
RAFT_HIGHLIGHT_COUNT_MAX = 2_000

# Topics whose names and sizes the Raft timeline keeps; a cluster is designed for fewer.
RAFT_TOPIC_COUNT_MAX = 200_000

# Unanswered requests that the Raft timeline keeps, to report what a silent node left unanswered.
RAFT_PENDING_COUNT_MAX = 10_000

# A longer packet or block means that the capture file is damaged: tools capture at most 256 KiB
# of a packet, and the name and secret blocks of pcapng are far shorter than this.
PACKET_BYTES_MAX = 16 * 1024 * 1024

# Fragmented IP packets that are reassembled at a time; each holds at most 64 KiB.
FRAGMENTED_PACKETS_MAX = 64

# Connections in a capture are followed up to this number; beyond it the one that was opened first
# is dropped, so that a port scan cannot fill memory. Closed ones are remembered for a while,
# because late copies of their packets must not look like new connections.
CONNECTIONS_MAX = 20_000
CLOSED_CONNECTIONS_MAX = 1024

# Requests that wait for their responses, per connection. Clients allow 5 in flight by default; in
# a capture of one direction only, responses never come.
PENDING_REQUESTS_MAX = 10_000

# Responses that wait for their requests, per connection: captures may show a response before its
# request, and a gap in the requests keeps those after it waiting.
PARKED_RESPONSES_MAX = 256
PARKED_PACKETS_MAX = 64
PARKED_BYTES_MAX = 4 * 1024 * 1024

# During a search for frames, this much of a direction is kept. A frame that is recognised by its
# own first bytes alone may not be longer than UNCONFIRMED_FRAME_SIZE_MAX: a larger wrong length
# would swallow too many good frames.
SEARCH_BYTES_MAX = 2 * 1024 * 1024
UNCONFIRMED_FRAME_SIZE_MAX = 1024 * 1024

# A connection that was open before the capture began and shows no frame in this many bytes of a
# direction is not considered Kafka.
RECOGNITION_BYTES_MAX = 4 * 1024 * 1024

# Unfinished frames of all connections together may take this much; of a frame beyond that only the
# first packet is kept, so that a capture with many slow large responses fits into memory. Frames
# shorter than COUNTED_FRAME_SIZE_MIN are not counted: the number of connections bounds them.
BUFFERED_BYTES_MAX = 128 * 1024 * 1024
COUNTED_FRAME_SIZE_MIN = 32 * 1024

# Encrypted connections are listed one by one up to this number; the rest are only counted.
TLS_CONNECTIONS_LISTED = 1000

# Requests without a response that lines and statistics remember, a few hundred bytes each.
RENDER_PENDING_COUNT_MAX = 20_000

# After a reset, or after both ends have closed while bytes are still missing, a connection is
# followed for this much longer, because captures may show its last data too late.
LINGER_PACKETS = 16
LINGER_NS = 1_000_000_000

# Connections with missing bytes are checked again after this much time without a packet.
REVIEW_NS = 1_000_000_000

# Requests that each connection of the tables holds back until their responses come.
RENDER_PENDING_BYTES_MAX = 64 * 1024 * 1024

# Statistics have at most this many rows of each kind; clients or files beyond that share one. A
# row with its histograms takes about 2 KB.
STATS_ROWS_MAX = 20_000

# Kafka's serializer writes no longer string, and its reader accepts none, not even a compact one.
STRING_SIZE_MAX = 0x7FFF

# A section of tagged fields may hold this many beyond one for each eight bytes left: an entry of a
# dict costs far more than the two bytes that a tag may take.
TAGS_FREE_COUNT = 64

# Longer requests are refused: decoding one with small elements blocks everything else, half a
# second for this many bytes, and no honest one is nearly as long. Producers, which this node
# refuses anyway, send at most one MiB and a header by default.
REQUEST_SIZE_MAX = 2 * 1024 * 1024

# A request with more elements than that, whatever they are, is refused: the answer to each costs
# some microseconds, and clusters of the largest size name fewer topics, partitions and directories
# in one request to a controller.
REQUEST_ELEMENTS_MAX = 10_000

# What all connections of a node hold together: requests that are incomplete or unanswered, and
# answers that the peer has not read. Beyond it the connections that have held bytes for longest are
# closed.
CONNECTION_BYTES_MAX = 256 * 1024 * 1024

# File descriptors that accepted connections may not use: they are for the log, its snapshots, and
# connections to other nodes.
DESCRIPTORS_RESERVED = 256

# A Fetch is answered with at most this much, however much it asks for, or with one whole batch:
# some milliseconds of work that block everything else. Kafka's fetch.max.bytes would let a node
# hold 55 MiB for every client, its replicas ask for 8 MiB, and a peer may ask for 2 GiB.
FETCH_BYTES_MAX = 2 * 1024 * 1024

# A parked Fetch is answered after this long, whatever it asks for: replicas ask for half a second,
# and a peer that asks for days would keep its place among PARKED_FETCHES_MAX.
FETCH_WAIT_MAX_MS = 30_000
