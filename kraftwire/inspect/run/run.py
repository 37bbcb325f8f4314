"""Passes the frames and file lines of a run through the filters to a sink, and counts them.

Owns the totals that set the exit code and their summary for standard error, and when frames are
shown whose filter depends on the response: with it, or, for sinks that take frames in order, where
they stood. Where frames and lines come from is up to `inputs`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from kraftwire.capture.framing.frames import Ending, Frame
from kraftwire.capture.framing.health import Health, TlsConnection
from kraftwire.decode.body.context import Memory, needs_learning
from kraftwire.decode.body.findings import LOSSES
from kraftwire.decode.body.frame import DecodedFrame, FrameDecoder
from kraftwire.decode.exchange.sinks import DecodedExchangeSink
from kraftwire.decode.files.report import ExitCode, FileFinding, FileLine, FileReport
from kraftwire.decode.files.source import ByteSource
from kraftwire.decode.files.walk import UnservedFolders
from kraftwire.decode.filters import FrameFilter, LineFilter
from kraftwire.decode.limits import PENDING_BYTES_MAX
from kraftwire.decode.options import Options
from kraftwire.decode.sinks import Sink
from kraftwire.errors import StorageError, UsageError
from kraftwire.inspect.run.parallel import Relay

__all__ = [
    "PendingExchanges",
    "PendingInOrder",
    "Run",
    "Totals",
    "summary",
]

# The memory of something that waits besides its bytes.
_OBJECT_BYTES = 2000

_Show = Callable[[DecodedFrame], None]

# The number of frames that were shown, and the findings in them by id.
Counts = tuple[int, Counter[str]]

# So many encrypted connections of a capture are named for each reason.
_TLS_NAMED_MAX = 3

_KEYLOG_HINT = (
    "--keylog FILE decodes encrypted connections, with the secrets that a client or server writes "
    "for SSLKEYLOGFILE"
)

# Attribute of a capture's health -> its noun; zeros are not shown.
_HEALTH = (
    ("midstream_connections", "connections open before the capture began"),
    ("relieved_connections", "buffers dropped to save memory"),
    ("other_connections", "connections of other protocols"),
    ("partial_frames", "frames with missing bytes"),
    ("early_responses", "responses to requests from before the capture"),
    ("unmatched_responses", "responses without request"),
    ("unanswered_requests", "requests without response"),
    ("gaps", "gaps"),
    ("missing_bytes", "bytes missing"),
    ("skipped_bytes", "bytes skipped"),
    ("resyncs", "resynchronizations"),
    ("truncated_packets", "truncated packets"),
    ("copies", "copies of packets in other wrappings"),
    ("translated_connections", "connections seen again under a translated address"),
    ("retransmissions", "retransmissions"),
    ("overlaps", "overlaps"),
    ("conflicts", "retransmissions with different content"),
    ("out_of_order", "packets out of order"),
    ("fragments", "IP fragments"),
    ("skipped_packets", "packets of other protocols"),
)


class PendingExchanges(DecodedExchangeSink):
    """Holds each request until its response, and shows both together."""

    def __init__(self, filter: FrameFilter, show: _Show) -> None:
        super().__init__()
        self._filter = filter
        self._show = show

    def exchange(
        self, request: DecodedFrame | None, response: DecodedFrame | None, _is_awaited: bool, /
    ) -> None:
        """Show a request and its response, or one of them alone, if they pass."""
        if _passes(self._filter, request, response):
            for each in (request, response):
                if each is not None:
                    self._show(each)


@dataclass(slots=True, eq=False)
class _Place:
    """A frame, or the end of a connection, in its place; `is_shown` is None until decided."""

    what: DecodedFrame | Ending
    size: int
    is_shown: bool | None = None


class PendingInOrder(DecodedExchangeSink):
    """Holds frames and ends of connections, and passes them on in their order.

    What follows a request waits with it. If too much waits, the first frame is judged alone.
    """

    def __init__(self, filter: FrameFilter, show: _Show, sink: Sink) -> None:
        super().__init__()
        self._filter = filter
        self._show = show
        self._sink = sink
        self._queue: deque[_Place] = deque()
        self._undecided: dict[int, _Place] = {}
        self._bytes = 0

    def frame(self, decoded: DecodedFrame) -> None:
        """Take the next frame."""
        place = _Place(decoded, decoded.frame.size + _OBJECT_BYTES)
        self._undecided[decoded.number] = place
        self._append(place)
        super().frame(decoded)
        self._release()
        if self._queue:
            # Whatever waits keeps only its bytes.
            decoded.release_objects()

    def ending(self, ending: Ending) -> None:
        """Take the end of a connection."""
        self._append(_Place(ending, _OBJECT_BYTES, is_shown=True))
        self._release()

    def exchange(
        self, request: DecodedFrame | None, response: DecodedFrame | None, _is_awaited: bool, /
    ) -> None:
        """Decide about a request and its response, or one of them alone."""
        is_shown = _passes(self._filter, request, response)
        for each in (request, response):
            place = None if each is None else self._undecided.pop(each.number, None)
            if place is not None:
                place.is_shown = is_shown
        if request is not None and self._queue and request is not self._queue[0].what:
            request.release_objects()

    def finish(self) -> None:
        """Show the rest: no more responses come."""
        super().finish()
        for place in self._queue:
            self._judge_alone(place)
        self._release()

    def _append(self, place: _Place) -> None:
        self._queue.append(place)
        self._bytes += place.size

    def _release(self) -> None:
        """Pass on what no longer waits for anything before it."""
        queue = self._queue
        while queue and (queue[0].is_shown is not None or self._bytes > PENDING_BYTES_MAX):
            place = queue.popleft()
            self._bytes -= place.size
            self._judge_alone(place)
            self._pass_on(place)

    def _judge_alone(self, place: _Place) -> None:
        what = place.what
        if place.is_shown is None and isinstance(what, DecodedFrame):
            self._undecided.pop(what.number, None)
            place.is_shown = self._filter.passes(what)

    def _pass_on(self, place: _Place) -> None:
        what, sink = place.what, self._sink
        if isinstance(what, Ending):
            sink.ending(what)
        elif place.is_shown:
            self._show(what)
        elif self._filter.is_in_time(what):
            sink.unwanted(what)


def _passes(
    filter: FrameFilter, request: DecodedFrame | None, response: DecodedFrame | None
) -> bool:
    """Whether a request and its response are wanted together, or one of them alone."""
    if request is not None and response is not None:
        return filter.passes_exchange(request, response)
    one = request or response
    return one is not None and filter.passes(one)


@dataclass(slots=True)
class Totals:
    """The totals of a run.

    `frames` counts all frames, `shown` those that passed the filter, and `findings` is of
    these by id; `captures` has the health of each capture by its name; `lines_shown` counts the
    lines of files that passed, of all those in `files`, and
    `passed_over` files of other topics and partitions than the filter's, which were not read.
    `unserved` counts the folders of partitions that were left out; `refusals` say why a node
    would not start on a log directory.
    """

    frames: int = 0
    shown: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    captures: dict[str, Health] = field(default_factory=dict)
    files: FileReport = field(default_factory=FileReport)
    lines_shown: int = 0
    passed_over: int = 0
    unserved: UnservedFolders = field(default_factory=UnservedFolders)
    refusals: list[str] = field(default_factory=list)
    unreadable: int = 0

    @property
    def has_shown(self) -> bool:
        """Whether anything passed the filters."""
        return bool(self.shown or self.lines_shown)

    @property
    def has_more(self) -> bool:
        """Whether anything did not pass the filters."""
        hidden_lines = self.files.line_count > self.lines_shown
        return self.frames > self.shown or hidden_lines or bool(self.passed_over)

    @property
    def has_losses(self) -> bool:
        """Whether bytes of Kafka's stayed undecoded."""
        return (
            bool(self.unreadable or self.files.loss_count)
            or not LOSSES.isdisjoint(self.findings)
            or any(health.is_undecoded or health.is_damaged for health in self.captures.values())
        )

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the run."""
        is_known_file = self.files.exit_code is not ExitCode.NOTHING
        is_known_file |= bool(self.passed_over)
        if not self.frames and not self.files.line_count and not is_known_file:
            return ExitCode.NOTHING
        return ExitCode.PARTIAL if self.has_losses else ExitCode.CLEAN


class Run:
    """Takes frames and lines of all inputs, one after the other."""

    def __init__(
        self,
        options: Options,
        sink: Sink,
        memory: Memory | None = None,
        *,
        relay: Relay | None = None,
    ) -> None:
        """Begin a run.

        `memory` holds what is known at the start and what the run learns. With a `relay` several
        processes show the frames; the sink writes to the relay's stream.

        Raises: UsageError for filters that make no sense.
        """
        self.options = options
        self.memory = Memory() if memory is None else memory
        self.totals = Totals()
        self._decoder = FrameDecoder(options.settings(self.memory), self.memory)
        self._filter = options.frame_filter()
        self.line_filter = LineFilter(options.filters)
        self._sink = sink
        self._in_order: PendingInOrder | None = None
        self._is_refused = False
        self._relay = relay
        if relay is not None:
            relay.hand_over, relay.take = sink.hand_over, self._take_counts
            sink.relay(self._decoder.later, self.memory.topics)

    @property
    def passes_all(self) -> bool:
        """Whether no frame is left out."""
        return self._filter.passes_all

    def ending(self, ending: Ending) -> None:
        """Pass on that a connection ends."""
        (self._in_order or self._sink).ending(ending)

    def begin_capture(self, name: str, health: Health) -> None:
        """Take the totals of a capture, which grow while it is read."""
        self.totals.captures[name] = health
        self._sink.begin_capture(health)

    def ensure_for_files(self, file: object) -> None:
        """Refuse what no file but a capture can answer.

        Raises: UsageError for an output, or a filter, of requests and responses.
        """
        if not self._sink.takes_files:
            self._is_refused = True
            raise UsageError(f"{file} is not a capture and holds no requests")
        self.line_filter.ensure_for_files(file)

    def frames(self, frames: Iterable[Frame], part_read: Callable[[], float] = lambda: 0.0) -> None:
        """Decode frames and show those that pass the filter; see `lists`."""
        self.lists(((frame,) for frame in frames), part_read)

    def lists(
        self, lists: Iterable[Sequence[Frame]], part_read: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Decode and show frames that come some at a time, which takes less time.

        `part_read` is the part of the input that was read so far, from 0 to 1.
        """
        lists = self._begun(lists)
        frames = chain.from_iterable(lists)
        if self._relay is not None:
            self._show_relayed(lists, self._relay, part_read)
        elif self._filter.passes_all:
            self._show_all(lists)
        elif self._sink.takes_exchanges:
            self._show_exchanges(frames)
        else:
            for frame in frames:
                self._show_alone(self._decode(frame))

    def _begun(self, lists: Iterable[Sequence[Frame]]) -> Iterable[Sequence[Frame]]:
        """The frames; the time of the run's first one is where relative times count from."""
        if self.totals.frames:
            return lists
        rest = iter(lists)
        first = next(rest, None)
        if first is None:
            return ()
        time_ns = first[0].time_ns
        self._filter.begin(time_ns)
        self._sink.begin(time_ns)
        return chain((first,), rest)

    def _show_all(self, lists: Iterable[Sequence[Frame]]) -> None:
        for frames in lists:
            self._show_list(frames)

    def _show_list(self, frames: Sequence[Frame]) -> None:
        totals, decode, quickly = self.totals, self._decoder.decode, self._sink.quickly
        # Not strict: `quickly` yields lazily, when it is the turn of a frame.
        for frame, is_shown in zip(frames, quickly(frames, totals.frames)):  # noqa: B905
            number = totals.frames
            totals.frames = number + 1
            if is_shown:
                totals.shown += 1
            else:
                self._show(decode(frame, number))

    def _show_relayed(
        self, lists: Iterable[Sequence[Frame]], relay: Relay, part_read: Callable[[], float]
    ) -> None:
        """Show some frames; learn from the others, which workers show."""
        try:
            self._show_or_pass_over(lists, relay, part_read)
        except BaseException as error:
            # The process that reads all of an input reports what is wrong with it.
            if not isinstance(error, StorageError):
                relay.fail(error)
            relay.end()
            raise
        relay.end()

    def _show_or_pass_over(
        self, lists: Iterable[Sequence[Frame]], relay: Relay, part_read: Callable[[], float]
    ) -> None:
        totals, passes_all = self.totals, self._filter.passes_all
        is_passing, until = False, relay.begin(totals.frames, part_read)
        for frames in lists:
            at = 0
            while at < len(frames):
                if totals.frames >= until:
                    is_passing, until = relay.turn(totals.frames)
                some = frames[at : at + until - totals.frames]
                at += len(some)
                if is_passing:
                    self._pass_over(some)
                elif passes_all:
                    self._show_list(some)
                else:
                    for frame in some:
                        self._show_alone(self._decode(frame))

    def _pass_over(self, frames: Sequence[Frame]) -> None:
        totals, decode, pass_over = self.totals, self._decoder.decode, self._sink.pass_over
        for frame in frames:
            number = totals.frames
            totals.frames = number + 1
            is_telling = needs_learning(frame.api_key)
            pass_over(frame, number, decode(frame, number) if is_telling else None)

    def _take_counts(self) -> Counts:
        """Return what was counted of the frames that were shown since the last time."""
        totals, counts = self.totals, (self.totals.shown, self.totals.findings)
        totals.shown, totals.findings = 0, Counter()
        return counts

    def _show_exchanges(self, frames: Iterable[Frame]) -> None:
        """Hold requests back: whether an exchange is wanted may depend on its response."""
        sink = self._sink
        pending: DecodedExchangeSink = PendingExchanges(self._filter, self._show)
        if sink.needs_order:
            pending = self._in_order = PendingInOrder(self._filter, self._show, sink)
        for frame in frames:
            pending.frame(self._decode(frame))
        pending.finish()
        self._in_order = None

    def _decode(self, frame: Frame) -> DecodedFrame:
        number = self.totals.frames
        self.totals.frames = number + 1
        return self._decoder.decode(frame, number)

    def _show_alone(self, decoded: DecodedFrame) -> None:
        if self._filter.passes(decoded):
            self._show(decoded)

    def _show(self, decoded: DecodedFrame) -> None:
        self.totals.shown += 1
        for finding in decoded.findings:
            self.totals.findings[finding.id] += 1
        self._sink.frame(decoded)

    def file_lines(
        self, lines: Iterable[FileLine], source: ByteSource | None = None
    ) -> None:
        """Show the lines of a file that pass the filter; `totals.files` counts all of them."""
        if source is not None:
            self._sink.begin_file(str(source.path), source.kind)
        show = self._sink.file_line
        keep = self.line_filter.apply
        for line in lines:
            kept = keep(line)
            if kept is not None:
                self.totals.lines_shown += 1
                show(kept)

    def file_finding(self, finding: FileFinding) -> None:
        """Take what is wrong with a file."""
        self._sink.file_finding(finding)

    def refused_directory(self, folder: str, reason: str) -> None:
        """Note why a node would not start on a log directory."""
        self.totals.refusals.append(f"{folder}: a node does not start on it: {reason}")
        self._sink.refused_directory(folder, reason)

    def finish(self) -> None:
        """End the output, unless it was refused. Order: once, whatever ended the run."""
        if not self._is_refused:
            self._sink.finish()

    def finish_relay(self) -> None:
        """Wait for the processes of a relay, and add what they counted. Order: after `finish`."""
        if self._relay is None:
            return
        for shown, findings in self._relay.finish():
            self.totals.shown += shown
            self.totals.findings.update(findings)


