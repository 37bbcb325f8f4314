"""Options of the sources of logs, named as those of Spark's own Kafka source where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from kraftwire.errors import UsageError
from kraftwire.spark.logs.decode import LogOptions, decode_pieces
from kraftwire.spark.logs.plan import SPLIT_BYTES
from kraftwire.spark.logs.transactions import BatchFilter
from kraftwire.spark.sources.input_paths import InputPaths
from kraftwire.spark.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_STARTS = ("earliest", "latest")
# The prefix that Spark's Kafka source has for the client's properties.
_KAFKA = "kafka."

TABLE_CHOICES = ("records", "batches", "metadata_records", "bad_input", "files")

# Rows of one Arrow batch: the JVM holds a whole batch, ideally in the processor's cache.
_ROWS = 8192
_Item = TypeVar("_Item")


def check_stream_options(options: Any) -> None:
    """Refuse wrong options early: Spark hides errors that are raised when a stream starts.

    Raises: UsageError.
    """
    starts_late(options)
    offsets_max(options)


def starts_late(options: Any) -> bool:
    """Whether `startingOffsets` is ``latest``. Raises: UsageError."""
    return chosen(options, "startingOffsets", _STARTS) == "latest"


def offsets_max(options: Any) -> int | None:
    """Return `maxOffsetsPerTrigger`, None for no limit. Raises: UsageError."""
    name = "maxOffsetsPerTrigger"
    return None if options.get(name) is None else positive(options, name, 1)


def security_of(options: Any) -> dict[str, str] | None:
    """Return Kafka's client properties, the options ``kafka.*``, without that prefix; None if there
    are none."""
    return {
        key.removeprefix(_KAFKA): str(value)
        for key, value in options.items()
        if key.startswith(_KAFKA)
    } or None


def read_limit(offsets: int | None) -> ReadLimit:
    """Convert the limit to Spark's."""
    return ReadAllAvailable() if offsets is None else ReadMaxRows(offsets)


class LogRows:
    """Options of a read, and the rows of ranges; can be pickled."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self.table = chosen(options, "table", TABLE_CHOICES)
        self.paths = InputPaths(options, "kafka-log")
        self.with_snapshots = flag(options, "snapshots", default=True)
        self.split = positive(options, "splitBytes", SPLIT_BYTES)
        self._show_secrets = flag(options, "showSecrets", default=False)
        self._rows = positive(options, "batchRows", _ROWS)
        self._schema = schema

    def rows(
        self, file: str, start: int, end: int | None, batch_filter: BatchFilter | None
    ) -> Iterator[Any]:
        """Yield the rows of a range of a file, as Arrow batches that have exactly the schema."""
        target = to_arrow_schema(self._schema, timezone="UTC")
        known = frozenset(TABLES[self.table].arrow.names)
        options = LogOptions(
            frozenset({self.table}),
            self._show_secrets,
            batch_filter=batch_filter,
            # The rows count even if only columns of folders are wanted.
            columns=frozenset(target.names) & known or frozenset({"position"}),
        )
        for tables in decode_pieces(file, options, start, end):
            table = tables.pop(self.table, None)
            if table is not None and len(table):
                table = self.paths.with_columns(table, file, target)
                batches = table.select(target.names).cast(target).to_batches(self._rows)
                del table
                while batches:
                    yield batches.pop(0)


def by_size(items: Iterable[tuple[_Item, int]], split: int) -> Iterator[tuple[_Item, ...]]:
    """Group items by their sizes into groups of about `split` bytes; at least one group."""
    group: list[_Item] = []
    size = 0
    is_any = False
    for item, length in items:
        if group and size + length > split:
            yield tuple(group)
            is_any = True
            group, size = [], 0
        group.append(item)
        size += length
    # Without any partition, Spark would read one that does not exist.
    if group or not is_any:
        yield tuple(group)


def chosen(options: Any, name: str, choices: Sequence[str]) -> str:
    """Return an option that is one of some words, by default the first. Raises: UsageError."""
    value = str(options.get(name, choices[0]))
    if value not in choices:
        raise UsageError(f"option {name}: expected one of {', '.join(choices)}, found {value!r}")
    return value


def check_log_options(options: Any) -> None:
    """Refuse wrong options early: Spark hides errors that are raised when a stream starts.

    Raises: UsageError.
    """
    for name in ("snapshots", "showSecrets"):
        flag(options, name, default=False)
    for name in ("splitBytes", "batchRows"):
        positive(options, name, 1)
    pushes(options)


def pushes(options: Any) -> bool:
    """Whether filters may save reading (`filterPushdown`). Raises: UsageError.

    Off by default. Spark plans a read once for each `load()`, when the first filter arrives, and
    keeps that plan: a later query of the same DataFrame, with other filters or none, would silently
    get the rows of the earlier one.
    """
    return flag(options, "filterPushdown", default=False)


def positive(options: Any, name: str, default: int) -> int:
    """Return an option that is a positive number. Raises: UsageError."""
    text = str(options.get(name, default))
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise UsageError(f"option {name}: expected 1 or more, found {text!r}")
    return int(text)


def flag(options: Any, name: str, *, default: bool) -> bool:
    """Return an option that is true or false. Raises: UsageError."""
    value = str(options.get(name, default)).lower()
    if value not in ("true", "false"):
        raise UsageError(f"option {name}: expected true or false, found {value!r}")
    return value == "true"
