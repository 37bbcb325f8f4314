"""Statistics as one JSON object."""

from __future__ import annotations

from typing import Any

from kraftwire.inspect.stats.collect import Collector
from kraftwire.inspect.stats.exchanges import Row, RowKey
from kraftwire.inspect.stats.logs import PartitionRow

__all__ = ["stats_to_json"]

_NS = 1_000_000_000


def stats_to_json(found: Collector) -> dict[str, Any]:
    """Return all rows, without sums, as a JSON object."""
    has_frames = found.first_ns is not None
    return {
        "start": found.first_ns / _NS if found.first_ns is not None else None,
        "end": found.last_ns / _NS if has_frames else None,
        "exchanges": [_row(key, row) for key, row in found.exchanges.rows.items()],
        "clients": [
            {
                "clientId": client_id,
                "software": sorted(client.software),
                "connections": len(client.connections),
            }
            for client_id, client in found.exchanges.clients.items()
        ],
        "logs": [_partition(name, row) for name, row in sorted(found.logs.rows.items())],
    }


def _row(key: RowKey, row: Row) -> dict[str, Any]:
    return {
        "api": key.api,
        "version": key.version if key.version >= 0 else None,
        "clientId": key.client_id,
        "requests": row.requests,
        "responses": row.responses,
        "withoutResponse": row.without_response,
        "requestBytes": row.request_bytes,
        "responseBytes": row.response_bytes,
        "errors": dict(row.errors),
        "latencyMs": row.latency.to_json(),
        "serviceMs": row.service.to_json(),
        "waitMs": row.wait.to_json(),
        "requestSizes": row.request_sizes.to_json(),
        "responseSizes": row.response_sizes.to_json(),
    }


def _partition(name: str, row: PartitionRow) -> dict[str, Any]:
    return {
        "log": name,
        "files": len(row.files),
        "batches": row.batches,
        "records": row.records,
        "controlBatches": row.control_batches,
        "wrongCrc": row.wrong_crc,
        "bytes": row.size,
        "compression": dict(row.compression),
        "firstOffset": row.first_offset,
        "lastOffset": row.last_offset,
        "firstTimestamp": row.first_timestamp,
        "lastTimestamp": row.last_timestamp,
        "otherLines": row.other_lines,
    }
