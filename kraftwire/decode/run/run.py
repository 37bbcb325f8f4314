"""A run of the decode tool: frames and file lines pass the filter, go to a sink, and are counted.

Owns the sink's protocol and the totals that set the exit code. Where frames and lines come from is
the business of `inputs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kraftwire.decode.body.findings import LOSSES
from kraftwire.decode.body.frame import DecodedFrame, FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.decode.files.report import ExitCode, FileLine, FileReport
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.framing.health import Health
from kraftwire.decode.pairing.outbox import Ending
from kraftwire.decode.render.pending import Pending
from kraftwire.decode.run.filters import FrameFilter
from kraftwire.limits import RENDER_PENDING_BYTES_MAX

__all__ = ["Run", "Sink", "Totals"]


# What a decoded frame occupies beside its bytes.
_FRAME_BYTES = 2000


class Sink(Protocol):
    """Shows frames and lines: one kind of output.

    Order: `frame` and `file_line` as they come, then `finish` once, also after a run that was
    interrupted.
    Shape: a sink may have more. `quick(frame: Frame) -> bool` takes a frame that nobody has
    decoded and tells whether that was possible; it is asked first where all frames are wanted. A
    sink with a true `shows_exchanges` gets a request, though it does not pass the filter, if its
    response does, and the other way round. `ending(ending: Ending)` hears of connections that end.
    """

    def frame(self, frame: DecodedFrame) -> None:
        """Show a frame that passed the filter."""

    def file_line(self, line: FileLine) -> None:
        """Show a batch, an index entry or a state file."""

    def finish(self) -> None:
        """Show what is left, such as statistics, and flush."""


@dataclass(slots=True)
class Totals:
    """What a run has seen.

    Shape: `frames` counts all frames, `shown` those that passed the filter, and `findings` is of
    these by id; `captures` has the health of each capture by its name.
    """

    frames: int = 0
    shown: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    captures: dict[str, Health] = field(default_factory=dict)
    files: FileReport = field(default_factory=FileReport)
    unreadable: int = 0

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
        if not self.frames and not self.files.line_count and not is_known_file:
            return ExitCode.NOTHING
        return ExitCode.PARTIAL if self.has_losses else ExitCode.CLEAN


class Run:
    """Takes frames and lines of all inputs, one after the other."""

    def __init__(self, settings: Settings, frame_filter: FrameFilter, sink: Sink) -> None:
        self.settings = settings
        self.totals = Totals()
        self._decoder = FrameDecoder(settings)
        self._filter = frame_filter
        self._sink = sink

    @property
    def on_ending(self) -> Callable[[Ending], None] | None:
        """Who wants to hear of connections that end, if anybody does."""
        hear: Callable[[Ending], None] | None = getattr(self._sink, "ending", None)
        return hear

    def frames(self, frames: Iterable[Frame]) -> None:
        """Decode frames and show those that pass the filter."""
        if self._filter.passes_all:
            self._show_all(frames)
        elif getattr(self._sink, "shows_exchanges", False):
            self._show_exchanges(frames)
        else:
            for frame in frames:
                self._show_alone(self._decode(frame))

    def _show_all(self, frames: Iterable[Frame]) -> None:
        totals = self.totals
        decode, quick = self._decoder.decode, getattr(self._sink, "quick", None)
        for frame in frames:
            number = totals.frames
            totals.frames = number + 1
            if quick is not None and quick(frame):
                totals.shown += 1
            else:
                self._show(decode(frame, number))

    def _show_exchanges(self, frames: Iterable[Frame]) -> None:
        """Hold requests back: whether an exchange is wanted may depend on its response."""
        held: Pending[DecodedFrame] = Pending(RENDER_PENDING_BYTES_MAX)
        for frame in frames:
            decoded = self._decode(frame)
            request = frame.request
            if request is None or not request.has_response:
                self._show_alone(decoded)
            elif frame.is_request:
                weight = frame.size + _FRAME_BYTES
                for each in held.add(frame.connection, request, decoded, weight):
                    self._show_alone(each)
            else:
                asked = held.take(frame.connection, request)
                for each in held.skipped():
                    self._show_alone(each)
                if asked is None:
                    self._show_alone(decoded)
                elif self._filter.passes_exchange(asked, decoded):
                    self._show(asked)
                    self._show(decoded)
        for each in held.rest():
            self._show_alone(each)

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

    def file_lines(self, lines: Iterable[FileLine]) -> None:
        """Show the lines of a file; `totals.files` counts them."""
        show = self._sink.file_line
        for line in lines:
            show(line)

    def finish(self) -> None:
        """End the output. Order: once, whatever ended the run."""
        self._sink.finish()
