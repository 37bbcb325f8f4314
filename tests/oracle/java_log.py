"""What a controller of Kafka has written, as an observer fetches it.

Owns what has been read so far: scripts look at the end of the log again and again.
"""

from __future__ import annotations

from typing import Any

from tests.oracle.shared_scripts import Tools

_FETCH, _VERSION = 1, 18
_OBSERVER = 999, bytes(15) + b"\7"
_FENCED_LEADER_EPOCH = 74
_CONTROL = 32
_WAIT_S = 15


class JavaLog:
    """The records of a log, which may become shorter when another epoch begins."""

    def __init__(self, tools: Tools, port: int) -> None:
        self._node, self._proto = tools.node, tools.proto
        self._cluster = tools.oracle.CID
        self._port = port
        self._connection: Any = None
        self._forget()

    def _forget(self) -> None:
        self._records: list[tuple[Any, ...]] = []
        self._end = self._epoch = self._last_epoch = 0

    def dump(self, first: int = 0, raw: bool = False) -> list[tuple[Any, ...]]:
        """Return the records from an offset on: offset, that of the batch, name, version, fields.

        Raises: AssertionError for a fetch that Kafka refuses.
        """
        del raw
        while not self._is_at_end():
            pass
        start = len(self._records)
        while start and self._records[start - 1][0] >= first:
            start -= 1
        return self._records[start:]

    def close(self) -> None:
        """Leave the controller; the next look at its log connects again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _is_at_end(self) -> bool:
        """Fetch once; returns whether there was nothing new."""
        if self._connection is None:
            self._connection = self._node.Conn("127.0.0.1", self._port, "dump", _WAIT_S)
        place = self._epoch, self._last_epoch, self._end
        body = self._node.fetch_body(self._cluster, *_OBSERVER, *place, 1 << 40, wait=0)
        answer = self._connection.call(_FETCH, _VERSION, body)
        found = answer["Responses"][0]["Partitions"][0]
        if found["ErrorCode"] == _FENCED_LEADER_EPOCH:
            self._epoch = found["CurrentLeader"]["LeaderEpoch"]
            return False
        if (found.get("DivergingEpoch") or {}).get("EndOffset", -1) >= 0:
            self._forget()
            return False
        assert found["ErrorCode"] == 0, found
        for batch in self._proto.batches(found["Records"] or b""):
            self._add(batch)
        return not found["Records"]

    def _add(self, batch: dict[str, Any]) -> None:
        proto, base = self._proto, batch["base"]
        self._last_epoch, self._end = batch["epoch"], batch["last"] + 1
        if batch["attr"] & _CONTROL:
            self._records.append((base, base, "control", 0, {}))
            return
        for offset, _, value in proto.records(batch):
            reader = proto.R(value)
            _, number, version = reader.uvar(), reader.uvar(), reader.uvar()
            name = proto.META[number]["name"]
            fields = proto.decode(name, value[reader.p :], version)
            self._records.append((offset, base, name, version, fields))
