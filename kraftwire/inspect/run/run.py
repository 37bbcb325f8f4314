"""Passes the frames and file lines of a run through the filters to a sink, and counts them.

Where frames and lines come from is up to `inputs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.capture.framing.health import Health
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.files.report import FileFinding, FileLine
from kraftwire.decode.files.source import ByteSource
from kraftwire.decode.filters.frames import FrameFilter
from kraftwire.decode.filters.lines import LineFilter
from kraftwire.decode.options import Options
from kraftwire.decode.sinks import DecodedExchangeSink, Enough, Sink
from kraftwire.errors import UsageError
from kraftwire.inspect.run.pending import PendingExchanges, PendingInOrder
from kraftwire.inspect.run.totals import Totals


class Run:
    """Takes frames and lines of all inputs, one after the other."""

    def __init__(
        self,
        options: Options,
        sink: Sink,
        memory: Memory | None = None,
    ) -> None:
        """Begin a run; `memory` holds what is known at the start and what the run learns.

        Raises: UsageError for filters that make no sense.
        """
        self.options = options
        self.memory = Memory() if memory is None else memory
        self.totals = Totals()
        self._decoder = FrameDecoder(options.settings(self.memory), self.memory)
        self._filter = FrameFilter(options.filters)
        self.line_filter = LineFilter(options.filters)
        self._sink = sink
        self._in_order: PendingInOrder | None = None
        self._is_refused = False

    def begin(self, count: int, first_ns: int) -> None:
        """Continue after frames that another run has: their number, and the time of the first."""
        self.totals.frames = count
        self._filter.begin(first_ns)
        self._sink.begin(first_ns)

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

    def frames(self, frames: Iterable[RawFrame]) -> None:
        """Decode frames and show those that pass the filter; see `lists`. Raises: Enough."""
        self.lists((frame,) for frame in frames)

    def lists(self, lists: Iterable[Sequence[RawFrame]]) -> None:
        """Decode and show frames that come some at a time, which takes less time.

        Raises: Enough once the sink has shown all that is wanted.
        """
        lists = self._begun(lists)
        frames = chain.from_iterable(lists)
        if self._filter.passes_all:
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
        self.begin(0, first[0].time_ns)
        return chain((first,), rest)

    def _show_all(self, lists: Iterable[Sequence[RawFrame]]) -> None:
        for frames in lists:
            self._show_list(frames)

    def _show_list(self, frames: Sequence[RawFrame]) -> None:
        totals, decode, sink = self.totals, self._decoder.decode, self._sink
        number, ordinary = totals.frames, 0
        try:
            if sink.takes_bodies:
                for found in self._decoder.decode_bodies(frames, number):
                    number += 1
                    self._show(found)
                return
            # Not strict: `take_ordinary` yields lazily, when it is the turn of a frame.
            for frame, is_shown in zip(frames, sink.take_ordinary(frames, number)):  # noqa: B905
                number += 1
                if not is_shown:
                    self._show(decode(frame, number - 1))
                    continue
                ordinary += 1
                if sink.left <= 0:
                    raise Enough
        finally:
            totals.frames = number
            totals.shown += ordinary

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
        if decoded.ordinary is None:
            for finding in decoded.findings:
                self.totals.findings[finding.id] += 1
        self._sink.frame(decoded)
        self._end_if_enough()

    def _end_if_enough(self) -> None:
        if self._sink.left <= 0:
            raise Enough

    def file_lines(
        self, lines: Iterable[FileLine], source: ByteSource | None = None
    ) -> None:
        """Show the lines of a file that pass the filter; `totals.files` counts all of them.

        Raises: Enough once the sink has shown all that is wanted.
        """
        if source is not None:
            self._sink.begin_file(str(source.path), source.kind)
        show = self._sink.file_line
        keep = self.line_filter.apply
        for line in lines:
            kept = keep(line)
            if kept is not None:
                self.totals.lines_shown += 1
                show(kept)
                self._end_if_enough()

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
