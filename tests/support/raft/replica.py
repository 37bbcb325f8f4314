"""A whole replica without a network: the shipped core, runner and directory, the only voter.

Its disk is simulated, its time is a number. Work that a node does in threads is done at the next
`settle`, or held back while `is_busy`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any

from kraftwire.log.settings import LogSettings, SnapshotSettings
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.core import RaftCore
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.replica import StateMachine
from kraftwire.replica.ports import ResponsePart, WorkKind
from kraftwire.replica.runner import Runner
from kraftwire.replica.storage import Directories, Storage
from kraftwire.sim.disk import SimFiles
from kraftwire.wire.message import Message

WALL_MS = 1_700_000_000_000
_ENDPOINT = Endpoint("CONTROLLER", "node1", 9093)


class LoneReplica:
    """One run of a replica on these files; another run is another object on the same files."""

    def __init__(
        self,
        files: SimFiles,
        machine: StateMachine,
        settings: SnapshotSettings,
        *,
        segment_bytes: int = 2000,
        wall_ms: int = WALL_MS,
    ) -> None:
        directories = Directories(
            node_id=1,
            metadata="/log",
            settings=LogSettings(segment_bytes=segment_bytes, index_bytes=1024),
            is_self_formatted=True,
            new_id=lambda: bytes(range(16)),
        )
        self.storage = Storage.open(directories, files)
        config = RaftConfig(
            key=ReplicaKey(1, self.storage.directory_id),
            cluster_id="cluster",
            voters=VoterSet.of(Voter(ReplicaKey(1), (_ENDPOINT,))),
            endpoints=(_ENDPOINT,),
        )
        self.core = RaftCore(config, self.storage.stored_state(), Random(1))
        self.now_ms = 0
        self.wall_ms = wall_ms
        self.is_busy = False
        self.lock: AbstractContextManager[object] = nullcontext()
        self.notes: list[str] = []
        self.accepted: dict[int, fx.AppendAccepted | fx.AppendRefused] = {}
        self._replies: dict[int, Message] = {}
        self._queue: deque[ev.Event] = deque()
        self._jobs: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._token = 0
        self.runner = Runner(self.core, self.storage, self, self, settings=settings)
        self.number = self.runner.add_state_machine(machine, writes_snapshots=True)
        self.runner.start(self.now_ms, self.wall_ms)
        self.settle()

    def settle(self) -> None:
        """Do everything that is due at this moment."""
        runner = self.runner
        while self._queue or runner.flush_wanted or (self._jobs and not self.is_busy):
            if self._jobs and not self.is_busy:
                work, done = self._jobs.popleft()
                done(work())
            elif self._queue:
                runner.handle(self._queue.popleft(), self.now_ms, self.wall_ms)
            else:
                runner.flush()

    def wait(self, time_ms: int) -> None:
        """Let time pass."""
        end = self.now_ms + time_ms
        while self.runner.deadline_ms <= end:
            self._at(max(self.runner.deadline_ms, self.now_ms))
            self.runner.wake(self.now_ms, self.wall_ms)
            self.settle()
        self._at(end)

    def append(self, *values: bytes) -> fx.AppendAccepted | fx.AppendRefused:
        """Append records, and wait until they are committed."""
        self._token += 1
        self.submit(ev.AppendRequested(self._token, self.core.epoch, values))
        self.settle()
        self.wait(30)
        return self.accepted.pop(self._token)

    def ask(self, message: Message, version: int) -> Message:
        """The answer to a request that is answered at once."""
        self._token += 1
        self.submit(ev.RequestReceived(self._token, version, message))
        self.settle()
        return self._replies.pop(self._token)

    def _at(self, now_ms: int) -> None:
        self.wall_ms += now_ms - self.now_ms
        self.now_ms = now_ms

    # What a runner needs

    def start(self, kind: WorkKind, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Do it at the next `settle`."""
        del kind
        self._jobs.append((work, done))

    def submit(self, event: ev.Event) -> None:
        """Handle it at the next `settle`."""
        self._queue.append(event)

    def send(self, request: fx.SendRequest) -> None:
        """There are no peers."""
        self._queue.append(ev.RequestFailed(request.request_id, 8))

    def wants_reply(self, token: int) -> bool:
        """There is always a waiting task."""
        del token
        return True

    def reply(self, token: int, message: Message, part: ResponsePart | None) -> None:
        """Keep the answer."""
        if part is not None:
            part.put()
        self._replies[token] = message

    def decided(self, effect: Any) -> None:
        """Keep the answer."""
        self.accepted[effect.token] = effect

    def note(self, effect: fx.Note) -> None:
        """Keep what a log would show."""
        self.notes.append(effect.text)

    def ignore(self, *_: object) -> None:
        """Ignore it."""

    reset_connections = committed = role_changed = voters_changed = shut_down = ignore
