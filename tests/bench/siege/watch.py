"""What can be observed of a quorum from outside: memory, descriptors, elections, held bytes."""

from __future__ import annotations

import os
import re
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.protocol.topic_names import METADATA_TOPIC
from tests.bench.siege.peer import ask
from tests.support.nodes.process import NodeProcess

__all__ = ["Memory", "elections", "epoch_of", "held_bytes", "open_descriptors", "reset_peak"]

_ELECTED = re.compile(r"event=role .*new=(leader|candidate)")


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a process. Units: bytes."""

    now: int
    peak: int

    @classmethod
    def of(cls, pid: int) -> Memory:
        """Memory according to the system; the peak is since `reset_peak`."""
        status = Path(f"/proc/{pid}/status").read_text()
        found = dict(re.findall(r"^Vm(HWM|RSS):\s+(\d+) kB$", status, re.M))
        return cls(int(found["RSS"]) * 1024, int(found["HWM"]) * 1024)


def reset_peak(pid: int) -> None:
    """Reset the peak of a process."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def open_descriptors(pid: int) -> int:
    """How many file descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def epoch_of(port: int) -> tuple[int, int]:
    """The leader and its epoch according to a node."""
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData()])
    answer = ask(port, DescribeQuorumRequest(topics=[topic]))
    assert isinstance(answer, DescribeQuorumResponse)
    told = answer.topics[0].partitions[0]
    return told.leader_id, told.leader_epoch


def elections(nodes: list[NodeProcess]) -> int:
    """How often nodes have stood for election or led, according to their logs."""
    return sum(bool(_ELECTED.search(line)) for node in nodes for line in list(node.lines))


def held_bytes(port: int) -> int:
    """The metric of the same name."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(r"^kraftwire_connections_held_bytes (\S+)$", text, re.M)
    assert found is not None, text
    return int(float(found[1]))
