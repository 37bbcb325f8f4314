"""Statistics of exchanges by API, version and client, and of batches by partition.

Owns what is counted: latencies, sizes and errors of exchanges; batches, records, bytes and
offsets of partitions. The tables are printed by `writer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import floor, log
from pathlib import Path
from typing import Any, TypeVar

from kraftwire import messages
from kraftwire.capture.framing.frames import Ending, Request
from kraftwire.capture.framing.headers import shortened
from kraftwire.capture.framing.health import Health
from kraftwire.capture.recorded import REST_S, Recordings, TimeSpan, host_pair
from kraftwire.decode.body.context import note
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.exchange import FETCH_APIS, is_held_for_members, split_latency
from kraftwire.decode.files.kinds import FileKind, partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.sinks import ExchangeSink
from kraftwire.decode.text import count_text, size_text, utc_text, with_remarks
from kraftwire.inspect.tables import Table
from kraftwire.limits import STATS_CLIENT_ROWS_MAX, STATS_ROWS_MAX
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import error_name
from kraftwire.records.reader import Batch
from kraftwire.wire.message import Message

K = TypeVar("K")

GROWTH = 1.05
ERROR = (GROWTH - 1) / 2

# A hundredth of fewer values is less than one of them.
P99_COUNT_MIN = 100

_LOG = log(GROWTH)
# Smaller values count as this one, which is a nanosecond if the unit is milliseconds.
_LEAST = 1e-6

# Upper bounds of the bars; one more bar counts larger sizes.
BOUNDS = (64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
_BARS = "▁▂▃▄▅▆▇█"
_NONE = "·"

LEGEND = (
    f"(sizes: how many have up to 64 B, 256 B, 1, 4, 16, 64, 256 KiB, 1 MiB, or more; "
    f"{_BARS[0]} few to {_BARS[-1]} most, {_NONE} none)"
)
OTHERS = "(others)"
_SOFTWARE_MAX = 16
_HEAD = ("log", "batches", "records", "bytes", "offsets", "compression", "time", "remarks")
_SECONDS = len("2026-11-20T20:22:23")
# Partitions without batches, and other files, that are named rather than counted.
_NAMES_SHOWN = 3
_NO_CLIENT = "(no client id)"
_UNKNOWN = "(unknown)"
_TOKEN = "SaslToken"
_NS_PER_MS = 1_000_000
_SECOND_NS = 1_000_000_000
# A client waits for request.timeout.ms, 30 s by default.
_ANSWERED_S = 30.0


class Histogram:
    """A histogram of values that are not negative."""

    __slots__ = ("_buckets", "count", "largest", "smallest", "total")

    def __init__(self) -> None:
        # Pairs of bucket and count in a plain dict: a row has six histograms, and a Counter takes
        # more than most of them hold.
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.smallest = float("inf")
        self.largest = 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        bucket = floor(log(max(value, _LEAST)) / _LOG)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1
        self.total += value
        self.smallest = min(self.smallest, value)
        self.largest = max(self.largest, value)

    def merge(self, other: Histogram) -> None:
        """Add the values of another histogram."""
        for bucket, count in other._buckets.items():
            self._buckets[bucket] = self._buckets.get(bucket, 0) + count
        self.count += other.count
        self.total += other.total
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)

    def without(self, others: Histogram) -> Histogram:
        """Return a histogram without some of the values; the smallest and largest stay."""
        rest = Histogram()
        left = {each: count - others._buckets.get(each, 0) for each, count in self._buckets.items()}
        rest._buckets = {each: count for each, count in left.items() if count > 0}
        rest.count = self.count - others.count
        rest.total = self.total - others.total
        rest.smallest, rest.largest = self.smallest, self.largest
        return rest

    def quantile(self, share: float) -> float | None:
        """Return the value that a share of all values does not exceed; None without values."""
        if not self.count:
            return None
        rank = share * self.count
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                middle: float = GROWTH ** (bucket + 0.5)
                return min(max(middle, self.smallest), self.largest)
        return self.largest

    @property
    def p99(self) -> float | None:
        """The 99th percentile; None of so few values that it would be the largest of them."""
        return self.quantile(0.99) if self.count >= P99_COUNT_MIN else None

    @property
    def high(self) -> float | None:
        """The p99, or the largest of fewer values; None without any."""
        return self.p99 or (self.largest if self.count else None)

    def to_json(self) -> dict[str, float | int | None]:
        """Return count, p50, p99 and maximum as a JSON object."""
        return {
            "count": self.count,
            "p50": self.quantile(0.5),
            "p99": self.p99,
            "max": self.largest if self.count else None,
        }


class Sizes:
    """A distribution of sizes. Units: bytes."""

    __slots__ = ("_counts", "histogram", "total")

    def __init__(self) -> None:
        self.histogram = Histogram()
        self.total = 0
        self._counts = [0] * (len(BOUNDS) + 1)

    def add(self, size: int) -> None:
        """Add a size."""
        self.histogram.add(size)
        self.total += size
        self._counts[_place(size)] += 1

    def merge(self, other: Sizes) -> None:
        """Add the sizes of another distribution."""
        self.histogram.merge(other.histogram)
        self.total += other.total
        self._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]

    def bars(self) -> str:
        """Draw a bar for each bound and one for larger sizes; the tallest is the most frequent."""
        peak = max(self._counts)
        if not peak:
            return ""
        top = len(_BARS)
        return "".join(
            _BARS[-(-count * top // peak) - 1] if count else _NONE for count in self._counts
        )

    def to_json(self) -> dict[str, Any]:
        """Return quantiles, and counts with their upper bounds, null for none, as a JSON object."""
        bounds = [*BOUNDS, None]
        counts = [
            {"upTo": bound, "count": count}
            for bound, count in zip(bounds, self._counts, strict=True)
            if count
        ]
        return {**self.histogram.to_json(), "total": self.total, "counts": counts}


def _place(size: int) -> int:
    return next((at for at, bound in enumerate(BOUNDS) if size <= bound), len(BOUNDS))


@dataclass(frozen=True, slots=True)
class ExchangeKey:
    """The API, version and client of a row of counts."""

    api: str
    version: int
    client_id: str


@dataclass(slots=True)
class ExchangeCounts:
    """Counts, latencies and sizes of exchanges with one API, version and client.

    `latency` is of all answered requests. `service` leaves out requests whose service time is not
    known: Fetches without records, and requests that are held until other members of a group have
    come. `wait` is of requests that waited, including those that waited behind earlier requests on
    their connection. Responses that the capture lost are not those `without_response`, nor those
    `not_recorded` as the recording ended.
    `unclear` is of those in `service` that may have waited all the same.

    Units: histograms of times hold milliseconds, those of sizes bytes.
    """

    requests: int = 0
    responses: int = 0
    without_response: int = 0
    lost_responses: int = 0
    not_recorded: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latency: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)
    wait: Histogram = field(default_factory=Histogram)
    unclear: Histogram = field(default_factory=Histogram)
    request_sizes: Sizes = field(default_factory=Sizes)
    response_sizes: Sizes = field(default_factory=Sizes)

    @property
    def request_bytes(self) -> int:
        """The bytes of all requests."""
        return self.request_sizes.total

    @property
    def response_bytes(self) -> int:
        """The bytes of all responses."""
        return self.response_sizes.total

    @property
    def clear_service(self) -> Histogram:
        """The service of requests that surely did not wait meanwhile."""
        return self.service.without(self.unclear) if self.unclear.count else self.service

    def merge(self, other: ExchangeCounts) -> None:
        """Add the counts of another row."""
        self.requests += other.requests
        self.responses += other.responses
        self.without_response += other.without_response
        self.lost_responses += other.lost_responses
        self.not_recorded += other.not_recorded
        self.request_sizes.merge(other.request_sizes)
        self.response_sizes.merge(other.response_sizes)
        self.errors += other.errors
        self.latency.merge(other.latency)
        self.service.merge(other.service)
        self.wait.merge(other.wait)
        self.unclear.merge(other.unclear)


@dataclass(slots=True)
class Client:
    """A client id: its software as given in ApiVersions, and its connections."""

    software: set[str] | tuple[()] = ()
    connections: set[str] = field(default_factory=set)

    def add(self, connection: str) -> None:
        """Add a connection."""
        if len(self.connections) < STATS_ROWS_MAX:
            self.connections.add(connection)

    def note_software(self, body: Any) -> None:
        """Note the client's software from the body of an ApiVersions request."""
        text = shortened(f"{body.client_software_name} {body.client_software_version}".strip())
        if text and len(self.software) < _SOFTWARE_MAX:
            self.software = {*self.software, text}


