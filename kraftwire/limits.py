"""Limits that several packages share, or that docs/security.md promises, each with its reason.

A limit with one user stands beside it; `records.limits` has those of batches.
"""

from __future__ import annotations

# socket.request.max.bytes of a Kafka broker: a longer frame is refused by every real server.
FRAME_SIZE_MAX = 100 * 1024 * 1024

# A Python object costs 50 to 150 bytes while the smallest struct on the wire takes two. Arrays of
# such small structs may hold ELEMENT_FREE_COUNT elements plus one for each ELEMENT_BYTES_MIN
# bytes of the message, so that a hostile frame cannot occupy a large multiple of its own size.
ELEMENT_BYTES_MIN = 8
ELEMENT_FREE_COUNT = 10_000

# Files are read through a window this long: few system calls, and little memory for many files.
FILE_WINDOW_BYTES = 1024 * 1024

# A finding shows this much of the bytes it is about.
FINDING_HEX_BYTES = 64

# State files are read whole. The largest real one lists every partition of a broker: about 60
# bytes for each, so this allows a million of them.
STATE_FILE_BYTES_MAX = 64 * 1024 * 1024

# A header in a file that announces a longer batch is damaged. Kafka itself sets no bound, but by
# default no broker receives a batch in a frame longer than FRAME_SIZE_MAX.
BATCH_SIZE_MAX = 256 * 1024 * 1024

# Captures are read in pieces of this size: large enough that the calls cost nothing, small enough
# to stay in the processor's cache until the last packet of the piece is decoded.
CAPTURE_READ_BYTES = 256 * 1024

# How many groups and connections a decoder remembers, of each kind: as many connections as are
# followed. A broker has a few thousand.
CONTEXTS_MAX = 20_000

# The Raft timeline keeps this many events of each kind and counts the rest: a quorum that votes all
# day without result must not fill memory, and nobody reads that far.
RAFT_EVENT_COUNT_MAX = 20_000

# Unanswered requests that the Raft timeline keeps, to report what a silent node left unanswered.
RAFT_PENDING_COUNT_MAX = 10_000

# A longer packet or block means that the capture file is damaged: tools capture at most 256 KiB
# of a packet, and the name and secret blocks of pcapng are far shorter than this.
PACKET_BYTES_MAX = 16 * 1024 * 1024

# During a search for frames, this much of a direction is kept. A frame that is recognised by its
# own first bytes alone may not be longer than UNCONFIRMED_FRAME_SIZE_MAX: a larger wrong length
# would swallow too many good frames.
SEARCH_BYTES_MAX = 2 * 1024 * 1024
UNCONFIRMED_FRAME_SIZE_MAX = 1024 * 1024

# Unfinished frames of all connections together may take this much; of a frame beyond that only the
# first packet is kept, so that a capture with many slow large responses fits into memory. Frames
# shorter than COUNTED_FRAME_SIZE_MIN are not counted: the number of connections bounds them.
BUFFERED_BYTES_MAX = 128 * 1024 * 1024
COUNTED_FRAME_SIZE_MIN = 32 * 1024

# The memory that a connection of a capture counts for in its budget, and each piece of bytes
# that it holds.
CONNECTION_OBJECT_BYTES = 4 * 1024
PIECE_OBJECT_BYTES = 300

# Requests without a response that lines and statistics remember, up to a kilobyte each, and those
# that explain a response. A broker has a few thousand connections, with one request in flight on
# most of them.
RENDER_PENDING_COUNT_MAX = 5_000

# Statistics have at most this many rows for partitions, and remember this many connections; files
# beyond that share a row.
STATS_ROWS_MAX = 20_000

# Statistics have at most this many rows for the APIs of clients; clients beyond that share one for
# each API. A row with its histograms takes 4 KB, printed, and one of a client id of many wide
# characters 6 KB.
STATS_CLIENT_ROWS_MAX = 5_000

# Kafka's serializer writes no longer string, and its reader accepts none, not even a compact one.
STRING_SIZE_MAX = 0x7FFF

# A section of tagged fields may hold this many beyond one for each eight bytes left: an entry of a
# dict costs far more than the two bytes that a tag may take.
TAGS_FREE_COUNT = 64

# Longer requests are refused: decoding one with small elements blocks everything else, half a
# second for this many bytes, and no honest one is nearly as long. Producers, which this node
# refuses anyway, send at most one MiB and a header by default.
REQUEST_SIZE_MAX = 2 * 1024 * 1024

# A request with more elements, of any kind, is refused: the answer to each costs
# some microseconds, and clusters of the largest size name fewer topics, partitions and directories
# in one request to a controller.
REQUEST_ELEMENTS_MAX = 10_000

# The bytes of all connections of a node together: requests that are incomplete or unanswered, and
# answers that the peer has not read. Beyond it the connections that have held bytes for longest are
# closed.
CONNECTION_BYTES_MAX = 256 * 1024 * 1024

# File descriptors that accepted connections may not use: they are for the log, its snapshots, and
# connections to other nodes.
DESCRIPTORS_RESERVED = 256

# A Fetch is answered with at most this much, or with one whole batch: some milliseconds of work
# that block everything else. Kafka's fetch.max.bytes would let a node hold 55 MiB for every client,
# its replicas request 8 MiB, and a peer may request 2 GiB.
FETCH_BYTES_MAX = 2 * 1024 * 1024

# A parked Fetch is answered after this long at most: replicas request half a second, and a peer
# that requests days would keep its place among PARKED_FETCHES_MAX.
FETCH_WAIT_MAX_MS = 30_000
