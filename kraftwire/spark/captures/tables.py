"""The rows of a frame: it is decoded once and added to every table that it concerns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kraftwire.capture.capture import Capture
from kraftwire.capture.connections.connection import OpenConnections
from kraftwire.capture.framing.frames import Ending, RawFrame, Request
from kraftwire.collector import rare_collection
from kraftwire.decode.body.ordinary import needs_learning, ordinary_bodies
from kraftwire.decode.sinks import PendingRequests
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.spark.captures.batches import FrameBatch, FrameRecord
from kraftwire.spark.captures.bodies import BodyReader, TableFrame
from kraftwire.spark.captures.connection_bytes import ConnectionBytes, PositionMap
from kraftwire.spark.captures.connections import CLUSTER_APIS, Connection
from kraftwire.spark.captures.exchange import TableExchange
from kraftwire.spark.captures.files import FileSums, add_connection, add_copy
from kraftwire.spark.captures.findings import bad_bytes
from kraftwire.spark.captures.quorum import GROUP_APIS, QuorumExchanges, ReplicaObserver
from kraftwire.spark.captures.recording import Recording, Span
from kraftwire.spark.captures.rows import CHUNK_ROWS, Rows, TypedRows, typed_rows
from kraftwire.spark.captures.selection import ALL, Selection
from kraftwire.spark.captures.traffic import TRAFFIC_APIS, traffic_rows
from kraftwire.spark.tables import TABLES
from kraftwire.spark.tables.columns import ends
from kraftwire.spark.tables.files import BadBytes

# Requests that each connection of the tables holds back until their responses come.
PENDING_BYTES_MAX = 64 * 1024 * 1024


# The tables of a capture.
CAPTURE_TABLES = (
    "frames",
    "exchanges",
    "connections",
    "batches",
    "metadata_records",
    "quorum_observations",
    "partition_traffic",
    "raft_exchanges",
    "group_exchanges",
    "bad_input",
    "files",
)

# Tables by their source.
_OF_RECORDS = frozenset({"batches", "metadata_records"})
_OF_RAFT = frozenset({"raft_exchanges", "quorum_observations"})
_OF_EXCHANGES = _OF_RAFT | {"exchanges", "partition_traffic", "group_exchanges"}

# Tables that need the batches of users' records.
_WITH_BATCHES = _OF_RECORDS | _OF_RAFT | {"partition_traffic", "group_exchanges"}

# Connections are read together up to this size, and then decoded from memory. A longer one is held
# alone; beyond the second size it is decoded as it is read.
TOGETHER_BYTES_MAX = 32 * 1024 * 1024
_HELD_BYTES_MAX = 64 * 1024 * 1024

# Frames after which rows may be converted to Arrow.
_PAUSE_FRAMES = 10_000

# The memory of a request that waits for its response, besides its bytes.
_REQUEST_BYTES = 2000

_SKIPPED = "bytes of Kafka that belong to no frame"


class CaptureTables:
    """Collects the rows of captures; `rows` has the requested tables, by name.

    `typed` has the typed ones, by API key and whether it is a request; `sums` has the byte counts
    of each file, by its path.
    """

    def __init__(
        self, wanted: Collection[str] = CAPTURE_TABLES, selection: Selection = ALL
    ) -> None:
        self.selection = selection
        self.rows = {name: Rows(TABLES[name]) for name in CAPTURE_TABLES if name in wanted}
        self.typed = typed_rows(wanted)
        self.sums: dict[str, FileSums] = {}

    def decode(
        self, recording: Recording, numbers: Iterable[int], bytes_max: int = TOGETHER_BYTES_MAX
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Decode connections of a recording, one after the other.

        Yields batches of rows with the names of their tables as soon as there are enough;
        `take_batches` returns the rest. Connections are read together up to about `bytes_max`; a
        copy of another one is only counted.
        """
        originals = []
        for number in numbers:
            if recording.connections[number - 1].is_copy:
                add_copy(self.sums, recording, number)
            else:
                originals.append(number)
        for together in _portions(recording, originals, bytes_max):
            yield from self._decode_together(recording, together)

    def _decode_together(
        self, recording: Recording, numbers: Sequence[int]
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        sizes = {number: recording.connections[number - 1].size for number in numbers}
        found = recording.read([each for each in numbers if sizes[each] <= _HELD_BYTES_MAX])
        with rare_collection():
            for number in numbers:
                one = ConnectionDecoder(self, ConnectionState.start(recording, number), recording)
                held = found.pop(number, None)
                for _ in one.decode_streamed() if held is None else one.decode_held(held):
                    yield from self.take_batches(at_least=CHUNK_ROWS)

    def decode_part(
        self, recording: Recording, state: ConnectionState, span: Span, *, is_last: bool
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Decode a part of a connection that was cut; the last one adds the row of the connection.

        As `decode`.
        """
        with rare_collection():
            decoder = ConnectionDecoder(self, state, recording)
            for _ in decoder.decode_streamed(span, is_last=is_last):
                yield from self.take_batches(at_least=CHUNK_ROWS)

    def take_batches(self, *, at_least: int = 1) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return the rows of all tables that have at least `at_least`."""
        every: list[Rows | TypedRows] = [*self.rows.values(), *self.typed.values()]
        for rows in every:
            rows.pack(at_least=at_least)
            for batch in rows.take_batches():
                yield rows.table.name, batch

    def add(self, name: str, about: Any) -> None:
        """Add the row about an object to a table, if the table was requested."""
        rows = self.rows.get(name)
        if rows is not None:
            rows.add(about)


def _portions(
    recording: Recording, numbers: Iterable[int], bytes_max: int
) -> Iterator[list[int]]:
    """Yield connections that fit into memory together."""
    portion: list[int] = []
    size = 0
    for number in numbers:
        weight = recording.connections[number - 1].weight
        if portion and size + weight > bytes_max:
            yield portion
            portion, size = [], 0
        portion.append(number)
        size += weight
    if portion:
        yield portion


@dataclass(slots=True)
class ConnectionState:
    """The state of a connection between its frames: what later frames need, and the totals.

    `pending` are requests without a response so far, of which some may not be read yet.
    """

    about: Connection
    bodies: BodyReader
    pending: PendingRequests[TableFrame] = field(
        default_factory=lambda: PendingRequests(PENDING_BYTES_MAX)
    )
    raft: QuorumExchanges = field(default_factory=QuorumExchanges)
    observer: ReplicaObserver = field(default_factory=ReplicaObserver)
    open: OpenConnections | None = None

    @classmethod
    def start(cls, recording: Recording, number: int) -> ConnectionState:
        """Return the state before the first frame."""
        indexed = recording.connections[number - 1]
        return cls(Connection(number, indexed), BodyReader(recording.shared_names.start()))


class ConnectionDecoder:
    """One connection, frame by frame."""

    def __init__(self, tables: CaptureTables, state: ConnectionState, recording: Recording) -> None:
        self._tables = tables
        self._selection = tables.selection
        self._add: Callable[[str, Any], None] = tables.add
        self._wants_ends = "frames" in tables.rows
        self._wants_raft = not _OF_RAFT.isdisjoint(tables.rows)
        self._wants_exchanges = not _OF_EXCHANGES.isdisjoint(tables.rows)
        self._recording = recording
        self._state = state
        self._about = state.about
        self._bodies = state.bodies
        self._bodies.wants_batches = not _WITH_BATCHES.isdisjoint(tables.rows)
        self._pending = state.pending
        self._raft = state.raft
        self._observer = state.observer
        self._frame_steps = list(self._steps_of_frames())
        self._exchange_steps = list(self._steps_of_exchanges())
        self._positions: PositionMap | None = None

    def _steps_of_frames(self) -> Iterator[Callable[[TableFrame], None]]:
        """Yield what is done with every frame, for the tables that are wanted."""
        rows = self._tables.rows
        if "frames" in rows:
            yield rows["frames"].add
        if self._tables.typed:
            yield self._add_typed
        if "bad_input" in rows:
            yield self._add_bad_bytes
        if not _OF_RECORDS.isdisjoint(rows):
            yield self._add_records
        if self._wants_exchanges:
            yield self._pair

    def _steps_of_exchanges(self) -> Iterator[Callable[[TableExchange], None]]:
        """Yield what is done with every exchange."""
        rows = self._tables.rows
        if "exchanges" in rows:
            yield rows["exchanges"].add
        if "partition_traffic" in rows:
            yield self._add_traffic
        if "group_exchanges" in rows:
            yield self._add_of_groups
        if self._wants_raft:
            yield self._add_of_quorums

    def decode_held(self, held: ConnectionBytes) -> Iterator[None]:
        """Decode the connection from its packets in memory."""
        self._positions = held.positions()
        capture = Capture(
            held.pieces(),
            name=self._recording.files[0].name,
            on_ending=self._on_ending,
            end_ns=self._recording.end_ns,
            is_disordered=self._recording.is_disordered,
            frame_class=TableFrame,
        )
        return self._run(capture)

    def decode_streamed(self, span: Span | None = None, *, is_last: bool = True) -> Iterator[None]:
        """Decode the connection, or a part of it, while its packets are read."""
        return self._run(self._capture(span, is_last=is_last), is_last=is_last)

    def _capture(self, span: Span | None, *, is_last: bool) -> Capture:
        """Return the packets in a span, after those that were decoded before."""
        state = self._state
        capture = Capture(
            self._recording.stream(self._about.number, span),
            name=self._recording.files[0].name,
            on_ending=self._on_ending,
            after=state.open,
            is_last=is_last,
            end_ns=self._recording.end_ns,
            is_disordered=self._recording.is_disordered,
            frame_class=TableFrame,
        )
        state.open = capture.connections
        return capture

    def _run(self, capture: Capture, *, is_last: bool = True) -> Iterator[None]:
        """Decode all frames, and what is left when the connection ends; yield now and then."""
        count = 0
        for frames in capture.lists():
            self._add_frames(frames)
            count += len(frames)
            if count >= _PAUSE_FRAMES:
                count = 0
                yield
        if is_last:
            for request in self._pending.drain():
                self._add_exchange(self._exchange_of(request, None))
            self._finish(capture)
        yield

    def _add_frames(self, frames: Sequence[RawFrame]) -> None:
        """Add selected frames, and learn from those that reveal something about others."""
        passes = self._selection.passes
        if not self._selection.is_all:
            frames = [each for each in frames if passes(each) or needs_learning(each.api_key)]
        read, add, is_all = self._bodies.read, self._add_frame, self._selection.is_all
        self._move_positions(frames)
        for frame, body in zip(frames, ordinary_bodies(frames), strict=True):
            found = read(frame, body)
            if is_all or passes(frame):
                add(found)

    def _finish(self, capture: Capture) -> None:
        """Add the rows of the connection as a whole."""
        about, memory = self._about, self._bodies.memory
        about.mechanism = memory.mechanisms.get(about.name)
        about.principal = memory.principals.get(about.name)
        about.finish(capture.health)
        if about.cluster is None:
            about.cluster = self._recording.shared_names.clusters.get(ends(about.name)[1])
        file, about.position = self._recording.file_at(about.indexed.position)
        about.file = file.name
        self._add("connections", about)
        if about.undecoded:
            place = about.file, about.position
            bad = BadBytes(*place, about.undecoded, "stream", "skipped", _SKIPPED)
            self._add("bad_input", bad)
        add_connection(self._tables.sums, self._recording, about)

    def _move_positions(self, frames: Sequence[RawFrame]) -> None:
        """Replace positions among the packets by those in the frames' files."""
        if self._positions is not None:
            self._positions.move(frames, ends=self._wants_ends)
        if len(self._recording.files) > 1:
            for frame in frames:
                file, frame.position = self._recording.file_at(frame.position)
                if self._wants_ends:
                    frame.end_position = self._recording.file_at(frame.end_position - 1)[1] + 1
                frame.file = file.name

    def _on_ending(self, ending: Ending) -> None:
        if self._about.closed_by is None:
            self._about.closed_by = "client" if ending.is_by_client else "server"
            self._about.closed_ns = ending.time_ns
            self._about.is_reset = ending.is_reset

    def _add_frame(self, frame: TableFrame) -> None:
        about = self._about
        about.frames += 1
        about.name = frame.connection
        if frame.api_key == ApiKey.API_VERSIONS and frame.is_request:
            body: Any = frame.body
            if body is not None:
                name = f"{body.client_software_name} {body.client_software_version}"
                about.software = name.strip() or about.software
        if about.cluster is None and frame.api_key in CLUSTER_APIS:
            about.cluster = getattr(frame.body, "cluster_id", None) or None
        for step in self._frame_steps:
            step(frame)

    def _add_typed(self, frame: TableFrame) -> None:
        key = frame.api_key
        typed = None if key is None else self._tables.typed.get((key, frame.is_request))
        if typed is not None:
            typed.add(frame)

    def _add_bad_bytes(self, frame: TableFrame) -> None:
        if frame.ordinary is None and frame.findings:
            for bad in bad_bytes(frame):
                self._add("bad_input", bad)

    def _add_records(self, frame: TableFrame) -> None:
        for where in frame.fields:
            for batch in where.batches:
                is_valid = frame.ordinary is not None or batch.is_valid
                self._add("batches", FrameBatch(frame, where, batch, is_valid))
            for record in where.own:
                self._add("metadata_records", FrameRecord(frame, where, record))

    def _pair(self, frame: TableFrame) -> None:
        """Add the exchanges that a frame completes."""
        request = frame.request
        if not frame.is_request:
            pending = None if request is None else self._pending.take(request)
            if self._pending.dropped:
                self._add_skipped()
            self._add_exchange(self._exchange_of(pending, frame))
        elif request is None or not request.has_response:
            self._add_exchange(self._exchange_of(frame, None))
        else:
            self._keep_request(frame, request)

    def _keep_request(self, frame: TableFrame, request: Request) -> None:
        """Keep a request until its response comes; a single one is kept whatever its size."""
        weight = min(frame.size + _REQUEST_BYTES, PENDING_BYTES_MAX)
        self._pending.add(request, frame, weight)
        if self._pending.dropped:
            self._add_skipped()

    def _add_skipped(self) -> None:
        for each in self._pending.take_dropped():
            self._add_exchange(self._exchange_of(each, None))

    def _exchange_of(
        self, request: TableFrame | None, response: TableFrame | None
    ) -> TableExchange:
        return TableExchange(request, response, self._bodies.topic_name)

    def _add_exchange(self, exchange: TableExchange) -> None:
        for step in self._exchange_steps:
            step(exchange)

    def _add_traffic(self, exchange: TableExchange) -> None:
        if exchange.first.api_key in TRAFFIC_APIS:
            for traffic in traffic_rows(exchange, self._bodies.topic_name):
                self._add("partition_traffic", traffic)

    def _add_of_groups(self, exchange: TableExchange) -> None:
        if exchange.first.api_key in GROUP_APIS:
            self._add("group_exchanges", exchange)

    def _add_of_quorums(self, exchange: TableExchange) -> None:
        for each in self._raft.add(exchange):
            each.cluster = self._raft.cluster(each)
            self._add("raft_exchanges", each)
            for observation in self._observer.rows(each, each.cluster):
                self._add("quorum_observations", observation)
