"""Folders of tables with the rows that a test wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kraftwire.spark.tables import TABLES

__all__ = ["SECOND", "START", "quorum", "two_days", "written"]

SECOND = 10**9
START = 1_795_206_000 * SECOND


def written(folder: Path, **rows: list[dict[str, Any]]) -> Path:
    """Write tables, each in two parts where it has two rows; returns the folder."""
    for name, some in rows.items():
        (folder / name).mkdir(parents=True)
        for part, half in enumerate((some[::2], some[1::2])):
            if half:
                table = pa.Table.from_pylist([_complete(name, row) for row in half],
                                             TABLES[name].arrow)
                pq.write_table(table, folder / name / f"part-{part}.parquet")
    return folder


def _complete(name: str, row: dict[str, Any]) -> dict[str, Any]:
    unknown = set(row) - set(TABLES[name].arrow.names)
    assert not unknown, f"{name} has no {unknown}"
    whole = {"file": "x.pcap", "position": 0, "time": row.get("time_ns", 0) // 1000, **row}
    return {key: whole[key] for key in TABLES[name].arrow.names if key in whole}


def _micros(seconds: float) -> int:
    return START // 1000 + round(seconds * 1_000_000)


def quorum(folder: Path, name: str = "client") -> Path:
    """Half a minute of a quorum whose leader falls silent; `name` is that of everything."""
    return written(
        folder,
        exchanges=[
            {
                "time_ns": START + at * SECOND // 10, "api_key": 1, "api_name": "Fetch",
                "client_id": name, "latency_ns": 500_000_000, "wait_ns": 498_000_000,
                "service_ns": 2_000_000, "request_size": 100, "response_size": 300,
                "errors": ["NOT_LEADER_OR_FOLLOWER"] if at == 7 else [],
            }
            for at in range(300)
        ],
        raft_timeline=[
            _leader(1, 1, "1", 10, name), _leader(13, 2, "2", None, name),
        ],
        replica_lag=[
            {
                "bucket": _micros(at), "topic": name, "partition": 0, "replica_id": 3,
                "lag_max": at % 5, "fetches": 2,
            }
            for at in (*range(10), *range(20, 30))
        ],
        group_lag=[
            {
                "bucket": _micros(at), "group_id": name, "topic": name, "partition": at % 2,
                "committed": at, "end_offset": 2 * at, "lag": at,
            }
            for at in range(4)
        ],
        groups=[
            {
                "group_id": name, "protocol": "classic", "generation": 1, "members": 2,
                "start": _micros(3), "end": _micros(5), "reason": name, "file": name,
            }
        ],
        connections=[
            {
                "connection": name, "client": name, "server": name, "protocol": "kafka",
                "first_time": _micros(0), "last_time": _micros(30), "frames": 600,
                "client_bytes": 30_000, "server_bytes": 90_000, "software": name,
            }
        ],
        anomalies=[
            {
                "rule": "silent-leader", "severity": "warning", "time": _micros(11),
                "end_time": _micros(14), "epoch": 1, "node": name, "file": f"a/{name}",
                "position": 1234, "detail": f"node 1 falls silent: {name}",
            }
        ],
        bad_input=[
            {"stage": "body", "id": name, "length": 10, "detail": name, "file": name},
            {"stage": "body", "id": name, "length": 20, "detail": "second"},
        ],
        files=[_file("a.pcap", 100, 90, 10), _file(f"{name}.pcap", 100, 90, 3)],
    )  # fmt: skip


def _leader(
    seconds: float, epoch: int, node: str, end: float | None, name: str
) -> dict[str, Any]:
    ended = None if end is None else START / SECOND + end
    details: dict[str, Any] = {"end": ended, "ending": "fell silent" if end else None}
    if ended is not None:
        details["leaderless"] = [ended, ended + 3]
    return {
        "time_ns": START + int(seconds * SECOND), "kind": "leader", "epoch": epoch, "node": node,
        "cluster": name, "text": f"is elected {name}", "details": json.dumps(details),
        "position": int(seconds),
    }


def _file(name: str, size: int, kafka: int, header: int) -> dict[str, Any]:
    rest = {f"{each}_bytes": 0 for each in ("tls", "other", "duplicate", "bad")}
    return {
        "file": name, "size": size, "kind": "capture", "kafka_bytes": kafka,
        "header_bytes": header, **rest,
    }


def two_days(folder: Path) -> Path:
    """Ten seconds of a quorum, and ten more two days later, under another leader."""
    day = 86_400 * SECOND
    times = [START + at * SECOND // 2 for at in range(21)]
    times += [each + 2 * day for each in times]
    hole = START / SECOND + 10, START / SECOND + 2 * 86_400
    common = {"cluster": "c", "kind": "leader"}
    first = {"end": hole[0], "ending": "leads to the end of the recording", "leaderless": None}
    return written(
        folder,
        exchanges=[{"time_ns": each, "api_name": "Fetch", "latency_ns": 1} for each in times],
        files=[
            {"kind": "capture", "recorded": [{"first_ns": at, "last_ns": at + 10 * SECOND}]}
            for at in (START, START + 2 * day)
        ],
        raft_timeline=[
            {
                **common, "time_ns": START, "node": "1", "epoch": 1, "details": json.dumps(first),
            },
            {
                **common, "kind": "not-recorded", "time_ns": START + 10 * SECOND,
                "details": json.dumps({"until": hole[1]}),
            },
            {**common, "time_ns": START + 2 * day, "node": "2", "epoch": 3, "details": "{}"},
        ],
        anomalies=[],
    )