def summary(totals: Totals) -> Iterator[str]:
    """Yield the lines of a summary."""
    if totals.captures or totals.frames:
        shown = "" if totals.shown == totals.frames else f", {totals.shown:,} of them shown"
        yield f"{_count(totals.frames, 'frame')}{shown}{_found(totals.findings)}"
    for name, health in totals.captures.items():
        yield from _capture(name, health)
    if any(_is_locked(tls) for health in totals.captures.values() for tls in health.tls):
        yield _KEYLOG_HINT
    files = totals.files
    if files.files or totals.passed_over:
        count = _count(sum(files.files.values()), "file")
        lines = _count(files.line_count, "line")
        if totals.lines_shown != files.line_count:
            lines += f", {totals.lines_shown:,} of them shown"
        if totals.passed_over:
            lines += f", {_count(totals.passed_over, 'file')} of other partitions skipped"
        yield f"{count}, {lines}{_found(files.findings)}"
    yield from totals.refusals
    if totals.unserved:
        yield str(totals.unserved)


def _capture(name: str, health: Health) -> Iterator[str]:
    parts = [
        _count(health.packets, "packet"),
        _count(health.kafka_connections, "connection") + " of Kafka",
    ]
    for attribute, noun in _HEALTH:
        if number := getattr(health, attribute):
            parts.append(f"{noun} {number:,}")
    for wrapping, number in health.opened.items():
        parts.append(f"packets inside {wrapping} {number:,}")
    yield f"{name}: {', '.join(parts)}"
    for text in health.unopened_texts():
        yield f"{name}: {text}"
    if health.problem:
        yield f"{name}: {health.problem}"
    for text in _encrypted(health.tls):
        yield f"{name}: {text}"
    if health.tls_connections > len(health.tls):
        yield f"{name}: {health.tls_connections:,} TLS connections in all"


