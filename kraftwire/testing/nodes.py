"""Several nodes that form a quorum: their files, their startup, their control.

Every node is broker and controller. The voters are static, or dynamic, so that nodes can be added,
removed and wiped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kraftwire.errors import ApiError, UsageError
from kraftwire.testing.files import HOST, NodeFiles, node_folder
from kraftwire.testing.process import NodeProcess, QuorumError

if TYPE_CHECKING:
    from kraftwire.client import Admin
    from kraftwire.client.security import Given
    from kraftwire.testing.threaded_proxy import ThreadedProxy


_POLL_S = 0.02
_START_ATTEMPTS = 3
# While nodes start, requests to them have a short time-out, so that a node that ended is noticed
# soon.
_LOOK_S = 1.0
# In the log of a node whose port was taken between choosing and binding it.
_PORT_TAKEN = "in use"


class Quorum:
    """Nodes with the ids 1 to `count`; made by `quorum`.

    Order: entering starts the nodes and waits until all of them serve and one leads; leaving kills
    what runs. Raises: QuorumError with the end of a node's log if a node fails or times out.
    """

    def __init__(
        self,
        count: int,
        folder: Path | None,
        properties: Mapping[str, object],
        timeout_s: float,
        *,
        is_captured: bool,
        is_dynamic: bool,
        is_proxied: bool,
        security: Given = None,
        users: Sequence[str] = (),
    ) -> None:
        if count < 1:
            raise UsageError(f"expected 1 or more nodes, found {count}")
        self._count = count
        self._given_folder = folder
        self._properties = dict(properties)
        self._timeout_s = timeout_s
        self._is_captured = is_captured
        self._is_dynamic = is_dynamic
        self._is_proxied = is_proxied
        self._proxy: ThreadedProxy | None = None
        self._security = security
        self._users = users
        self._nodes: dict[int, NodeProcess] = {}
        self._files = self._new_files(Path())
        self.folder = Path()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = stack.enter_context(node_folder(self._given_folder, "quorum"))
            self._files = self._new_files(self.folder)
            stack.callback(self._kill_all)
            self._start_all()
            self._wait_serving()
            if self._is_proxied:
                from kraftwire.testing.threaded_proxy import proxy

                through = proxy(self._broker_addresses, command_config=self._security)
                self._proxy = stack.enter_context(through)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.__exit__(*raised)

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._files.cluster_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of all nodes, running or not."""
        return tuple(self._nodes)

    @property
    def bootstrap_servers(self) -> str:
        """The client listeners of all nodes, comma-separated; with `proxied` that of the proxy."""
        return self._broker_addresses if self._proxy is None else self._proxy.bootstrap_servers

    @property
    def proxy(self) -> ThreadedProxy:
        """The proxy before the nodes. Raises: UsageError for a quorum that is not `proxied`."""
        return opened(self._proxy)

    @property
    def _broker_addresses(self) -> str:
        return ",".join(f"{HOST}:{ports[0]}" for ports in self._files.ports.values())

    @property
    def bootstrap_controllers(self) -> str:
        """The controller listeners of all nodes, comma-separated."""
        return ",".join(f"{HOST}:{ports[1]}" for ports in self._files.ports.values())

    def leader(self) -> int:
        """Return the leader's id; waits for one if there is none.

        Raises: QuorumError if none is elected in time.
        """
        try:
            return self.admin().describe_quorum().leader_id
        except ApiError as error:
            raise self._problem(str(error)) from error

    def admin(self, *, timeout_s: float | None = None) -> Admin:
        """Return a client of the controllers that are running and not paused."""
        from kraftwire.client import Admin

        awake = [i for i, node in self._nodes.items() if node.is_running and not node.is_paused]
        if not awake:
            raise self._problem("no node is running")
        return Admin(
            bootstrap_controllers=[f"{HOST}:{self._files.ports[i][1]}" for i in awake],
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
            # The others name a paused leader until they elect another one.
            connect_timeout_s=1.0,
            retry_backoff_max_s=0.2,
            security=self._security,
        )

    def add_node(self) -> int:
        """Start one more node with an empty directory; returns its id.

        It observes; `add_voter` makes it a voter. Raises: UsageError if the voters are static.
        """
        if not self._is_dynamic:
            raise UsageError("nodes can be added to a quorum with dynamic=True only")
        number = max(self._nodes) + 1
        self._files.add(number)
        self._make_process(number)
        self.start(number)
        return number

    def wipe(self, node_id: int) -> None:
        """Give a stopped node an empty disk: with a new directory id, it is another replica.

        Raises: UsageError if the voters are static, because such a voter could vote twice.
        """
        node = self._node(node_id)
        if node.is_running:
            raise QuorumError(f"node {node_id} is running: stop or kill it before wiping its disk")
        if not self._is_dynamic:
            raise UsageError("voters of a static quorum must not lose their disks")
        self._files.format(node_id)

    def config_file(self, node_id: int) -> Path:
        """Return a node's properties file, for --command-config or --config of Kafka's tools."""
        self._node(node_id)
        return self._files.config(node_id)

    def start(self, node_id: int) -> None:
        """Start a node that was killed or stopped, and wait until it accepts connections."""
        node = self._node(node_id)
        node.start()
        node.wait_ready(time.monotonic() + self._timeout_s)

    def stop(self, node_id: int) -> None:
        """Shut a node down cleanly: a leader hands over first."""
        self._node(node_id).stop()

    def kill(self, node_id: int) -> None:
        """End a node as a power cut does."""
        node = self._node(node_id)
        if not node.is_running:
            raise QuorumError(f"node {node_id} is not running")
        node.kill()

    def pause(self, node_id: int) -> None:
        """Suspend a node: its connections stay open, but it answers nothing."""
        self._node(node_id).pause()

    def resume(self, node_id: int) -> None:
        """Resume a paused node."""
        self._node(node_id).resume()

    def is_running(self, node_id: int) -> bool:
        """Return whether a node's process exists, paused or not."""
        return self._node(node_id).is_running

    def pid(self, node_id: int) -> int | None:
        """Return a node's process id; None if it is not running."""
        return self._node(node_id).pid

    def log(self, node_id: int) -> str:
        """Return all that a node has logged, over all its starts."""
        return self._node(node_id).log.read_text(errors="replace")

    def data_folder(self, node_id: int) -> Path:
        """Return a node's log directory, in Kafka's format."""
        self._node(node_id)
        return self._files.data(node_id)

    def capture_file(self, node_id: int) -> Path:
        """Return a node's traffic as pcapng, if `capture` is on; readable at any time."""
        return self._files.capture(node_id)

    def _node(self, node_id: int) -> NodeProcess:
        if node_id not in self._nodes:
            known = ", ".join(map(str, self._nodes))
            raise UsageError(f"there is no node {node_id}, only {known}")
        return self._nodes[node_id]

    def _start_all(self) -> None:
        """Choose ports and start; retry with other ports if one was taken in between."""
        for attempt in range(1, _START_ATTEMPTS + 1):
            self._prepare()
            deadline = time.monotonic() + self._timeout_s
            for node in self._nodes.values():
                node.start()
            try:
                for node in self._nodes.values():
                    node.wait_ready(deadline)
            except QuorumError:
                logs = "".join(node.new_lines() for node in self._nodes.values())
                if attempt == _START_ATTEMPTS or _PORT_TAKEN not in logs:
                    raise
                self._kill_all()
            else:
                return

    def _prepare(self) -> None:
        """Write properties files and format log directories, with new ports each time."""
        self._files.prepare(self._count)
        for number in self._files.ports:
            self._make_process(number)

    def _new_files(self, folder: Path) -> NodeFiles:
        return NodeFiles(
            folder,
            self._properties,
            is_dynamic=self._is_dynamic,
            is_captured=self._is_captured,
            users=self._users,
        )

    def _make_process(self, number: int) -> None:
        files = self._files
        process = NodeProcess(number, files.config(number), files.log(number), listener_count=2)
        self._nodes[number] = process

    def _wait_serving(self) -> None:
        """Wait until there is a leader and every node has registered as broker and as
        controller."""
        from kraftwire.client import Admin

        deadline = time.monotonic() + self._timeout_s
        through_brokers = Admin(
            bootstrap_servers=self._broker_addresses, timeout_s=_LOOK_S, security=self._security
        )
        checks: list[Callable[[], bool]] = [
            lambda: self.admin(timeout_s=_LOOK_S).describe_quorum().leader_id > 0,
            lambda: self._is_complete(self.admin(timeout_s=_LOOK_S)),
            lambda: self._is_complete(through_brokers),
        ]
        for check in checks:
            problem = "not all nodes registered in time"
            while True:
                try:
                    if check():
                        break
                except ApiError as error:
                    problem = str(error)
                for node in self._nodes.values():
                    if not node.is_running:
                        raise node.error(f"ended with exit code {node.exit_code}")
                if time.monotonic() > deadline:
                    raise self._problem(problem)
                time.sleep(_POLL_S)

    def _is_complete(self, admin: Admin) -> bool:
        nodes = admin.describe_cluster().nodes
        return len(nodes) == self._count and not any(node.is_fenced for node in nodes)

    def _problem(self, text: str) -> QuorumError:
        """Return an error about all nodes, with the end of each log."""
        tails = [str(node.error(_state(node))) for node in self._nodes.values()]
        return QuorumError("\n".join([text, *tails]))

    def _kill_all(self) -> None:
        with ExitStack() as stack:
            for node in self._nodes.values():
                stack.callback(node.kill)


