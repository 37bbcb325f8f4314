"""Every limit in one place, each with its reason; how requests take turns is in `node.limits`."""

from __future__ import annotations

__all__ = [
    "BATCH_SIZE_MAX",
    "BUFFERED_BYTES_MAX",
    "CAPTURE_READ_BYTES",
    "CLOCK_LEAD_MAX_MS",
    "CLOSED_CONNECTIONS_MAX",
    "CLUES_MAX",
    "CONNECTIONS_MAX",
    "CONNECTION_BYTES_MAX",
    "CONTROLLER_QUEUE_MAX",
    "COUNTED_FRAME_SIZE_MIN",
    "DECODED_FACTOR",
    "DECODE_INLINE_BYTES",
    "DELIVERY_BYTES",
    "DESCRIPTORS_RESERVED",
    "ELEMENT_BYTES_MIN",
    "ELEMENT_FREE_COUNT",
    "EPOCH_ALLOWANCE",
    "EPOCH_ALLOWANCE_MS",
    "EPOCH_JUMP_OF_OTHERS_MAX",
    "EPOCH_MAX",
    "EVENTS_PER_TURN",
    "EVICTED_BYTES_MIN",
    "FETCH_BYTES_MAX",
    "FETCH_WAIT_MAX_MS",
    "FILE_WINDOW_BYTES",
    "FINDING_HEX_BYTES",
    "FLUSH_INLINE_SECONDS",
    "FOLLOWED_BATCHES_KEPT",
    "FORWARDS_AT_ONCE_MAX",
    "FRAGMENTED_PACKETS_MAX",
    "FRAME_SIZE_MAX",
    "HEX_LINE_BYTES_MAX",
    "HTTP_REQUEST_SIZE_MAX",
    "LINE_READ_BYTES",
    "LINGER_NS",
    "LINGER_PACKETS",
    "LOG_SCAN_BYTES",
    "MESSAGE_LINE_BYTES_MAX",
    "METADATA_BATCH_BYTES_MAX",
    "METRICS_CONNECTIONS_MAX",
    "OBSERVERS_MAX",
    "OPEN_CONNECTION_BYTES",
    "OPEN_REQUEST_BYTES",
    "PACKET_BYTES_MAX",
    "PARKED_BYTES_MAX",
    "PARKED_FETCHES_MAX",
    "PARKED_PACKETS_MAX",
    "PARKED_RESPONSES_MAX",
    "PARKED_WOKEN_MAX",
    "PARTIAL_BYTES_MAX",
    "PEERS_MAX",
    "PEER_QUEUE_MAX",
    "PENDING_REQUESTS_MAX",
    "PERF_APPEND_BYTES",
    "PERF_IN_FLIGHT_BYTES",
    "RAFT_CLUSTER_COUNT_MAX",
    "RAFT_EVENT_COUNT_MAX",
    "RAFT_HIGHLIGHT_COUNT_MAX",
    "RAFT_PENDING_COUNT_MAX",
    "RAFT_TOPIC_COUNT_MAX",
    "RECOGNITION_BYTES_MAX",
    "RECORDS_CHUNK_COUNT",
    "RECORDS_COUNT_FREE",
    "RECORDS_COUNT_RATIO_MAX",
    "RECORDS_RATIO_MAX",
    "RECORDS_SIZE_FREE",
    "RECORDS_SIZE_MAX",
    "RECORD_PROBLEMS_MAX",
    "RENDER_PENDING_BYTES_MAX",
    "RENDER_PENDING_COUNT_MAX",
    "REQUEST_ELEMENTS_MAX",
    "REQUEST_SIZE_MAX",
    "RESUME_BYTES_RATIO",
    "RESYNC_BATCH_BYTES_MAX",
    "REVIEW_NS",
    "SCAN_READ_BYTES",
    "SEARCH_BYTES_MAX",
    "SNAPSHOT_CHUNK_BYTES_MAX",
    "SNAPSHOT_CLAIMS_MAX",
    "SNAPSHOT_WRITE_BYTES",
    "SOFTWARE_NAME_SIZE_MAX",
    "STATE_FILE_BYTES_MAX",
    "STATS_ROWS_MAX",
    "STRING_SIZE_MAX",
    "TAGS_FREE_COUNT",
    "TLS_CONNECTIONS_LISTED",
    "UNCONFIRMED_FRAME_SIZE_MAX",
    "UNPACKED_FILE_BYTES_MAX",
    "WAITING_BATCHES_MAX",
]