class ExchangeTable:
    """Counts by API, version and client; beyond a limit, further clients share a row."""

    def __init__(self) -> None:
        self.rows: dict[ExchangeKey, ExchangeCounts] = {}
        self.clients: dict[str, Client] = {}

    def row(self, api: str, version: int, client_id: str) -> ExchangeCounts:
        """Return the row of an exchange, which is added if it is new."""
        key = ExchangeKey(api, version, client_id)
        row = self.rows.get(key)
        if row is None:
            if len(self.rows) >= STATS_CLIENT_ROWS_MAX:
                key = ExchangeKey(api, version, OTHERS)
            if len(self.rows) >= 2 * STATS_CLIENT_ROWS_MAX and key not in self.rows:
                key = ExchangeKey(OTHERS, -1, OTHERS)
            row = self.rows.setdefault(key, ExchangeCounts())
        return row

    def client(self, client_id: str) -> Client:
        """Return the client with an id, which is added if it is new."""
        client = self.clients.get(client_id)
        if client is None:
            if len(self.clients) >= STATS_CLIENT_ROWS_MAX:
                client_id = OTHERS
            client = self.clients.setdefault(client_id, Client())
        return client

    def by_api(self) -> dict[tuple[str, int], ExchangeCounts]:
        """Return a row for each API and version, which counts all clients."""
        return _merged(((key.api, key.version), row) for key, row in self.rows.items())

    def by_client(self) -> dict[str, ExchangeCounts]:
        """Return a row for each client, which counts all APIs."""
        return _merged((key.client_id, row) for key, row in self.rows.items())


