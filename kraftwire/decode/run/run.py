"""A run of the decode tool: frames and file lines pass the filter, go to a sink, and are counted.

Owns the totals that set the exit code. Where frames and lines come from is
the business of `inputs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from math import inf

from kraftwire.decode.body.clues import needs_learning
from kraftwire.decode.body.findings import LOSSES
from kraftwire.decode.body.frame import DecodedFrame, FrameDecoder
from kraftwire.decode.body.memory import Memory
from kraftwire.decode.exchange.paired import Paired, QuickPaired, WholePaired
from kraftwire.decode.files.report import ExitCode, FileLine, FileReport
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.framing.health import Health
from kraftwire.decode.pairing.outbox import Ending
from kraftwire.decode.run.line_filter import LineFilter
from kraftwire.decode.run.offered import Offered
from kraftwire.decode.run.options import Options
from kraftwire.decode.run.share import Share, Turned
from kraftwire.decode.run.sinks import HearsEndings, HearsStart, Sink

__all__ = ["Run", "Totals"]


@dataclass(slots=True)
class Totals:
    """What a run has seen.

    Shape: `frames` counts all frames, `shown` those that passed the filter, and `findings` is of
    these by id; `captures` has the health of each capture by its name; `lines_shown` counts the
    lines of files that passed, of all those in `files`, and
    `passed_over` files of other topics and partitions than the filter's, which were not read.
    """

    frames: int = 0
    shown: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    captures: dict[str, Health] = field(default_factory=dict)
    files: FileReport = field(default_factory=FileReport)
    lines_shown: int = 0
    passed_over: int = 0
    unreadable: int = 0

    @property
    def has_shown(self) -> bool:
        """Whether anything passed the filters."""
        return bool(self.shown or self.lines_shown)

    @property
    def has_more(self) -> bool:
        """Whether there is something that did not."""
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
        """How the run went."""
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
        shared: tuple[Share, Turned] | None = None,
    ) -> None:
        """Begin a run.

        Shape: `memory` is what it starts from, and what it learns more in. Of a `shared` run only
        the frames of a share are shown, by a sink that writes to a stream that keeps their order.

        Raises: UsageError for filters that make no sense.
        """
        self.options = options
        self.memory = Memory() if memory is None else memory
        self.totals = Totals()
        self._decoder = FrameDecoder(options.settings(self.memory), self.memory)
        self._filter = options.frame_filter()
        self.line_filter = LineFilter(options.filters)
        self.offered = Offered(options.filters)
        self._sink = sink
        self._shared = shared

    @property
    def passes_all(self) -> bool:
        """Whether no frame is left out."""
        return self._filter.passes_all

    @property
    def on_ending(self) -> Callable[[Ending], None] | None:
        """Who wants to hear of connections that end, if anybody does."""
        return self._sink.ending if isinstance(self._sink, HearsEndings) else None

    def frames(self, frames: Iterable[Frame]) -> None:
        """Decode frames and show those that pass the filter."""
        frames = self._begun(frames)
        if self._shared is not None:
            self._show_share(frames, *self._shared)
        elif self._filter.passes_all:
            self._show_all(frames)
        elif isinstance(self._sink, Paired):
            self._show_exchanges(frames)
        else:
            for frame in frames:
                self._show_alone(self._decode(frame))

    def _begun(self, frames: Iterable[Frame]) -> Iterable[Frame]:
        """The frames; the time of the run's first one is where relative times count from."""
        if self.totals.frames:
            return frames
        rest = iter(frames)
        first = next(rest, None)
        if first is None:
            return ()
        self._filter.begin(first.time_ns)
        if isinstance(self._sink, HearsStart):
            self._sink.begin(first.time_ns)
        return chain((first,), rest)

    def _show_all(self, frames: Iterable[Frame]) -> None:
        totals = self.totals
        decode = self._decoder.decode
        quick = self._sink.quick if isinstance(self._sink, QuickPaired) else None
        for frame in frames:
            number = totals.frames
            totals.frames = number + 1
            if quick is not None and quick(frame):
                totals.shown += 1
            else:
                self._show(decode(frame, number))

    def _show_share(self, frames: Iterable[Frame], share: Share, turned: Turned) -> None:
        """Show some frames, and let the others tell what they tell."""
        sink, totals = self._sink, self.totals
        passes_all = self._filter.passes_all
        quick = sink.quick if isinstance(sink, QuickPaired) and passes_all else None
        pass_over = sink.pass_over if isinstance(sink, Paired) else None
        for frame in frames:
            number = totals.frames
            totals.frames = turned.at = number + 1
            if not share.owns(frame):
                if needs_learning(frame.api_key):
                    self._decoder.decode(frame, number)
                if pass_over is not None:
                    pass_over(frame)
            elif quick is not None and quick(frame):
                totals.shown += 1
            else:
                self._show_alone(self._decoder.decode(frame, number))

    def _show_exchanges(self, frames: Iterable[Frame]) -> None:
        """Hold requests back: whether an exchange is wanted may depend on its response."""
        held = _Held(self._show_alone, self._show_exchange)
        for frame in frames:
            held.frame(self._decode(frame))
        held.finish()

    def _show_exchange(self, asked: DecodedFrame, answered: DecodedFrame) -> None:
        if self._filter.passes_exchange(asked, answered):
            self._show(asked)
            self._show(answered)

    def _decode(self, frame: Frame) -> DecodedFrame:
        number = self.totals.frames
        self.totals.frames = number + 1
        decoded = self._decoder.decode(frame, number)
        if not self.totals.shown:
            self.offered.see_frame(decoded)
        return decoded

    def _show_alone(self, decoded: DecodedFrame) -> None:
        if self._filter.passes(decoded):
            self._show(decoded)

    def _show(self, decoded: DecodedFrame) -> None:
        self.totals.shown += 1
        for finding in decoded.findings:
            self.totals.findings[finding.id] += 1
        self._sink.frame(decoded)

    def file_lines(self, lines: Iterable[FileLine]) -> None:
        """Show the lines of a file that pass the filter; `totals.files` counts all of them."""
        show = self._sink.file_line
        keep = self.line_filter.apply
        if self._shared is not None and not self._shared[0].is_first:
            return
        for line in lines:
            kept = keep(line)
            if kept is None:
                self.offered.see_line(line)
            else:
                self.totals.lines_shown += 1
                show(kept)

    def finish(self) -> None:
        """End the output. Order: once, whatever ended the run."""
        if self._shared is not None:
            self._shared[1].at = inf
        self._sink.finish()


class _Held(WholePaired):
    """Requests that wait until it is clear whether they are shown."""

    def __init__(
        self,
        alone: Callable[[DecodedFrame], None],
        both: Callable[[DecodedFrame, DecodedFrame], None],
    ) -> None:
        super().__init__()
        self._alone = alone
        self._both = both

    def exchange(
        self, asked: DecodedFrame | None, answered: DecodedFrame | None, _is_awaited: bool, /
    ) -> None:
        if asked is not None and answered is not None:
            self._both(asked, answered)
        elif (one := asked or answered) is not None:
            self._alone(one)
