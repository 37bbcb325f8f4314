"""The two snapshots that formatting writes, byte for byte as Kafka does.

`bootstrap.checkpoint` holds the records that the first active controller puts into the log,
`00000000000000000000-0000000000.checkpoint` the voters that a dynamic quorum begins with.

They are laid out as every snapshot is. Source: Kafka's `BootstrapDirectory` and `Formatter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftwire.log.snapshots.layout import ControlRecords, footer_batch, header_batch
from kraftwire.log.voters import InitialVoter
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from kraftwire.records.control import ControlType
from kraftwire.records.metadata import encode_metadata
from kraftwire.records.plain import data_batch
from kraftwire.wire.message import Message

__all__ = ["bootstrap_checkpoint", "voters_checkpoint"]

_VOTER_KRAFT_VERSION_MAX = 1


def bootstrap_checkpoint(records: Sequence[tuple[Message, int]], now_ms: int) -> bytes:
    """Build the file with metadata records, each with its version."""
    values = [encode_metadata(record, version) for record, version in records]
    # Kafka leaves the time of the last record at 0 here.
    return (
        header_batch(0, now_ms, 0)
        + data_batch(1, 0, now_ms, values)
        + footer_batch(1 + len(values), 0, now_ms)
    )


def voters_checkpoint(voters: Iterable[InitialVoter], listener: str, now_ms: int) -> bytes:
    """Build the file with kraft.version 1 and the voters, with the name of their listener."""
    record = VotersRecord(version=0, voters=[_voter(voter, listener) for voter in voters])
    control: ControlRecords = [
        (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
        (ControlType.KRAFT_VOTERS, record),
    ]
    header = header_batch(0, now_ms, now_ms, control)
    return header + footer_batch(1 + len(control), 0, now_ms)


def _voter(voter: InitialVoter, listener: str) -> Voter:
    return Voter(
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        endpoints=[Endpoint(name=listener, host=voter.host, port=voter.port)],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=_VOTER_KRAFT_VERSION_MAX
        ),
    )
