"""Lines of files for people: a batch, an index entry or a state file each on one line."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from kraftwire.decode.files.report import FileLine
from kraftwire.decode.render.text import utc_text
from kraftwire.decode.render.values import cut

__all__ = ["FileLines"]

_HEAD = (
    f"#{'byte':>11} {'offsets':>21} {'records':>8} {'epoch':>5} {'bytes':>9} {'codec':6} "
    f"{'largest timestamp':24} remarks"
)
_TEXT_MAX = 160


class FileLines:
    """Makes the lines; a file's first line has its name, and heads of columns, before it."""

    def __init__(self) -> None:
        self._file = ""

    def lines(self, line: FileLine) -> list[str]:
        """The line of a batch, an entry or a state file, and what has to stand before it."""
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
    types = Counter(filter(None, map(_type, data.get("records") or ())))
    remarks += [name if count == 1 else f"{count} {name}" for name, count in types.items()]
    return remarks


def _type(record: dict[str, Any]) -> str | None:
    """What a record of Kafka's own holds, in either form of records."""
    decoded = record.get("decoded")
    found = decoded["type"] if decoded else record.get("type")
    return None if found is None else str(found)