# socket.request.max.bytes of a Kafka broker: a longer frame is refused by every real server.
FRAME_SIZE_MAX = 100 * 1024 * 1024

# One batch may not expand beyond this when decompressed. Kafka has no such limit; a batch is at
# most message.max.bytes (1 MiB by default) on the wire, and honest data shrinks far less than
# this allows.
RECORDS_SIZE_MAX = 256 * 1024 * 1024

# Below that, a batch may expand to RECORDS_SIZE_FREE and RECORDS_RATIO_MAX bytes more for each of
# its own: a producer's batch and a snapshot's hold at most a few MiB, however tightly they are
# packed, and longer ones shrink less. A tool that holds one such batch stays below 64 MiB and
# eight times its input.
RECORDS_SIZE_FREE = 16 * 1024 * 1024
RECORDS_RATIO_MAX = 8

# A compressed batch may hold RECORDS_COUNT_FREE records and RECORDS_COUNT_RATIO_MAX more for each
# of its bytes. Records of a real batch differ at least in their offsets, which no codec packs into
# less than a byte or two; seven bytes repeated by the million are a bomb.
RECORDS_COUNT_FREE = 64 * 1024
RECORDS_COUNT_RATIO_MAX = 2

# Reasons that are kept of why records of one batch cannot be decoded; the rest are counted.
RECORD_PROBLEMS_MAX = 1000

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

# `kraftwire message` refuses a longer line, and skips it without keeping it: the largest frame has
# twice its size in hex digits, less in base64, and a mebibyte is enough for the other keys.
MESSAGE_LINE_BYTES_MAX = 2 * FRAME_SIZE_MAX + 1024 * 1024

# Lines are read in pieces of this size: nearly all of them are one piece.
LINE_READ_BYTES = 64 * 1024

# A longer line of `kraftwire decode --input hex` is passed over: the largest frame has this size
# with colons between its bytes, and room for a comment.
HEX_LINE_BYTES_MAX = 3 * FRAME_SIZE_MAX + 64 * 1024

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

# Clusters of one capture that get a story of their own.
RAFT_CLUSTER_COUNT_MAX = 64

# The Raft timeline keeps this many events of each kind and counts the rest: a quorum that votes all
# day without result must not fill the memory, and nobody reads that far.
RAFT_EVENT_COUNT_MAX = 20_000

# Of the metadata log it quotes this many records and counts the rest.
RAFT_HIGHLIGHT_COUNT_MAX = 2_000

# Topics whose names and sizes it keeps; a cluster is designed for fewer.
RAFT_TOPIC_COUNT_MAX = 200_000

# Requests without an answer that it keeps, to tell what a silent node left open.
RAFT_PENDING_COUNT_MAX = 10_000

# A longer packet or block means that the capture file is damaged: tools capture at most 256 KiB
# of a packet, and the name and secret blocks of pcapng are far shorter than this.
PACKET_BYTES_MAX = 16 * 1024 * 1024

# IP packets in pieces that are being put together at a time; each holds at most 64 KiB.
FRAGMENTED_PACKETS_MAX = 64

# Connections in a capture are followed up to this number; beyond it the one that was opened first
# is given up, so that a scan of ports cannot fill memory. Closed ones are remembered for a while,
# because late copies of their packets must not look like new connections.
CONNECTIONS_MAX = 20_000
CLOSED_CONNECTIONS_MAX = 1024

# Requests that wait for their responses, per connection. Clients allow 5 in flight by default;
# where a capture holds one direction only, responses never come.
PENDING_REQUESTS_MAX = 10_000

# Responses that wait for their requests, per connection: captures may show a response before its
# request, and a hole in the requests keeps those behind it waiting.
PARKED_RESPONSES_MAX = 256
PARKED_PACKETS_MAX = 64
PARKED_BYTES_MAX = 4 * 1024 * 1024

