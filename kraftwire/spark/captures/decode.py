"""One pass over a capture: every frame is decoded once, for all the tables it has a part in."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from kraftwire import messages
from kraftwire.decode.framing.health import Health
from kraftwire.decode.pairing.conversations import Capture
from kraftwire.decode.pairing.outbox import Ending
from kraftwire.records.reader import Batch
from kraftwire.spark.captures.batches import FieldRecords
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.exchange import Exchange, Exchanges, exchange_cells
from kraftwire.spark.captures.findings import bad_rows, finding_cells
from kraftwire.spark.captures.helpers import GROUP_APIS, RaftTalk, helper_cells
from kraftwire.spark.captures.place import end_of, ends, micros, start_of, uuid_text
from kraftwire.spark.captures.quorum import Observer
from kraftwire.spark.captures.rows import Rows
from kraftwire.spark.captures.traffic import TRAFFIC_APIS, traffic_rows
from kraftwire.spark.tables import TABLES

__all__ = ["CAPTURE_TABLES", "Tables", "decode_tables"]

# What a capture gives.
CAPTURE_TABLES = (
    "frames",
    "exchanges",
    "connections",
    "batches",
    "metadata_records",
    "quorum_observations",
    "partition_traffic",
    "raft_exchanges",
    "group_exchanges",
    "bad_input",
    "files",
)


def decode_tables(source: str, *, tables: Collection[str] = CAPTURE_TABLES) -> dict[str, pa.Table]:
    """The tables of a capture, by name.

    Shape: all of `tables` are there, perhaps without rows. Raises: StorageError if the source
    cannot be opened or is no capture.
    """
    made = Tables(tables)
    made.read(source)
    return {
        name: pa.Table.from_batches(rows.take(), schema=TABLES[name].arrow)
        for name, rows in made.rows.items()
    }


class Tables:
    """Collects the rows of a capture's tables; `rows` has those that are wanted, by name."""

    def __init__(self, wanted: Collection[str]) -> None:
        self.rows = {name: Rows(TABLES[name]) for name in CAPTURE_TABLES if name in wanted}
        self._bodies = Bodies()
        self._exchanges = Exchanges()
        self._raft = RaftTalk()
        self._observer = Observer()
        self._connections: dict[str, dict[str, Any]] = {}

    def read(self, path: str) -> None:
        """Take all frames of a capture, and what is left when it ends."""
        capture = Capture(path, on_ending=self._end)
        for frame in capture:
            self._frame(self._bodies.read(frame))
        for exchange in self._exchanges.rest():
            self._exchange(exchange)
        self._finish(path, capture.health)

    def _add(self, name: str, cells: tuple[Any, ...]) -> None:
        rows = self.rows.get(name)
        if rows is not None:
            rows.add(cells)

    def _frame(self, read: Read) -> None:
        frame = read.frame
        about = self._connections.get(frame.connection)
        if about is None:
            about = self._connections[frame.connection] = {"file": frame.file, "frames": 0}
            about["position"], about["first"] = start_of(frame), frame.time_ns
        about["frames"] += 1
        about["last"] = frame.time_ns
        if frame.api_key == 18 and frame.is_request and read.body is not None:
            name = f"{read.body.client_software_name} {read.body.client_software_version}"
            about["software"] = name.strip() or None
        request = frame.request
        self._add(
            "frames",
            (
                frame.file, start_of(frame), end_of(frame), frame.connection, frame.direction,
                micros(frame.time_ns), frame.time_ns, frame.api_key, _api_name(frame.api_key),
                frame.api_version, frame.correlation_id, request.client_id if request else None,
                frame.size, read.remaining, finding_cells(read),
            ),
        )  # fmt: skip
        for cells in bad_rows(read):
            self._add("bad_input", cells)
        for field in read.fields:
            self._field(read, field)
        for exchange in self._exchanges.add(read):
            self._exchange(exchange)

    def _field(self, read: Read, field: FieldRecords) -> None:
        frame, where = read.frame, field.where
        place = (frame.file, start_of(frame), field.topic, uuid_text(where.topic_id))
        for batch in field.batches:
            is_valid = True if read.decoded is None else batch.is_valid
            cells = _batch_cells(batch, is_valid)
            self._add("batches", (*place, field.partition, field.source, *cells))
        for batch_json in field.own or ():
            for record in batch_json["records"] or ():
                told = _record_cells(batch_json, record)
                if told is not None:
                    self._add("metadata_records", (*place, field.partition, *told))

    def _exchange(self, exchange: Exchange) -> None:
        key = exchange.first.frame.api_key
        if "exchanges" in self.rows:
            self._add("exchanges", exchange_cells(exchange, self._bodies, _api_name(key)))
        if key in TRAFFIC_APIS and "partition_traffic" in self.rows:
            for cells in traffic_rows(exchange, self._bodies):
                self._add("partition_traffic", cells)
        if key in GROUP_APIS:
            self._add("group_exchanges", helper_cells(exchange))
        for each in self._raft.add(exchange):
            cluster = self._raft.cluster(each)
            self._add("raft_exchanges", helper_cells(each, cluster))
            for cells in self._observer.rows(each, cluster):
                self._add("quorum_observations", cells)
        for rows in self.rows.values():
            rows.pack()

    def _end(self, ending: Ending) -> None:
        about = self._connections.get(ending.connection)
        if about is not None:
            about.setdefault("closed_by", "client" if ending.is_by_client else "server")

    def _finish(self, path: str, health: Health) -> None:
        """The connections, and the file itself."""
        for name, about in self._connections.items():
            client, server = ends(name)
            self._add(
                "connections",
                (
                    about["file"], about["position"], name, client, server,
                    micros(about["first"]), micros(about["last"]), "kafka", None, None,
                    about["frames"], None, None, None, None, None, about.get("software"),
                    about.get("closed_by"),
                ),
            )  # fmt: skip
        for tls in health.tls:
            client, server = ends(tls.connection)
            self._add(
                "connections",
                (
                    path, None, tls.connection, client, server, None, None, "tls",
                    tls.client_bytes, tls.server_bytes, 0, None, None, None, None,
                    tls.server_name or None, None, None,
                ),
            )  # fmt: skip
        if health.problem:
            stage = "packet" if health.is_damaged else "file"
            id = "file-damaged" if health.is_damaged else "file-cut"
            self._add("bad_input", (path, None, 0, stage, id, health.problem, None))
        self._add("files", (path, None, "capture", *(None,) * 6))


def _api_name(key: int | None) -> str | None:
    return None if key is None else messages.API_NAMES.get(key)


def _batch_cells(batch: Batch, is_valid: bool) -> tuple[Any, ...]:
    time = batch.max_timestamp
    return (
        batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.count,
        batch.size, batch.compression, batch.crc, is_valid, batch.is_control,
        batch.is_transactional, batch.producer_id, batch.producer_epoch, batch.base_sequence,
        None if time is None or time < 0 else time * 1000,
    )  # fmt: skip


def _record_cells(batch: dict[str, Any], record: dict[str, Any]) -> tuple[Any, ...] | None:
    """A record that Kafka itself wrote; None if it is none or could not be decoded."""
    decoded = record["decoded"]
    if decoded is None:
        return None
    time = record["timestamp"]
    return (
        record["offset"],
        batch["partitionLeaderEpoch"],
        None if time is None or time < 0 else time * 1000,
        decoded["type"],
        decoded["version"],
        json.dumps(decoded["data"], separators=(",", ":")),
    )
