"""Lines of files for people: one for each batch, index entry or state file."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from kraftwire.decode.files.report import FileLine
from kraftwire.decode.text import utc_text, with_remarks
from kraftwire.inspect.values import cut

_HEAD = (
    f"#{'byte':>11} {'offsets':>21} {'records':>8} {'epoch':>5} {'bytes':>9} {'codec':6} "
    f"{'largest timestamp':24} remarks"
)
_TEXT_MAX = 160
_SUBJECTS_MAX = 2
_TYPES_MAX = 100
# Source: Kafka's `RemoteLogSegmentState`.
_SEGMENT_STATES = {
    0: "copy started", 1: "copied", 2: "deletion started", 3: "deleted",
}  # fmt: skip


class FileLines:
    """Makes the lines of files; a heading with the name and the columns precedes each file."""

    def __init__(self) -> None:
        self._file = ""

    def lines(self, line: FileLine) -> list[str]:
        """Return the line of a batch, an entry or a state file, after headings it needs."""
        data = line.json
        before = []
        if data["file"] != self._file:
            self._file = data["file"]
            before = [f"# {self._file}"] + ([_HEAD] if line.batch is not None else [])
        if line.batch is not None:
            return [*before, _batch(data)]
        rest = {key: value for key, value in data.items() if key not in ("file", "type")}
        if set(rest) == {"data"}:
            return [*before, f"  {cut(json.dumps(rest['data']), _TEXT_MAX)}"]
        return [*before, "  " + "  ".join(f"{key} {value}" for key, value in rest.items())]


def _batch(data: dict[str, Any]) -> str:
    count = "?" if data["count"] is None else data["count"]
    return (
        f"{data['position']:>12} {_offsets(data):>21} {count:>8} "
        f"{data['partitionLeaderEpoch']:>5} {data['size']:>9} {data['compression']:6} "
        f"{_time(data['maxTimestamp']):24} {', '.join(_remarks(data))}"
    ).rstrip()


def _offsets(data: dict[str, Any]) -> str:
    return f"{data['baseOffset']}-{data['lastOffset']}"


def _time(milliseconds: int) -> str:
    return "-" if milliseconds < 0 else utc_text(milliseconds)


def _remarks(data: dict[str, Any]) -> list[str]:
    remarks = [] if data["isValid"] else ["CRC IS WRONG"]
    if data["isControl"]:
        remarks.append("control")
    if data["isTransactional"]:
        remarks.append("transactional")
    if data["producerId"] is not None and data["producerId"] >= 0:
        remarks.append(f"producer {data['producerId']}/{data['producerEpoch']}")
    types: Counter[str] = Counter()
    subjects: dict[str, dict[str, None]] = {}
    for record in data.get("records") or ():
        found = _type(record)
        if found is not None:
            types[found] += 1
            if (subject := _subject(record)) and len(subjects) <= _TYPES_MAX:
                subjects.setdefault(found, {})[subject] = None
    for name, count in types.items():
        text = name if count == 1 else f"{count} {name}"
        remarks.append(with_remarks(text, _first(list(subjects.get(name, ())))))
    return remarks


def _first(subjects: list[str]) -> list[str]:
    shown = subjects[:_SUBJECTS_MAX]
    more = len(subjects) - len(shown)
    return [", ".join(shown) + (f" +{more}" if more else "")] if shown else []


def _subject(record: dict[str, Any]) -> str:
    """Return the subject of a coordinator's record, or of a record about a tiered segment."""
    decoded = record.get("decoded")
    data = decoded["data"] if decoded else None
    if not isinstance(data, dict):
        return ""
    key = data.get("key")
    if isinstance(key, dict):
        value = data.get("value")
        return _of_coordinator(key, value if isinstance(value, dict) else None)
    segment = data.get("remoteLogSegmentId")
    place = (segment or data).get("topicIdPartition")
    if not isinstance(place, dict):
        return ""
    text = f"{place['name']}-{place['partition']}"
    if "startOffset" in data:
        text += f" {data['startOffset']}-{data['endOffset']}"
    state = data.get("remoteLogSegmentState")
    return f"{text} {_SEGMENT_STATES.get(state, state)}" if state is not None else text


def _of_coordinator(key: dict[str, Any], value: dict[str, Any] | None) -> str:
    group = key.get("group", key.get("groupId"))
    parts = [] if group is None else [f"group {group}"]
    if "transactionalId" in key:
        parts.append(f"transaction {key['transactionalId']}")
    topic = key.get("topic", key.get("topicId"))
    if topic is not None:
        parts.append(f"{topic}-{key.get('partition')}")
    if value is None:
        parts.append("deleted")
    elif "offset" in value:
        parts.append(f"@{value['offset']}")
    return " ".join(parts)


def _type(record: dict[str, Any]) -> str | None:
    """Return the type of a record that Kafka wrote itself, in either form of records."""
    decoded = record.get("decoded")
    found = decoded["type"] if decoded else record.get("type")
    return None if found is None else str(found)
