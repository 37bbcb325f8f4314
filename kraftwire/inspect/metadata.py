"""Tables of the state of a metadata log, and lines of how two states differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TextIO

from kraftwire.decode.text import count_text, double_text, ids_text, listed, utc_text
from kraftwire.inspect.stories.text import write_lines
from kraftwire.inspect.tables import Table, width_of, write_table
from kraftwire.story.metadata.differences import EntityChange
from kraftwire.story.metadata.log_state import LogState
from kraftwire.story.metadata.rows import Row, acl_text, quota_entity, resource_text, rows
from kraftwire.story.raft.metadata_log import MECHANISMS

# Rows of a table, unless its subject was asked for.
_ROWS_MAX = 50

_NO_LEADER = -1
_STATES = {"fenced": "fenced", "inControlledShutdown": "shutting down"}

_Data = dict[str, Any]


def summary_lines(state: LogState, source: str) -> list[str]:
    """Return what a state is about, and what it lacks."""
    snapshot = state.snapshot
    start = f"from the snapshot at {snapshot.offset}" if snapshot is not None else "from offset 0"
    where = f"{source}: after offset {state.offset}, epoch {state.image.epoch}, read {start}"
    return [where, *_remarks(state)]


def _remarks(state: LogState) -> list[str]:
    """Return why the state may be wrong."""
    lines = []
    for first, last in state.missing:
        lines.append(f"missing: offsets {first} to {last}; only what other records say is shown")
    if state.image.transaction_offset >= 0:
        offset = state.image.transaction_offset
        lines.append(f"a metadata transaction that began at offset {offset} is open: not shown")
    image = state.image
    if image.problem:
        count = count_text(image.problem_count, "record")
        lines.append(f"{count} could not be applied; the first: {image.problem}")
    return lines + state.problems


def state_to_json(state: LogState, source: str) -> _Data:
    """Return the object that precedes the rows."""
    snapshot = state.snapshot
    return {
        "subject": "log",
        "source": source,
        "offset": state.offset,
        "epoch": state.image.epoch,
        "snapshot": None if snapshot is None else snapshot._asdict(),
        "isComplete": state.is_complete,
        "missing": [list(each) for each in state.missing],
        "problems": _remarks(state),
    }


def write_subject(state: LogState, subject: str, stream: TextIO, *, is_all: bool) -> None:
    """Write the tables of a subject; with `is_all` the first rows of each."""
    tables = [begin() for begin in _TABLES[subject]]
    for row in rows(state, [subject]):
        for each in tables:
            each.add(row)
    for number, each in enumerate(tables):
        table = each.finish()
        if table.rows:
            write_table(table, stream, width_of(stream), rows_max=_ROWS_MAX if is_all else None)
        elif not is_all and number == 0:
            write_lines(stream, [f"{table.title}: none", ""])


def change_line(change: EntityChange) -> str:
    """Return a line about an entity that differs."""
    sign = {"added": "+", "removed": "-", "changed": "~"}[change.kind]
    if change.first is None or change.second is None:
        return f"{sign} {change.row.name}"
    old, new = change.first.data, change.second.data
    parts = [f"{key} {_change(old.get(key), new.get(key))}" for key in change.fields]
    return f"{sign} {change.row.name}: {', '.join(parts)}"


def _change(old: Any, new: Any) -> str:
    """Return two values as text; of lists of objects, what only one of them has."""
    if old == new:
        return "(hidden)"
    if isinstance(old, list) and isinstance(new, list) and isinstance((old + new)[0], dict):
        old, new = [e for e in old if e not in new], [e for e in new if e not in old]
    return f"{_value(old)} -> {_value(new)}"


def _value(value: Any) -> str:
    if value is None or isinstance(value, str):
        return "none" if value is None else value
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _OpenTable:
    """A table that takes the rows of a subject one by one; `finish` returns it."""

    add: Callable[[Row], None]
    finish: Callable[[], Table]


_Begin = Callable[[], _OpenTable]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Begins a table of the rows of a subject, or of a type; the offset is its last column.

    `form` is the table without rows and without that column.
    """

    form: Table
    cells: Callable[[Row], Sequence[str]]
    only: str = ""

    def __call__(self) -> _OpenTable:
        """Return a table without rows yet."""
        head = (*self.form.head, "offset")
        right = (*self.form.right, len(head) - 1)
        table = replace(self.form, head=head, rows=[], right=right)

        def add(row: Row) -> None:
            if row.type == self.only or not self.only:
                table.rows.append((*self.cells(row), _offset(row)))

        return _OpenTable(add, lambda: table)


def _offset(row: Row) -> str:
    """Return when something changed; nothing for what formatting has written."""
    if row.offset < 0:
        return ""
    return f"{'' if row.is_exact else '<='}{row.offset}"


def _feature(row: Row) -> Sequence[str]:
    data, name = row.data, row.name.removeprefix("feature ")
    found = (data.get(key) for key in ("featureLevel", "kRaftVersion", "zkMigrationState"))
    level = next((each for each in found if each is not None), "")
    return name, str(level)


def _endpoints(data: _Data, key: str = "endPoints") -> str:
    return ", ".join(f"{each['name']}://{each['host']}:{each['port']}" for each in data[key])


def _broker(row: Row) -> Sequence[str]:
    data = row.data
    states = [word for key, word in _STATES.items() if data.get(key)]
    return (
        str(data["brokerId"]), ", ".join(states) or "active", str(data["brokerEpoch"]),
        data["rack"] or "", _endpoints(data),
    )  # fmt: skip


