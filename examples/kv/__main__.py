"""Three nodes with a replicated map on loopback ports of one process: `python -m examples.kv`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import trio

from examples.kv.replicated_map import ReplicatedMap
from kraftwire.node.config import load
from kraftwire.testing.ports import free_ports

_PROPERTIES = """\
node.id={id}
listeners=CONTROLLER://127.0.0.1:{port}
controller.quorum.voters={voters}
log.dirs={folder}/data-{id}
controller.quorum.election.timeout.ms=500
"""

_SECONDS_MAX = 60


class Quorum:
    """A quorum of three nodes, each started, killed and wiped by its id."""

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.maps: dict[int, ReplicatedMap] = {}
        self._folder = folder
        self._nursery = nursery
        self._scopes: dict[int, trio.CancelScope] = {}
        ports = dict(enumerate(free_ports(3), 1))
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in ports.items())
        for each, port in ports.items():
            text = _PROPERTIES.format(id=each, port=port, voters=voters, folder=folder)
            self._config(each).write_text(text)

    async def start(self, node_id: int) -> None:
        """Start a node, and wait until it accepts connections."""
        self.maps[node_id] = ReplicatedMap(load(str(self._config(node_id))))
        await self._nursery.start(self._run, node_id)

    async def _run(self, node_id: int, task_status: trio.TaskStatus[None]) -> None:
        node = self.maps[node_id].node
        with trio.CancelScope() as self._scopes[node_id]:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(node.run, trio.Event())
                await node.ready.wait()
                task_status.started()

    def kill(self, node_id: int) -> None:
        """End a node without notifying the others."""
        self._scopes[node_id].cancel()
        del self.maps[node_id]

    def wipe(self, node_id: int) -> None:
        """Remove everything that a killed node has stored."""
        shutil.rmtree(self._folder / f"data-{node_id}")

    async def leader(self) -> ReplicatedMap:
        """The leader's map, as soon as the others know the leader too."""

        def is_known() -> bool:
            leaders = {each.leader_id for each in self.maps.values()}
            return len(leaders) == 1 and leaders <= set(self.maps)

        await _until(is_known)
        return self.maps[next(iter(self.maps.values())).leader_id]

    async def wait_for(self, key: str, value: str) -> None:
        """Wait until every copy has this value."""
        await _until(lambda: all(each.get(key) == value for each in self.maps.values()))
        print(f"nodes {', '.join(map(str, sorted(self.maps)))} have {key} = {value}")

    def _config(self, node_id: int) -> Path:
        return self._folder / f"node-{node_id}.properties"


async def demo(folder: Path) -> None:
    """Put, get, lose the leader, write a snapshot, lose a disk."""
    with trio.fail_after(_SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            nodes = Quorum(folder, nursery)
            for each in (1, 2, 3):
                await nodes.start(each)
            first = await nodes.leader()
            print(f"node {first.id} leads")
            await first.put("colour", "green")
            await first.put("shape", "round")
            await nodes.wait_for("shape", "round")

            nodes.kill(first.id)
            second = await nodes.leader()
            print(f"the leader is killed: {second.get('colour')} is still there")
            await second.put("colour", "blue")
            await nodes.wait_for("colour", "blue")

            second.node.write_snapshot()
            await _until(lambda: bool(list(folder.glob(f"data-{second.id}/*-0/*.checkpoint"))))
            nodes.wipe(first.id)
            await nodes.start(first.id)
            await nodes.wait_for("shape", "round")
            back = nodes.maps[first.id]
            await _until(lambda: bool(back.snapshot))
            print(f"the killed node is back with an empty disk, by snapshot {back.snapshot}")
            nursery.cancel_scope.cancel()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await trio.sleep(0.01)


def main() -> None:
    """Run the demo in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="kraftwire-kv-") as folder:
        trio.run(demo, Path(folder))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