def _encrypted(connections: Iterable[TlsConnection]) -> Iterator[str]:
    """Name the first few connections for each reason why they are not decoded, count the others."""
    by_reason: dict[tuple[str, bool], list[TlsConnection]] = {}
    for tls in connections:
        by_reason.setdefault((tls.reason, bool(tls.damaged_records)), []).append(tls)
    for alike in by_reason.values():
        yield from map(_tls, alike[:_TLS_NAMED_MAX])
        more = alike[_TLS_NAMED_MAX:]
        if more:
            count = sum(tls.client_bytes + tls.server_bytes for tls in more)
            yield f"and {len(more):,} more, of {count:,} bytes"


def _is_locked(tls: TlsConnection) -> bool:
    """Whether nobody tried to decrypt a connection, as there were no secrets at all."""
    return not tls.reason and not tls.damaged_records


def _tls(tls: TlsConnection) -> str:
    version = tls.version or "TLS of an unknown version"
    server = f" to {tls.server_name}" if tls.server_name else ""
    server += f", client certificate {tls.certificate_name}" if tls.certificate_name else ""
    if tls.damaged_records and not tls.reason:
        records = _count(tls.damaged_records, "record")
        return f"{tls.connection} is encrypted ({version}{server}): {records} could not be opened"
    return (
        f"{tls.connection} is encrypted ({version}{server}): {tls.client_bytes:,} bytes from the "
        f"client and {tls.server_bytes:,} from the server are not decoded"
        + (f", as {tls.reason}" if tls.reason else "")
    )


def _found(findings: Counter[str]) -> str:
    """Describe the findings by id, most frequent first, then by name."""
    by_count = sorted(findings.items(), key=lambda each: (-each[1], each[0]))
    listed = ", ".join(f"{id} {count:,}" for id, count in by_count)
    return f"; findings: {listed}" if listed else "; no findings"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