def _merged(rows: Iterable[tuple[K, ExchangeCounts]]) -> dict[K, ExchangeCounts]:
    """Return the sums of the rows of each key; a lone row stands for itself."""
    merged: dict[K, ExchangeCounts] = {}
    lone: set[K] = set()
    for key, row in rows:
        if key not in merged:
            merged[key] = row
            lone.add(key)
            continue
        if key in lone:
            lone.remove(key)
            total = ExchangeCounts()
            total.merge(merged[key])
            merged[key] = total
        merged[key].merge(row)
    return merged


@dataclass(slots=True)
class PartitionCounts:
    """The counts of a partition or snapshot.

    Units: timestamps in milliseconds since the epoch. `compression` counts batches; `other_lines`
    are index entries and state files. It `is_log` if it has a segment or is a snapshot.
    """

    files: set[str] = field(default_factory=set)
    batches: int = 0
    records: int = 0
    control_batches: int = 0
    wrong_crc: int = 0
    size: int = 0
    compression: Counter[str] = field(default_factory=Counter)
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    other_lines: int = 0
    is_log: bool = False


class PartitionTable:
    """Counts by partition and snapshot; beyond a limit, further files share a row."""

    def __init__(self) -> None:
        self.rows: dict[str, PartitionCounts] = {}
        self._names: dict[str, str] = {}

    def begin_file(self, file: str, kind: FileKind) -> None:
        """Add the row of a file, which may be empty."""
        self._row(file, kind)

    def add(self, line: FileLine) -> None:
        """Count a line of a file."""
        row = self._row(str(line.json["file"]), line.kind)
        if line.batch is None:
            row.other_lines += 1
        else:
            _add_batch(row, line.batch, line)

    def _row(self, file: str, kind: FileKind) -> PartitionCounts:
        name = self._names.get(file)
        if name is None:
            name = _name(file, kind)
            if len(self._names) >= STATS_ROWS_MAX:
                self._names.clear()
            self._names[file] = name
        if name not in self.rows and len(self.rows) >= STATS_ROWS_MAX:
            name = OTHERS
        row = self.rows.setdefault(name, PartitionCounts())
        if len(row.files) < STATS_ROWS_MAX:
            row.files.add(file)
        row.is_log |= kind.has_batches
        return row


