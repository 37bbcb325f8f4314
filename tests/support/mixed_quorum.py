"""Quorums in which real Kafka controllers and kraftwire nodes vote together.

Owns the members: one properties file each, good for both kinds, so that a member may come back as
the other kind on the same directory. What a test looks at afterwards is here too: who leads, how
far the logs agree, and whether a Java process said anything that it should not.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from kraftwire.cli import main as cli
from kraftwire.messages.describe_quorum_response import PartitionData
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import read_batches
from tests.support.kafka_process import KafkaNode, free_ports, kafka_uuid
from tests.support.node_process import NodeProcess, describe

__all__ = ["JAVA", "OURS", "Member", "MixedQuorum", "wait_until"]

JAVA = "java"
OURS = "kraftwire"

# Generous, because many processes may share the machine.
SECONDS_MAX = 120.0
_LOOK_SECONDS = 0.1

_T = TypeVar("_T")

# What a Java node prints when something is wrong. Lost connections are warnings; that there is no
# active controller is an error to those who ask for one, and they ask again.
_COMPLAINT = re.compile(
    r" FATAL | ERROR (?!\[Controller(Apis|RegistrationManager))|Encountered .*fault"
    r"|Illegal(State|Argument)Exception"
)


def wait_until(look: Callable[[], _T], what: str, tell: Callable[[], str] = str) -> _T:
    """Look again and again until there is something to see; returns it.

    Raises: AssertionError if it takes too long, with what `tell` has to say.
    """
    deadline = time.monotonic() + SECONDS_MAX
    pause = threading.Event()
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited in vain for {what}\n{tell()}"
        pause.wait(_LOOK_SECONDS)
    return found


class Member:
    """One node: a port, a directory, and a process of either kind while it runs."""

    def __init__(self, kind: str, node: KafkaNode) -> None:
        self.kind = kind
        self.java = node
        self.ours: NodeProcess | None = None
        (self.port,) = node.listeners.values()
        self._stopped_lines: list[str] = []

    @property
    def node_id(self) -> int:
        """The node id."""
        return self.java.node_id

    @property
    def config(self) -> Path:
        """The properties file that both kinds read."""
        return self.java.folder / "server.properties"

    @property
    def is_running(self) -> bool:
        """Whether it was started and neither stopped nor killed."""
        return self.java.process is not None or self.ours is not None

    def format(self, cluster_id: str, *options: str) -> None:
        """Format the directory with the tool of the member's kind."""
        self.java.write_config()
        if self.kind == JAVA:
            self.java.format(cluster_id, *options)
        else:
            command = ["storage", "format", "-t", cluster_id, "-c", str(self.config), *options]
            assert cli.main(command) == 0

    def start(self, kind: str | None = None, *overrides: str) -> None:
        """Start the process; as the other kind, if one is given. `overrides` are for ours."""
        assert not self.is_running, f"node {self.node_id} runs already"
        self.kind = kind or self.kind
        if self.kind == JAVA:
            self.java.start()
        else:
            self.ours = NodeProcess(self.config, *overrides)

    def wait_ready(self) -> None:
        """Return once it accepts connections."""
        if self.ours is not None:
            self.ours.wait_for("^ready ")
        else:
            self.java.wait_ready()

    def stop(self) -> None:
        """SIGTERM, and wait for the end."""
        if self.ours is not None:
            assert self.ours.stop() == 0, "\n".join(self.ours.lines[-20:])
            self._forget()
        else:
            self.java.stop()

    def kill(self) -> None:
        """SIGKILL; nothing if it does not run."""
        if self.ours is not None:
            self.ours.kill()
            self._forget()
        else:
            self.java.kill()

    def _forget(self) -> None:
        assert self.ours is not None
        self.ours.close()
        self._stopped_lines += self.ours.lines
        self.ours = None

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and does nothing."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        process = self.ours if self.ours is not None else self.java.process
        assert process is not None
        if isinstance(process, NodeProcess):
            process.send(number)
        else:
            process.send_signal(number)

    @property
    def lines(self) -> list[str]:
        """Everything that it printed while it was ours."""
        return self._stopped_lines + (self.ours.lines if self.ours is not None else [])

    def last_lines(self) -> str:
        """The end of what it printed."""
        return "\n".join(self.lines[-20:]) if self.kind == OURS else self.java.last_lines(20)

    def complaints(self) -> list[str]:
        """Lines that tell of an error, of either kind."""
        found = [line for line in self.lines if "Traceback" in line or "level=error" in line]
        if self.java.console.exists():
            text = self.java.console.read_text(errors="replace")
            found += [line for line in text.splitlines() if _COMPLAINT.search(line)]
        return found

    def ended(self) -> bool:
        """Whether the process has ended although nobody asked it to."""
        if self.ours is not None:
            return self.ours.has_ended
        return self.java.process is not None and self.java.process.poll() is not None

    def log(self) -> bytes:
        """The bytes of all segments, as they are on disk now."""
        folder = self.java.log_dir / "__cluster_metadata-0"
        return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))

    def batches(self) -> list[RecordBatch]:
        """The batches of the log. Shape: without a last one that is being written."""
        return [batch for batch in read_batches(self.log()) if isinstance(batch, RecordBatch)]

    @property
    def end_offset(self) -> int:
        """Where the log on disk ends."""
        batches = self.batches()
        return batches[-1].last_offset + 1 if batches else 0

    def describe(self) -> PartitionData | None:
        """What it says of the quorum, None if it does not answer."""
        try:
            answer = describe(self.port)
        except (OSError, AssertionError):
            return None
        return answer.topics[0].partitions[0]


