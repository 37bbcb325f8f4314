"""The two snapshots that formatting writes, byte for byte as Kafka does.

`bootstrap.checkpoint` holds the records that the first active controller puts into the log,
`00000000000000000000-0000000000.checkpoint` the voters that a dynamic quorum begins with.

Shape: plain record batches with offsets from 0: a control batch that begins with the header
record, batches of data, a control batch with the footer record (R-SNAP-3).
Source: Kafka's `RecordsSnapshotWriter` and `BootstrapDirectory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftwire.log.voters import InitialVoter
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.messages.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.control import ControlType, control_key, control_value
from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.message import Message

__all__ = ["bootstrap_checkpoint", "voters_checkpoint"]

_VOTER_KRAFT_VERSION_MAX = 1


def bootstrap_checkpoint(records: Sequence[tuple[Message, int]], now_ms: int) -> bytes:
    """The file with metadata records, each with its version."""
    # Kafka leaves the time of the last record at 0 here.
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=0)
    values = [encode_metadata(record, version) for record, version in records]
    data = build_columns(
        [now_ms] * len(values),
        [None] * len(values),
        values,
        header=BatchHeader(base_offset=1, partition_leader_epoch=0),
    )
    return (
        _control(0, [(ControlType.SNAPSHOT_HEADER, header)], now_ms)
        + data
        + _control(1 + len(values), [_footer()], now_ms)
    )


def voters_checkpoint(voters: Iterable[InitialVoter], listener: str, now_ms: int) -> bytes:
    """The file with kraft.version 1 and the voters, under the name of their listener."""
    records: list[tuple[ControlType, Message]] = [
        (
            ControlType.SNAPSHOT_HEADER,
            SnapshotHeaderRecord(version=0, last_contained_log_timestamp=now_ms),
        ),
        (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
        (
            ControlType.KRAFT_VOTERS,
            VotersRecord(version=0, voters=[_voter(voter, listener) for voter in voters]),
        ),
    ]
    return _control(0, records, now_ms) + _control(len(records), [_footer()], now_ms)


def _voter(voter: InitialVoter, listener: str) -> Voter:
    return Voter(
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        endpoints=[Endpoint(name=listener, host=voter.host, port=voter.port)],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=_VOTER_KRAFT_VERSION_MAX
        ),
    )


def _footer() -> tuple[ControlType, Message]:
    return ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0)


def _control(
    base_offset: int, records: Sequence[tuple[ControlType, Message]], now_ms: int
) -> bytes:
    return build_columns(
        [now_ms] * len(records),
        [control_key(kind) for kind, _ in records],
        [control_value(message) for _, message in records],
        header=BatchHeader(base_offset=base_offset, partition_leader_epoch=0, is_control=True),
    )