def _name(file: str, kind: FileKind) -> str:
    """Return folder and partition, so that copies on several brokers stay apart."""
    path = Path(file)
    if kind is FileKind.SNAPSHOT or partition_of(path) is None:
        return str(Path(path.parent.name) / path.name)
    return str(Path(path.parent.parent.name) / path.parent.name)


def _add_batch(row: PartitionCounts, batch: Batch, line: FileLine) -> None:
    json = line.json
    row.batches += 1
    row.records += json["count"] or 0
    row.control_batches += batch.is_control
    row.wrong_crc += not json["isValid"]
    row.size += batch.size
    row.compression[batch.compression] += 1
    if row.first_offset is None:
        row.first_offset = json["baseOffset"]
    row.last_offset = max(row.last_offset or 0, batch.last_offset)
    first = getattr(batch, "base_timestamp", batch.max_timestamp)
    if first >= 0 and (row.first_timestamp is None or first < row.first_timestamp):
        row.first_timestamp = first
    last = batch.max_timestamp
    if last >= 0 and (row.last_timestamp is None or last > row.last_timestamp):
        row.last_timestamp = last


def partitions_table(logs: PartitionTable) -> Table:
    """Return a table with a row for each partition or snapshot with batches, the largest first."""
    title = "By partition, most bytes first"
    table = Table(title, _HEAD, right=(1, 2, 3), names=(0,), optional=(6, 5, 7))
    rows = [each for each in logs.rows.items() if each[1].batches]
    for name, row in sorted(rows, key=lambda each: (-each[1].size, each[0])):
        times = [row.first_timestamp, row.last_timestamp]
        remarks = [f"{len(row.files)} files"] if len(row.files) > 1 else []
        remarks += [f"{row.control_batches:,} control"] if row.control_batches else []
        remarks += [f"{row.wrong_crc:,} with wrong CRC"] if row.wrong_crc else []
        remarks += [f"{row.other_lines:,} other lines"] if row.other_lines else []
        codecs = row.compression.most_common()
        table.rows.append(
            (
                name,
                f"{row.batches:,}",
                f"{row.records:,}",
                size_text(row.size),
                f"{row.first_offset}-{row.last_offset}",
                ", ".join(with_remarks(codec, [f"{n:,}"]) for codec, n in codecs),
                " to ".join(utc_text(each)[:_SECONDS] for each in times if each is not None),
                ", ".join(remarks),
            )
        )
    return table


def without_batches(logs: PartitionTable) -> Iterator[str]:
    """Yield a sentence about empty partitions, and one about files that are no logs."""
    empty = [name for name, row in logs.rows.items() if row.is_log and not row.batches]
    others = [name for name, row in logs.rows.items() if not row.is_log and not row.batches]
    if empty:
        yield f"{count_text(len(empty), 'empty partition')}{_few(empty)}"
    if others:
        yield f"{count_text(len(others), 'file')} without batches{_few(others)}"


def _few(names: Sequence[str]) -> str:
    """Return the names if they are few."""
    return f": {', '.join(sorted(names))}" if len(names) <= _NAMES_SHOWN else ""


