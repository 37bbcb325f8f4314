"""A cluster that outlives the program that started it: its state is a file in its folder.

Owns ``kraftwire cluster``: starting all nodes, ending single ones, ending everything. Only what is
in the state file is ever ended or removed. It is written before the first node is formatted, so
that what is left of a start that failed or was killed can be removed by the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraftwire.client import Admin
from kraftwire.errors import ApiError, StorageError, UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.small_files import check_own, write_new_file
from kraftwire.testing.cluster.nodes import ClusterError, ClusterFiles, from_json, to_json
from kraftwire.testing.cluster.processes import uninterrupted

_STATE_FILE = "cluster.json"
# In the state while the nodes are being started or ended.
_STARTING = "starting"
_START_S = 120.0
_LOOK_S = 5.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a node is doing. `pid` is None if it is not running."""

    id: int
    role: str
    address: str
    pid: int | None
    state: str


def start_all(
    files: ClusterFiles,
    *,
    controllers: bool = True,
    starting: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Start all nodes, or only the brokers, and wait until every broker is unfenced.

    `starting` returns the context in which a process is started.

    Raises: ClusterError with the end of a node's log if one ends, or takes too long.
    """
    deadline = time.monotonic() + _START_S
    chosen = [node.id for node in files.nodes.values() if controllers or node.role == "broker"]
    for id in chosen:
        with starting():
            files.start(id)
    for id in chosen:
        files.wait_ready(id, deadline)
    wait_serving(files, deadline)


def wait_serving(files: ClusterFiles, deadline: float) -> None:
    """Wait until every broker that runs is registered and not fenced."""
    brokers = {node.id for node in files.of_role("broker") if node.is_running}
    problem = "it does not answer"
    while True:
        try:
            _leader(files)
            alive = _alive(files)
            if brokers <= alive:
                return
            problem = f"brokers {sorted(brokers - alive)} are fenced"
        except ApiError as error:
            problem = str(error)
        if time.monotonic() > deadline:
            raise ClusterError(f"the cluster was not ready in time: {problem}")
        time.sleep(_POLL_S)


def _alive(files: ClusterFiles) -> set[int]:
    """Return the brokers that are registered and not fenced, as one that runs knows them."""
    running = [node.address for node in files.of_role("broker") if node.is_running]
    if not running:
        return set()
    admin = Admin(bootstrap_servers=running, timeout_s=_LOOK_S)
    return {node.id for node in admin.describe_cluster().nodes if not node.is_fenced}


def _leader(files: ClusterFiles) -> int:
    """Return the id of the active controller. Raises: ApiError if there is none."""
    addresses = files.addresses("controller")
    admin = Admin(bootstrap_controllers=addresses, timeout_s=_LOOK_S, connect_timeout_s=1.0)
    return admin.describe_quorum().leader_id


class StoredCluster:
    """A cluster by its folder. Each method reads the state file, and writes what has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._path = self.folder / _STATE_FILE
        self._has_begun = False

    @property
    def exists(self) -> bool:
        """Whether the folder has a cluster, running or not."""
        return os.path.lexists(self._path)

    def up(self, jars: Path | None, controllers: int, brokers: int) -> ClusterFiles:
        """Start a new cluster; if that fails, no process of it is left, but the logs are.

        The next start removes these. Raises: UsageError if the folder has a cluster or anything
        else; ClusterError.
        """
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        with self._locked():
            self._make_room()
            files = ClusterFiles.choose(self.folder, jars, (controllers, brokers))
            self._has_begun = True
            self._save(files, is_starting=True)
            try:
                files.format()
                start_all(files, starting=lambda: self._starting(files))
            except BaseException:
                for id in files.nodes:
                    files.kill(id)
                raise
            self._save(files)
        return files

    @contextmanager
    def _starting(self, files: ClusterFiles) -> Iterator[None]:
        """Keep the process that is started in the state, whatever happens meanwhile."""
        with uninterrupted():
            yield
            self._save(files, is_starting=True)

    def undo(self) -> None:
        """End and remove what `up` of this object has begun, finished or not."""
        if self._has_begun and self.exists:
            self.down()

    def _make_room(self) -> None:
        """Remove what is left of a start or an end that was not finished.

        Raises: UsageError for anything else.
        """
        if self.exists:
            if not self._state().get(_STARTING):
                text = f"there is a cluster in {self.folder} already: "
                text += f"kraftwire cluster down --dir {shlex.quote(str(self.folder))}"
                raise UsageError(text)
            self._remove(self._load(), lambda _: None)
        if any(path != self._new_path for path in self.folder.iterdir()):
            raise UsageError(f"{self.folder} is not empty, and a cluster needs a folder of its own")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep others from starting or ending this cluster, as long as this process lives.

        Raises: UsageError if another does.
        """
        busy = UsageError(f"another kraftwire cluster up or down is at work in {self.folder}")
        try:
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            raise busy from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self.folder.exists() or not os.path.samestat(
                self.folder.stat(), os.fstat(descriptor)
            ):
                raise busy
            yield
        except BlockingIOError:
            raise busy from None
        finally:
            os.close(descriptor)

    def status(self) -> list[NodeState]:
        """Return what every node is doing. Raises: UsageError without a cluster."""
        files = self._load()
        alive: set[int] = set()
        leader = -1
        with suppress(ApiError):
            leader = _leader(files)
        with suppress(ApiError):
            alive = _alive(files)
        return [
            NodeState(
                node.id,
                node.role,
                node.address,
                node.process.pid if node.process is not None and node.is_running else None,
                _state(node.role, node.is_running, node.id == leader, node.id in alive),
            )
            for node in files.nodes.values()
        ]

    def kill(self, id: int) -> None:
        """End a node with SIGKILL. Raises: UsageError for a node that does not run."""
        files = self._load()
        if not files.node(id).is_running:
            raise UsageError(f"node {id} is not running")
        files.kill(id)

    def restart(self, id: int) -> None:
        """Stop a node if it runs, start it, and wait until it serves. Raises: ClusterError."""
        files = self._load()
        files.stop(id)
        with uninterrupted():
            files.start(id)
            self._save(files)
        files.wait_ready(id, time.monotonic() + _START_S)

    def down(self, on_node: Callable[[int], None] = lambda _: None) -> None:
        """End all nodes, brokers first, and remove the cluster's files.

        `on_node` gets the id of each node that has ended.
        """
        self._load()
        with self._locked():
            self._remove(self._load(), on_node)
        with suppress(OSError):
            self.folder.rmdir()

    def _remove(self, files: ClusterFiles, on_node: Callable[[int], None]) -> None:
        """End all nodes and remove everything but the folder; the next start would go on."""
        self._save(files, is_starting=True)
        for node in files.of_role("broker"):
            if node.process is not None:
                node.process.send(signal.SIGTERM)
        for node in reversed(files.nodes.values()):
            files.stop(node.id)
            on_node(node.id)
        for id in files.nodes:
            _remove_folder(files.place(id))
        for path in (self._new_path, self._path):
            path.unlink(missing_ok=True)

    def _load(self) -> ClusterFiles:
        try:
            return from_json(self.folder, self._state())
        except KeyError as error:
            raise self._unreadable(f"{error} is missing") from error
        except (TypeError, ValueError) as error:
            raise self._unreadable(error) from error

    def _state(self) -> dict[str, Any]:
        """Return what the state file says, which must be this user's: what it names is run.

        Raises: UsageError without one; StorageError; OSError.
        """
        if not self.exists:
            text = f"there is no cluster in {self.folder}: kraftwire cluster up starts one"
            raise UsageError(text)
        check_own(self._path)
        try:
            state = json.loads(LocalFiles().read_bytes(str(self._path)))
        except (ValueError, RecursionError) as error:
            raise self._unreadable(error) from error
        if not isinstance(state, dict):
            raise self._unreadable("it is no object")
        return state

    def _unreadable(self, problem: object) -> StorageError:
        return StorageError(f"it does not describe a cluster: {problem}", file=str(self._path))

    @property
    def _new_path(self) -> Path:
        return self._path.with_suffix(".new")

    def _save(self, files: ClusterFiles, *, is_starting: bool = False) -> None:
        """Write the state; a reader sees the old one or the new one."""
        state = to_json(files) | {_STARTING: is_starting}
        write_new_file(self._new_path, f"{json.dumps(state, indent=2)}\n".encode())
        self._new_path.replace(self._path)


def _remove_folder(path: Path) -> None:
    """Remove a node's folder; of a link in its place, only the link."""
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _state(role: str, is_running: bool, is_leader: bool, is_alive: bool) -> str:
    if not is_running:
        return "not running"
    if role == "controller":
        return "leads" if is_leader else "follows"
    return "active" if is_alive else "fenced"