class MixedQuorum:
    """Static voters of both kinds; ended when left.

    Shape: `kinds` by node id. Order: entering formats the directories; nothing is started.
    """

    def __init__(
        self,
        folder: Path,
        kinds: Mapping[int, str],
        properties: Mapping[str, object] | None = None,
        special: Mapping[int, Mapping[str, object]] | None = None,
    ) -> None:
        """Make members. Shape: `special` are properties of single members."""
        self.cluster_id = kafka_uuid()
        ports = dict(zip(kinds, free_ports(len(kinds)), strict=True))
        voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items())
        self.members: dict[int, Member] = {}
        for node_id, kind in kinds.items():
            settings: dict[str, object] = {"controller.quorum.voters": voters}
            settings |= dict(properties or {})
            settings |= dict((special or {}).get(node_id, {}))
            place = folder / f"node-{node_id}"
            node = KafkaNode(node_id, place, {"CONTROLLER": ports[node_id]}, settings)
            self.members[node_id] = Member(kind, node)

    def __enter__(self) -> Self:
        with ThreadPoolExecutor() as pool:
            java = [one for one in self.members.values() if one.kind == JAVA]
            jobs = [pool.submit(one.format, self.cluster_id) for one in java]
            for member in self.members.values():
                if member.kind == OURS:
                    member.format(self.cluster_id)
            for job in jobs:
                job.result()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.ExitStack() as stack:
            for member in self.members.values():
                stack.callback(member.kill)

    @property
    def bootstrap_controllers(self) -> str:
        """The value of ``--bootstrap-controller``."""
        return ",".join(map(self.address, self.members))

    def address(self, node_id: int) -> str:
        """A member's controller listener."""
        return f"127.0.0.1:{self.members[node_id].port}"

    def start(self, *node_ids: int) -> None:
        """Start members, all of them by default, and wait until they accept connections."""
        chosen = [self.members[node_id] for node_id in node_ids or self.members]
        for member in chosen:
            member.start()
        for member in chosen:
            member.wait_ready()

    def running(self) -> list[Member]:
        """The members that run."""
        return [member for member in self.members.values() if member.is_running]

    def leader(self, *, among: Iterable[int] = ()) -> int:
        """The id of the leader with a committed record of its epoch, as soon as there is one.

        Shape: `among` are the ids that will do, all by default.
        """
        wanted = set(among or self.members)

        def look() -> int:
            for member in self.running():
                if member.node_id in wanted and (told := member.describe()) is not None:
                    is_leader = told.error_code == ErrorCode.NONE
                    if is_leader and told.leader_id == member.node_id and told.high_watermark > 0:
                        return member.node_id
            return 0

        return wait_until(look, f"a leader among {sorted(wanted)}", self.last_lines)

    def status(self) -> PartitionData:
        """What the leader says of the quorum."""
        told = None
        while told is None or told.error_code != ErrorCode.NONE:
            told = self.members[self.leader()].describe()
        return told

    def depose(self, node_id: int) -> int:
        """Kill the leader so that this member has to be elected; returns the id of the former.

        The only other voter that is left sleeps until it lacks committed records, so it cannot win.
        """
        former = self.leader()
        assert former != node_id
        (other,) = set(self.members) - {former, node_id}
        late, early = self.members[other], self.members[node_id]
        late.pause()
        # One answer may wait in its socket; whoever sleeps gets no more.
        start = late.end_offset
        wait_until(lambda: early.end_offset > start + 10, f"records that node {other} lacks")
        self.members[former].kill()
        late.resume()
        return former

    def wait_commit(self, past: int, *node_ids: int) -> int:
        """Wait until something is committed at or above `past` and these members have it.

        Shape: returns the high watermark then; without ids, all running members.
        """
        chosen = [self.members[i] for i in node_ids] or self.running()

        def look() -> int:
            mark = self.status().high_watermark
            if mark <= past:
                return 0
            ends = [member.end_offset for member in chosen]
            return mark if min(ends) >= mark else 0

        return wait_until(look, f"a high watermark above {past}", self.last_lines)

    def last_lines(self) -> str:
        """What the members printed last."""
        return "\n".join(f"--- {one.node_id}\n{one.last_lines()}" for one in self.members.values())

    def check_logs_agree(self) -> int:
        """Compare all logs byte for byte below the high watermark; returns how many batches."""
        mark = self.wait_commit(0)
        whole = {member.node_id: _below(member, mark) for member in self.members.values()}
        longest = max(whole.values(), key=len)
        for node_id, data in whole.items():
            assert longest.startswith(data), f"the log of node {node_id} differs"
            if self.members[node_id].is_running:
                assert data == longest, f"node {node_id} has not all that is committed"
        return sum(1 for _ in read_batches(longest))

    def check_health(self) -> None:
        """No process has ended by itself, and none has complained."""
        for member in self.members.values():
            assert not member.ended(), f"node {member.node_id} has ended"
            assert member.complaints() == [], f"node {member.node_id}"


def _below(member: Member, mark: int) -> bytes:
    return b"".join(bytes(batch.raw) for batch in member.batches() if batch.last_offset < mark)
