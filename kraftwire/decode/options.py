"""The options of a decode run, as one value: for the command line, Python programs and workers.

Owns nothing but the choice; each part of the decoder takes from it what it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kraftwire.capture.tls import KeyLog
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.limits import FrameBudget
from kraftwire.records.json_form import Detail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.decode.files.segment import FileOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """The values of the options that say which frames, batches, records and entries a run shows, as
    texts of the command line.

    A filter of frames tests what is in them and their times. For a file, topic and partition are
    those of its folder, offsets and times those of its records, keys and groups those in them;
    filters of what only frames have are refused.

    Each tuple holds values of one option, of which any may match; a value with ``!`` or
    ``^`` in front excludes. Names may have the wildcards ``*`` and ``?``; numbers may be ranges
    such as ``3-5`` and ``12+``. `offset` and `key` are those of records in log files.
    Units: `min_latency_ms` milliseconds; `since` and `until` as `filters.values.parse_time` takes
    them, or with a plus in seconds since the first frame.
    """

    api: tuple[str, ...] = ()
    api_version: tuple[str, ...] = ()
    client_id: tuple[str, ...] = ()
    connection: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    min_latency_ms: float | None = None
    since: str | None = None
    until: str | None = None
    offset: tuple[str, ...] = ()
    key: tuple[str, ...] = ()


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
