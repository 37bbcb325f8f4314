"""Passes the frames and file lines of a run through the filters to a sink, and counts them.

Where frames and lines come from is up to `inputs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.capture.framing.health import Health
from kraftwire.decode.body.context import Memory, needs_learning
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.exchange.sinks import DecodedExchangeSink
from kraftwire.decode.files.report import FileFinding, FileLine
from kraftwire.decode.files.source import ByteSource
from kraftwire.decode.filters.lines import LineFilter
from kraftwire.decode.options import Options
from kraftwire.decode.sinks import Sink
from kraftwire.errors import StorageError, UsageError
from kraftwire.inspect.run.parallel import Relay
from kraftwire.inspect.run.pending import PendingExchanges, PendingInOrder
from kraftwire.inspect.run.totals import Totals

# The number of frames that were shown, and the findings in them by id.
Counts = tuple[int, Counter[str]]


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

    @property
    def needs_order(self) -> bool:
        """Whether frames have to come in the order in which they were sent."""
        return self._sink.needs_order

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

    def frames(
        self, frames: Iterable[RawFrame], part_read: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Decode frames and show those that pass the filter; see `lists`."""
        self.lists(((frame,) for frame in frames), part_read)

    def lists(
        self, lists: Iterable[Sequence[RawFrame]], part_read: Callable[[], float] = lambda: 0.0
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

    def _begun(self, lists: Iterable[Sequence[RawFrame]]) -> Iterable[Sequence[RawFrame]]:
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

    def _show_all(self, lists: Iterable[Sequence[RawFrame]]) -> None:
        for frames in lists:
            self._show_list(frames)

    def _show_list(self, frames: Sequence[RawFrame]) -> None:
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
        self, lists: Iterable[Sequence[RawFrame]], relay: Relay, part_read: Callable[[], float]
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
        self, lists: Iterable[Sequence[RawFrame]], relay: Relay, part_read: Callable[[], float]
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

    def _pass_over(self, frames: Sequence[RawFrame]) -> None:
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

    def _show_exchanges(self, frames: Iterable[RawFrame]) -> None:
        """Hold requests back: whether an exchange is wanted may depend on its response."""
        sink = self._sink
        pending: DecodedExchangeSink = PendingExchanges(self._filter, self._show)
        if sink.needs_order:
            pending = self._in_order = PendingInOrder(self._filter, self._show, sink)
        for frame in frames:
            pending.frame(self._decode(frame))
        pending.finish()
        self._in_order = None

    def _decode(self, frame: RawFrame) -> Frame:
        number = self.totals.frames
        self.totals.frames = number + 1
        return self._decoder.decode(frame, number)

    def _show_alone(self, decoded: Frame) -> None:
        if self._filter.passes(decoded):
            self._show(decoded)

    def _show(self, decoded: Frame) -> None:
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