@dataclass(slots=True)
class _KeptRequest:
    """The part of a request that is kept until its response: counts, body of a Fetch, times."""

    row: ExchangeCounts
    request: Request
    time_ns: int
    fetch: Message | None
    is_held: bool
    connection: str


@dataclass(frozen=True, slots=True)
class Security:
    """How a connection is secured, as far as the capture shows it.

    `principal` is who logs in, or whom the client's certificate names, before a server's mapping
    rules; None if it is not known, or was refused.
    """

    tls_version: str | None = None
    mechanism: str | None = None
    principal: str | None = None


class StatsCollector(ExchangeSink[_KeptRequest]):
    """Collects all statistics, and the times of the first and the last frame."""

    takes_bodies = True

    def __init__(self) -> None:
        super().__init__()
        self.exchanges = ExchangeTable()
        self.logs = PartitionTable()
        # Connection -> time of its last response.
        self._last_response_ns: dict[str, int] = {}
        self._logins: dict[str, tuple[str | None, str | None]] = {}
        self._healths: list[Health] = []
        self.recordings = Recordings()
        # Connections that ended.
        self._ended: set[str] = set()
        self.first_ns: int | None = None
        self.last_ns = 0

    def begin_capture(self, health: Health) -> None:
        """Keep the totals of a capture, which tell of its encrypted connections."""
        self._healths.append(health)
        self.recordings.add(health.recorded)

    def secured(self) -> dict[str, Security]:
        """Return the connections that are encrypted or log in, by name. Order: after the run."""
        found = {}
        for health in self._healths:
            for tls in (*health.tls, *health.decrypted):
                name = f"User:{tls.certificate_name}" if tls.certificate_name else None
                found[tls.connection] = Security(tls.version or None, principal=name)
        for connection, login in self._logins.items():
            # Where clients log in, their certificates do not count.
            tls_version = found.get(connection, Security()).tls_version
            found[connection] = Security(tls_version, *login)
        return found

    def _note_login(self, frame: Frame) -> None:
        login = None if frame.ordinary is not None else frame.login
        if login is not None:
            note(self._logins, frame.connection, login)

    def begin_file(self, file: str, kind: FileKind) -> None:
        """Count a file, which may be empty."""
        self.logs.begin_file(file, kind)

    def file_line(self, line: FileLine) -> None:
        """Count a line of a file."""
        self.logs.add(line)

    def _note_time(self, frame: Frame) -> None:
        if self.first_ns is None or frame.time_ns < self.first_ns:
            self.first_ns = frame.time_ns
        self.last_ns = max(self.last_ns, frame.time_ns)

    def _row(self, frame: Frame) -> ExchangeCounts:
        client_id = frame.request.client_id if frame.request is not None else _UNKNOWN
        key = frame.api_key
        if frame.kind != "rpc":
            name = _TOKEN
        else:
            name = _UNKNOWN if key is None else messages.API_NAMES.get(key, f"API {key}")
        version = -1 if frame.api_version is None else frame.api_version
        return self.exchanges.row(name, version, _NO_CLIENT if client_id is None else client_id)

    def keep_request(self, frame: Frame, /) -> _KeptRequest | None:
        """Count a request; return what its response needs of it."""
        self._note_time(frame)
        self._note_login(frame)
        body = frame.body
        row = self._row(frame)
        row.requests += 1
        row.request_sizes.add(frame.size)
        if frame.request is None:
            return None
        client_id = frame.request.client_id
        client = self.exchanges.client(_NO_CLIENT if client_id is None else client_id)
        client.add(frame.connection)
        if frame.api_key == ApiKey.API_VERSIONS and body is not None:
            client.note_software(body)
        fetch = body if frame.api_key in FETCH_APIS else None
        is_held = body is not None and is_held_for_members(frame.api_key, body)
        return _KeptRequest(
            row, frame.request, frame.time_ns, fetch, is_held, frame.connection
        )

    def take_unanswered(self, request: _KeptRequest, is_awaited: bool, /) -> None:
        """Count a request that gets no response, or one that the capture lost."""
        if request.request.lost:
            request.row.lost_responses += 1
        elif not is_awaited or self._is_missing(request):
            request.row.without_response += 1
        else:
            request.row.not_recorded += 1

    def _is_missing(self, request: _KeptRequest) -> bool:
        """Whether a response would have been recorded, as far as clients wait for it."""
        if self.recordings.is_empty or request.connection in self._ended:
            return True
        time = request.time_ns / _SECOND_NS
        pair = host_pair(request.connection)
        return self.recordings.until(time, time + _ANSWERED_S, pair) >= time + _ANSWERED_S

    def ending(self, ending: Ending) -> None:
        """Note that a connection ended: no response comes any more."""
        if len(self._ended) < STATS_ROWS_MAX:
            self._ended.add(ending.connection)

    @property
    def holes(self) -> list[TimeSpan]:
        """The times between frames of which nothing was recorded."""
        if self.first_ns is None or self.recordings.is_empty:
            return []
        return self.recordings.holes(
            self.first_ns / _SECOND_NS, self.last_ns / _SECOND_NS, REST_S
        )

    def take_response(self, request: _KeptRequest | None, response: Frame, /) -> None:
        """Count a response."""
        self._note_time(response)
        self._note_login(response)
        row = request.row if request is not None else self._row(response)
        row.responses += 1
        row.response_sizes.add(response.size)
        codes = response.error_codes
        for code in codes:
            row.errors[error_name(code)] += 1
        if response.latency_ms is not None:
            self._add_times(row, request, response, codes)

    def _add_times(
        self,
        row: ExchangeCounts,
        request: _KeptRequest | None,
        response: Frame,
        codes: Sequence[int],
    ) -> None:
        """Split a latency into the wait behind earlier requests, other waits, and service."""
        body = response.body
        latency = max(response.latency_ms or 0.0, 0.0)
        row.latency.add(latency)
        queued = min(self._queued_ms(request, response), latency)
        if request is not None and request.is_held and not codes:
            row.wait.add(latency)
            return
        wait, is_known = self._wait_ms(request, body, queued, latency)
        if wait > 0:
            row.wait.add(wait)
        if is_known:
            row.service.add(latency - wait)
            if wait <= queued and _may_have_waited(request, body):
                row.unclear.add(latency - wait)

    def _queued_ms(self, request: _KeptRequest | None, frame: Frame) -> float:
        """Return how long a request waited for the answer to an earlier one on its connection.

        Call it once for each answer, as it also notes the time of this one.
        """
        before = self._last_response_ns.pop(frame.connection, None)
        self._last_response_ns[frame.connection] = frame.time_ns
        if len(self._last_response_ns) > STATS_ROWS_MAX:
            del self._last_response_ns[next(iter(self._last_response_ns))]
        if request is None or before is None:
            return 0.0
        return max(0.0, (before - request.time_ns) / _NS_PER_MS)

    def _wait_ms(
        self, request: _KeptRequest | None, body: Message | None, queued: float, latency: float
    ) -> tuple[float, bool]:
        """Return the wait in a latency, and whether the rest is known to be service."""
        if request is None or request.fetch is None or body is None:
            return queued, True
        wait, service = split_latency(
            body.API_KEY,
            request.fetch,
            body,
            request_ms=request.time_ns / _NS_PER_MS + queued,
            latency_ms=latency - queued,
        )
        return queued + (wait or 0.0), service is not None


def _may_have_waited(request: _KeptRequest | None, body: Any) -> bool:
    """Whether a Fetch without a visible wait may have been parked.

    Its records are older than it. They can have come late all the same, as those of a changelog
    of Kafka Streams do, whose timestamps are those of the stream.
    """
    fetch: Any = None if request is None else request.fetch
    if fetch is None or body is None or body.error_code or fetch.max_wait_ms <= 0:
        return False
    return any(each.records for topic in body.responses for each in topic.partitions)
