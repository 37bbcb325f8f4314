"""Log directories of controllers with the epochs, gaps and state files that a test wants."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.records.control import ControlType, control_key, control_value
from kraftwire.records.metadata import encode_metadata

START_MS = 1_760_000_000_000
IDLE_MS = 500
CLUSTER = "5L6g3nShT-eMCtK--X86sw"


@dataclass
class LogMaker:
    """Makes segments of a metadata log, a batch for each record, and remembers where it is."""

    offset: int = 0
    time_ms: int = START_MS
    segments: dict[int, bytes] = field(default_factory=dict)
    begun: int | None = None

    def roll(self) -> None:
        """Begin another segment at the next offset."""
        self.begun = self.offset
        self.segments[self.offset] = b""

    def leader(self, epoch: int, leader: int) -> None:
        """Append a LeaderChange record."""
        message = LeaderChangeMessage(
            leader_id=leader,
            voters=[Voter(voter_id=each) for each in (1, 2, 3)],
            granting_voters=[Voter(voter_id=leader)],
        )
        key = control_key(ControlType.LEADER_CHANGE)
        record = Record(self.offset, self.time_ms, key, control_value(message, 0))
        self._append(record, epoch, is_control=True)

    def idle(self, epoch: int, count: int) -> None:
        """Append NoOpRecords, each half a second after the record before it."""
        for _ in range(count):
            self.time_ms += IDLE_MS
            value = encode_metadata(NoOpRecord(), 0)
            self._append(Record(self.offset, self.time_ms, None, value), epoch)

    def skip(self, count: int) -> None:
        """Leave offsets out, and go on in another segment."""
        self.offset += count
        self.roll()

    def _append(self, record: Record, epoch: int, *, is_control: bool = False) -> None:
        if self.begun is None:
            self.roll()
        assert self.begun is not None
        header = BatchHeader(
            base_offset=self.offset, partition_leader_epoch=epoch, is_control=is_control
        )
        self.segments[self.begun] += build_batch([record], header)
        self.offset += 1


def write_directory(
    folder: Path,
    log: LogMaker,
    *,
    node: int | None = 1,
    cluster: str = CLUSTER,
    election: tuple[int, int, int] | None = None,
    checkpoint: list[tuple[int, int]] | None = None,
) -> Path:
    """Write a log directory. `election` is epoch, leader and vote, -1 for none."""
    partition = folder / "__cluster_metadata-0"
    partition.mkdir(parents=True)
    for base, content in log.segments.items():
        (partition / f"{base:020}.log").write_bytes(content)
    if node is not None:
        directory = f"directory-of-node-{node:04}"[:22]
        text = f"version=1\nnode.id={node}\ncluster.id={cluster}\ndirectory.id={directory}\n"
        (folder / "meta.properties").write_text(text)
    if election is not None:
        epoch, leader, voted = election
        data = {
            "leaderId": leader, "leaderEpoch": epoch, "votedId": voted,
            "votedDirectoryId": "A" * 22, "data_version": 1,
        }
        (partition / "quorum-state").write_text(json.dumps(data))
    if checkpoint is not None:
        lines = ["0", str(len(checkpoint)), *(f"{epoch} {start}" for epoch, start in checkpoint)]
        (partition / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")
    return folder