# While frames are searched for, this much of a direction is kept. A frame that is recognised by
# its own first bytes alone may not be longer than UNCONFIRMED_FRAME_SIZE_MAX: a wrong length
# above that would swallow too much that is right.
SEARCH_BYTES_MAX = 2 * 1024 * 1024
UNCONFIRMED_FRAME_SIZE_MAX = 1024 * 1024

# A connection that was open before the capture began and shows no frame in this many bytes of a
# direction is taken for something else than Kafka.
RECOGNITION_BYTES_MAX = 4 * 1024 * 1024

# Unfinished frames of all connections together may take this much; of a frame beyond that only the
# first packet is kept, so that a capture with many slow large responses fits into memory. Shorter
# frames than COUNTED_FRAME_SIZE_MIN are not counted: they are many, and the connections bound them.
BUFFERED_BYTES_MAX = 128 * 1024 * 1024
COUNTED_FRAME_SIZE_MIN = 32 * 1024

# Encrypted connections are listed one by one up to this number, beyond it counted only.
TLS_CONNECTIONS_LISTED = 1000

# Requests without a response that lines and statistics keep something of, a few hundred bytes each.
RENDER_PENDING_COUNT_MAX = 20_000

# After a reset, or when both ends are done while something is open, a connection is followed for
# this much longer, because captures may show its last data too late.
LINGER_PACKETS = 16
LINGER_NS = 1_000_000_000

# Connections with something open are looked at again after so much time without a packet.
REVIEW_NS = 1_000_000_000

# Requests that the tree and the byte view, and each connection of the tables, hold back until their
# responses come.
RENDER_PENDING_BYTES_MAX = 64 * 1024 * 1024

# Statistics have at most so many rows of each kind; beyond that clients or files share one. A row
# with its histograms takes about 2 KB.
STATS_ROWS_MAX = 20_000

# Kafka's serializer writes no longer string, and its reader takes none, in compact form either.
STRING_SIZE_MAX = 0x7FFF

# A section of tagged fields may hold this many beyond one for each eight bytes left: an entry of a
# dict costs far more than the two bytes that a tag may take.
TAGS_FREE_COUNT = 64

# Complete batches that a leader holds unwritten before it refuses appends: Kafka's number.
WAITING_BATCHES_MAX = 10

# A leader that names a snapshot so often, and sends nothing of one in between, is not taken for
# alive any more. An honest one may delete what it named while it is fetched, once or twice.
SNAPSHOT_CLAIMS_MAX = 3

# What a leader sends of a snapshot at a time, however much a peer asks for.
SNAPSHOT_CHUNK_BYTES_MAX = 1024 * 1024

# Fetches that a leader holds back until there is something to tell. Every voter and observer has
# one; a peer that keeps opening connections must not make it hold more.
PARKED_FETCHES_MAX = 4096

# Of those that are not voters' so many are answered in one step, some milliseconds of work.
PARKED_WOKEN_MAX = 32

# A log segment is checked in parts of this size when it is opened; a longer batch is read whole.
LOG_SCAN_BYTES = 4 * 1024 * 1024

# Kafka's quorum writes no larger batch than 8 MiB; the search for good batches behind damage
# looks at parts of a segment that overlap by as much.
METADATA_BATCH_BYTES_MAX = 8 * 1024 * 1024

# A state machine is handed this much of the log at a time, so that reading a long log from its
# start does not keep the Raft core waiting: about ten milliseconds of work.
DELIVERY_BYTES = 256 * 1024

# The values of a snapshot are written in pieces of this size: after each the writer looks whether
# the node is being stopped.
SNAPSHOT_WRITE_BYTES = 256 * 1024

# Records of a leader whose clock is further ahead than this do not push on the time of later ones.
CLOCK_LEAD_MAX_MS = 3_600_000

# The core handles so many events before other tasks get a turn.
EVENTS_PER_TURN = 256

# A disk whose flushes take less is flushed without a thread: beside a busy main thread each step
# of another one waits up to 5 ms for the interpreter's lock. Measured at 20,000 appends a second:
# twice the throughput of a thread on a disk that takes 2.7 ms.
FLUSH_INLINE_SECONDS = 0.005

# Longer requests are refused: decoding one of small elements keeps everything else waiting, half a
# second for so many bytes, and no honest one is nearly as long. Producers, which this node refuses
# anyway, send a MiB and a header by default.
REQUEST_SIZE_MAX = 2 * 1024 * 1024