def quorum(
    nodes: int = 3,
    *,
    folder: Path | str | None = None,
    properties: Mapping[str, object] | None = None,
    capture: bool = False,
    dynamic: bool = False,
    proxied: bool = False,
    timeout_s: float = 30.0,
    security: Given = None,
    users: Sequence[str] = (),
) -> Quorum:
    """Return a quorum of kraftwire nodes, for use as a context manager.

    `folder` gets properties files, logs and data; a temporary one is removed at the end unless the
    block fails. `properties` go into every node's properties file, with its id in place of
    `{node}`. With `dynamic` the voters are in the log (kraft.version 1) and can change. `security`
    has Kafka's client properties for the quorum's own clients, if `properties` secure the listeners
    PLAINTEXT and CONTROLLER. `users` are for SCRAM, as `storage format --add-scram` takes them.
    With `proxied`, `bootstrap_servers` is the address of a proxy in front of the nodes, which is
    `proxy`; it connects with `security`, and clients connect to it in clear.
    Units: `timeout_s` bounds each start and each wait for a leader.
    """
    given = Path(folder).absolute() if folder is not None else None
    return Quorum(
        nodes,
        given,
        properties or {},
        timeout_s,
        is_captured=capture,
        is_dynamic=dynamic,
        is_proxied=proxied,
        security=security,
        users=users,
    )


def opened(proxy: ThreadedProxy | None) -> ThreadedProxy:
    """Return the proxy in front of nodes. Raises: UsageError if there is none."""
    if proxy is None:
        raise UsageError("there is no proxy without proxied=True")
    return proxy


def _state(node: NodeProcess) -> str:
    if node.is_running:
        return "is paused" if node.is_paused else "runs"
    return f"has ended with exit code {node.exit_code}"
