"""What `kraftwire quorum describe` prints: the output of kafka-metadata-quorum, and JSON.

Owns columns and labels. Source: Kafka's `MetadataQuorumCommand` and `ToolsUtils.prettyPrintTable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kraftwire.cli.quorum.options import TerseError
from kraftwire.client import Endpoint, QuorumInfo, ReplicaInfo
from kraftwire.client.results import NO_DIRECTORY_ID

_COLUMNS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)
# Printed for an unknown time or lag.
_UNKNOWN = -1
_LABEL_WIDTH = 24


def status_lines(quorum: QuorumInfo, cluster_id: str) -> list[str]:
    """Return the eight lines of ``--status``."""
    lag, lag_ms = _worst_lag(quorum)
    values = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": lag,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _replicas_text(quorum, quorum.voters),
        "CurrentObservers": _replicas_text(quorum, quorum.observers),
    }
    return [f"{label}:".ljust(_LABEL_WIDTH) + str(value) for label, value in values.items()]


def replication_lines(quorum: QuorumInfo, now_ms: int | None = None) -> list[str]:
    """Return the table of ``--replication``; times are relative to `now_ms` if it is given.

    A lag is -1 where it is not known, as while a leader that was removed from the voters still
    leads. Raises: TerseError if a time is after `now_ms`.
    """
    rows = [
        (
            str(replica.id),
            replica.directory_id,
            str(replica.log_end_offset),
            str(_known(quorum.lag(replica))),
            _time_text(replica.last_fetch_ms, now_ms, "last fetch"),
            _time_text(replica.last_caught_up_ms, now_ms, "last caught up"),
            status,
        )
        for replica, status in replicas_with_status(quorum)
    ]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    return [
        "".join(cell.ljust(width) + "\t" for cell, width in zip(cells, widths, strict=True))
        for cells in (_COLUMNS, *rows)
    ]


def replicas_with_status(quorum: QuorumInfo) -> Iterator[tuple[ReplicaInfo, str]]:
    """Leader, followers, observers."""
    if quorum.leader is not None:
        yield quorum.leader, "Leader"
    for replicas, status in ((quorum.voters, "Follower"), (quorum.observers, "Observer")):
        yield from ((each, status) for each in replicas if each.id != quorum.leader_id)


def quorum_json(quorum: QuorumInfo, cluster_id: str) -> dict[str, Any]:
    """Return everything in one object; -1 stands for an unknown value, as in the text."""
    lag, lag_ms = _worst_lag(quorum)
    rows = [
        (replica in quorum.voters, _replica_json(quorum, replica, status))
        for replica, status in replicas_with_status(quorum)
    ]
    return {
        "clusterId": cluster_id,
        "leaderId": quorum.leader_id,
        "leaderEpoch": quorum.leader_epoch,
        "highWatermark": quorum.high_watermark,
        "maxFollowerLag": lag,
        "maxFollowerLagTimeMs": lag_ms,
        "voters": [row for is_voter, row in rows if is_voter],
        "observers": [row for is_voter, row in rows if not is_voter],
    }


def endpoint_text(endpoint: Endpoint) -> str:
    """An endpoint as Kafka prints it, IPv6 addresses in brackets."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _worst_lag(quorum: QuorumInfo) -> tuple[int, int]:
    """Return the lag of the voter with the shortest log, in records and milliseconds."""
    # The first of several, which is why a caught-up quorum can show a lag in time.
    slowest = min(quorum.voters, key=lambda voter: voter.log_end_offset, default=None)
    if slowest is None:
        return _UNKNOWN, _UNKNOWN
    return _known(quorum.lag(slowest)), _known(quorum.lag_ms(slowest))


def _replicas_text(quorum: QuorumInfo, replicas: Iterable[ReplicaInfo]) -> str:
    return f"[{', '.join(_replica_text(quorum, replica) for replica in replicas)}]"


def _replica_text(quorum: QuorumInfo, replica: ReplicaInfo) -> str:
    parts = [f'"id": {replica.id}']
    if replica.directory_id != NO_DIRECTORY_ID:
        parts.append(f'"directoryId": "{replica.directory_id}"')
    endpoints = [f'"{endpoint_text(each)}"' for each in quorum.endpoints.get(replica.id, ())]
    if endpoints:
        parts.append(f'"endpoints": [{", ".join(endpoints)}]')
    return f"{{{', '.join(parts)}}}"


def _replica_json(quorum: QuorumInfo, replica: ReplicaInfo, status: str) -> dict[str, Any]:
    return {
        "id": replica.id,
        "directoryId": replica.directory_id,
        "status": status,
        "endpoints": [endpoint_text(each) for each in quorum.endpoints.get(replica.id, ())],
        "logEndOffset": replica.log_end_offset,
        "lag": _known(quorum.lag(replica)),
        "lagTimeMs": _known(quorum.lag_ms(replica)),
        "lastFetchTimestamp": _known(replica.last_fetch_ms),
        "lastCaughtUpTimestamp": _known(replica.last_caught_up_ms),
    }


def _time_text(time_ms: int | None, now_ms: int | None, what: str) -> str:
    if time_ms is None:
        return str(_UNKNOWN)
    if now_ms is None:
        return str(time_ms)
    if not 0 < time_ms <= now_ms:
        raise TerseError(
            f"Error while computing relative time, possible drift in system clock. "
            f"Current timestamp is {now_ms}, {what} timestamp is {time_ms}"
        )
    return f"{now_ms - time_ms} ms ago"


def _known(value: int | None) -> int:
    return _UNKNOWN if value is None else value
