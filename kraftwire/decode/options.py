"""The options of a decode run, as one value: for the command line, Python programs and workers.

Owns nothing but the choice; each part of the decoder takes from it what it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kraftwire.capture.tls import KeyLog
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.filters.frames import FrameFilter
from kraftwire.decode.filters.options import FilterOptions
from kraftwire.decode.limits import FrameBudget
from kraftwire.records.json_form import Detail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.decode.files.segment import FileOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How frames and files are decoded; picklable.

    `records` says how much of records JSON shows: ``none``, ``summary`` or ``full``.
    `family` overrides what the folder of a log file shows of its records. `keys` are the secrets of
    encrypted connections. `filters` choose frames. `frame_budget` bounds what one frame may take;
    None cuts nothing. `is_brief` for lines of frames: records inside batches are not read, and
    bodies are not compared with the bytes that Kafka writes.
    """

    records: Detail = "full"
    show_secrets: bool = False
    family: str | None = None
    keys: KeyLog | None = None
    filters: FilterOptions = field(default_factory=FilterOptions)
    frame_budget: FrameBudget | None = None
    is_brief: bool = False

    def settings(self, memory: Memory) -> Settings:
        """Return the settings for decoding frames; names of topics are those of a memory."""
        form = RecordsForm("none" if self.is_brief else self.records, self.show_secrets)
        return Settings(form, memory.topics, self.frame_budget, self.is_brief)

    def files(self) -> FileOptions:
        """Return the options for decoding log directories."""
        from kraftwire.decode.files.segment import FileOptions  # captures do without

        return FileOptions(self.records, self.show_secrets, self.family)

    def frame_filter(self) -> FrameFilter:
        """Return the filter of frames. Raises: UsageError for a value that makes no sense."""
        return FrameFilter(self.filters)
