"""Tables by their names, typed ones too, and by patterns such as ``*_response``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from kraftwire.errors import UsageError
from kraftwire.spark.tables.apis import TYPED_TABLES, TypedTable, typed_table
from kraftwire.spark.tables.columns import Table
from kraftwire.spark.tables.derived import (
    ANOMALIES,
    CLUSTERS,
    GROUP_LAG,
    GROUPS,
    PARTITIONS,
    RAFT_TIMELINE,
    REPLICA_LAG,
)
from kraftwire.spark.tables.files import BAD_INPUT, BATCHES, FILES, METADATA_RECORDS, RECORDS
from kraftwire.spark.tables.frames import (
    CONNECTIONS,
    EXCHANGES,
    FRAMES,
    GROUP_EXCHANGES,
    PARTITION_TRAFFIC,
    QUORUM_OBSERVATIONS,
    RAFT_EXCHANGES,
)

# Every table with a fixed schema. The typed ones are made from the message schemas.
TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        FRAMES, EXCHANGES, CONNECTIONS, BATCHES, RECORDS, METADATA_RECORDS, QUORUM_OBSERVATIONS,
        CLUSTERS, RAFT_TIMELINE, REPLICA_LAG, GROUP_LAG, GROUPS, PARTITIONS, ANOMALIES, BAD_INPUT,
        FILES, PARTITION_TRAFFIC, RAFT_EXCHANGES, GROUP_EXCHANGES,
    )
}  # fmt: skip

AnyTable = Table | TypedTable

# The word for every table that there is.
ALL = "all"

_SIGNS = frozenset("*?[")


def find_table(name: str) -> AnyTable:
    """Return a table by its name. Raises: UsageError if there is none."""
    return TABLES[name] if name in TABLES else typed_table(name)


def matching(patterns: Iterable[str], more: Collection[str] = ()) -> list[str]:
    """Return the names of the tables that match names, patterns or `ALL`, each once.

    Order: that of the tables; `more` are further names. Raises: UsageError with the known tables if
    a pattern matches none.
    """
    known = [*TABLES, *more, *TYPED_TABLES]
    chosen: set[str] = set()
    for pattern in patterns:
        found = known if pattern == ALL else [n for n in known if fnmatchcase(n, pattern)]
        if not found:
            raise UsageError(f"there is no table {pattern!r}; {_hint(pattern, known)}")
        chosen.update(found)
    return [name for name in known if name in chosen]


def _hint(word: str, known: Collection[str]) -> str:
    near = [] if _SIGNS & set(word) else get_close_matches(word, known, n=3, cutoff=0.7)
    if near:
        return f"did you mean {', '.join(near)}?"
    ours = [name for name in known if name not in TYPED_TABLES]
    return f"there are {', '.join(ours)}, and two for each API, such as fetch_request"