# A request with more elements than that, whatever they are, is refused: the answer to each costs
# some microseconds, and clusters of the largest size name fewer topics, partitions and directories
# in one request to a controller.
REQUEST_ELEMENTS_MAX = 10_000

# What all connections of a node hold together: requests that are not whole or not answered, and
# answers that were not taken. Above it the oldest are given up, those that hold a few bytes last.
CONNECTION_BYTES_MAX = 256 * 1024 * 1024
EVICTED_BYTES_MIN = 64 * 1024

# What Python takes for an open connection, and in addition while a request of it is answered or
# waits: tasks, buffers, objects. All that may be open, idle, take half of CONNECTION_BYTES_MAX.
OPEN_CONNECTION_BYTES = 8 * 1024
OPEN_REQUEST_BYTES = 16 * 1024

# While a request is answered, it counts for so many times its length: objects are larger than the
# bytes that they were made of.
DECODED_FACTOR = 8

# File descriptors that accepted connections leave alone: for the log, its snapshots, and
# connections to other nodes.
DESCRIPTORS_RESERVED = 256

# Who asks for metrics at a time. A scraper has one connection.
METRICS_CONNECTIONS_MAX = 16

# A longer name of a client's software than that is refused: names are a word or two.
SOFTWARE_NAME_SIZE_MAX = 256

# Requests to one peer that wait for its connection. The core has one in flight; more come only
# when its requests in flight are forgotten, and then only the newest matters.
PEER_QUEUE_MAX = 16

# Replicas and addresses that the core's connections are kept for. Quorums have a handful; who leads
# and where is what others say.
PEERS_MAX = 100

# A Fetch is answered with at most this much, however much it asks for, or one whole batch: some
# milliseconds of work, in which nothing else is done. Kafka's fetch.max.bytes would let a node keep
# 55 MiB for every client, its replicas ask for 8 MiB, and a peer may ask for 2 GiB.
FETCH_BYTES_MAX = 2 * 1024 * 1024

# The committed log is searched by time in reads of this size, with other work done in between.
SCAN_READ_BYTES = 1024 * 1024

# Requests that wait for the quorum leader's answer on behalf of clients; each has a connection.
FORWARDS_AT_ONCE_MAX = 16

# Who asks the metrics endpoint for something sends less.
HTTP_REQUEST_SIZE_MAX = 8 * 1024

# Registrations and heartbeats that wait for the active controller; each is a few hundred bytes,
# and a cluster with more brokers than this has never been seen.
CONTROLLER_QUEUE_MAX = 10_000

# Observers whose progress a leader keeps. A cluster has some hundreds of brokers; a client that
# makes up replica ids pushes out whoever has not fetched for longest, which then comes back.
OBSERVERS_MAX = 4096

# A held-back Fetch is answered after this long, whatever it asks for: replicas ask for half a
# second, and a peer that asks for days would keep its place among PARKED_FETCHES_MAX.
FETCH_WAIT_MAX_MS = 30_000

# The test server's load: what one append holds at most, so that other events of the core get their
# turn, and what waits for its commit at most, so that memory is bounded where the load is not.
PERF_APPEND_BYTES = 256 * 1024
PERF_IN_FLIGHT_BYTES = 16 * 1024 * 1024

# The last leader epoch that its field on the wire and on disk can hold. No honest cluster gets
# there; after it nobody can be elected, but nobody has to die either.
EPOCH_MAX = (1 << 31) - 1

# Requests of voters may move a node's epoch so far at once, and by one more in so many
# milliseconds: a voter without pre-votes that was cut off for hours comes back so far ahead, while
# it takes years to use up all epochs. One that was away for longer is heard through its answers.
EPOCH_ALLOWANCE = 10_000
EPOCH_ALLOWANCE_MS = 100

# A replica that is not in the voter set, but may be in one that this node's log lacks, moves the
# epoch by no more: elections that failed since.
EPOCH_JUMP_OF_OTHERS_MAX = 100

# A node decodes longer requests in a thread. Those of replicas and of ordinary clients are shorter;
# one of this size takes milliseconds, or a fifth of a second if its author means harm.
DECODE_INLINE_BYTES = 64 * 1024