def _directories() -> _OpenTable:
    """Begin the table of the brokers' log directories."""
    table = Table("Log directories", ("broker", "directory", "state"), right=(0,))

    def add(row: Row) -> None:
        cordoned = row.data.get("cordonedLogDirs") or ()
        for each in row.data.get("logDirs", ()):
            state = "cordoned" if each in cordoned else "online"
            table.rows.append((str(row.data["brokerId"]), each, state))
        for each in row.derived["offlineLogDirs"]:
            table.rows.append((str(row.data["brokerId"]), each, "offline"))

    return _OpenTable(add, lambda: table)


def _leaderless() -> _OpenTable:
    """Begin the table of the partitions without a leader."""
    table = Table("Partitions without a leader", ("partition", "why"), names=(0,), lists=(1,))

    def add(row: Row) -> None:
        if "noLeader" in row.derived:
            name = row.name.removeprefix("partition ")
            table.rows.append((name, row.derived["noLeader"]))

    return _OpenTable(add, lambda: table)


def _supported(of: str, key: str) -> _OpenTable:
    """Begin the table of which nodes support which levels of features."""
    nodes: dict[tuple[str, str], list[int]] = {}

    def add(row: Row) -> None:
        for each in row.data["features"]:
            levels = f"{each['minSupportedVersion']}-{each['maxSupportedVersion']}"
            nodes.setdefault((each["name"], levels), []).append(row.data[key])

    def finish() -> Table:
        table = Table(f"Levels that {of} support", ("feature", "levels", of), lists=(2,))
        table.rows = [(*feature, ids_text(ids)) for feature, ids in sorted(nodes.items())]
        return table

    return _OpenTable(add, finish)


def _ids(data: _Data, key: str) -> str:
    return ",".join(map(str, data.get(key) or ()))


def _partition(row: Row) -> Sequence[str]:
    data = row.data
    leader = data["leader"]
    recovers = " (recovers)" if data.get("leaderRecoveryState") else ""
    return (
        row.name.removeprefix("partition "),
        "none" if leader == _NO_LEADER else f"{leader}{recovers}", str(data["leaderEpoch"]),
        _ids(data, "isr") or "none", _ids(data, "replicas"), _ids(data, "eligibleLeaderReplicas"),
        _ids(data, "lastKnownElr"), _ids(data, "addingReplicas"), _ids(data, "removingReplicas"),
        ", ".join(data.get("directories") or ()),
    )  # fmt: skip


def _acl(row: Row) -> Sequence[str]:
    what, resource = acl_text(row.data)
    return row.data["principal"], row.data["host"], what, resource


def _token(row: Row) -> Sequence[str]:
    data = row.data
    expires = utc_text(data["expirationTimestamp"])
    return data["tokenId"], data["owner"], listed(data["renewers"]), expires


_PARTITION_HEAD = (
    "partition", "leader", "epoch", "ISR", "replicas", "ELR", "last ELR", "adding", "removing",
    "directories",
)  # fmt: skip

_TABLES: dict[str, tuple[_Begin, ...]] = {
    "features": (_Kind(Table("Features", ("feature", "level"), right=(1,)), _feature),),
    "voters": (
        _Kind(
            Table("Voters", ("id", "directory", "endpoints"), right=(0,), lists=(2,)),
            lambda row: (
                str(row.data["voterId"]),
                row.data["voterDirectoryId"],
                _endpoints(row.data, "endpoints"),
            ),
        ),
    ),
    "controllers": (
        _Kind(
            Table("Controllers", ("id", "incarnation", "endpoints"), right=(0,), lists=(2,)),
            lambda row: (
                str(row.data["controllerId"]),
                row.data["incarnationId"],
                _endpoints(row.data),
            ),
        ),
        partial(_supported, "controllers", "controllerId"),
    ),
    "brokers": (
        _Kind(
            Table(
                "Brokers", ("id", "state", "epoch", "rack", "endpoints"), right=(0, 2), lists=(4,)
            ),
            _broker,
        ),
        _directories,
        partial(_supported, "brokers", "brokerId"),
    ),
    "topics": (
        _Kind(
            Table("Topics", ("topic", "id"), names=(0,)),
            lambda row: (row.data["name"], row.data["topicId"]),
            "TopicRecord",
        ),
        _Kind(
            Table("Partitions", _PARTITION_HEAD, right=(2,), names=(0,), optional=(9,)),
            _partition,
            "PartitionRecord",
        ),
        _leaderless,
    ),
    "configs": (
        _Kind(
            Table("Configurations", ("of", "key", "value"), names=(0, 1), lists=(2,)),
            lambda row: (resource_text(row.data), row.data["name"], row.data["value"]),
        ),
    ),
    "quotas": (
        _Kind(
            Table("Quotas", ("of", "key", "value"), right=(2,), lists=(0,)),
            lambda row: (quota_entity(row.data), row.data["key"], double_text(row.data["value"])),
        ),
    ),
    "users": (
        _Kind(
            Table("SCRAM users", ("user", "mechanism", "iterations"), right=(2,), names=(0,)),
            lambda row: (
                row.data["name"],
                MECHANISMS.get(row.data["mechanism"], str(row.data["mechanism"])),
                str(row.data["iterations"]),
            ),
        ),
    ),
    "acls": (
        _Kind(Table("ACLs", ("principal", "host", "operation", "resource"), names=(0, 3)), _acl),
    ),
    "tokens": (
        _Kind(
            Table(
                "Delegation tokens", ("token", "owner", "renewers", "expires"),
                names=(0, 1), lists=(2,),
            ),
            _token,
        ),
    ),
    "producers": (
        _Kind(
            Table("Producer ids", ("next", "broker", "broker epoch"), right=(0, 1, 2)),
            lambda row: (
                str(row.data["nextProducerId"]),
                str(row.data["brokerId"]),
                str(row.data["brokerEpoch"]),
            ),
        ),
    ),
}  # fmt: skip
