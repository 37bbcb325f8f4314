"""Runs the scenarios of a quorum: commands for a small cluster in virtual time."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from itertools import groupby

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.raft import effects
from kraftwire.wire.message import Message
from tests.support.raft.cluster import Cluster

# A request as it arrives, and how many equal ones in a row become one line.
_REQUEST = re.compile(r" *(\d+) (\d+): (\w+Request) to \d+")
_ALIKE_MIN = 5


def _folded(lines: list[str]) -> list[str]:
    """Lines of a trace, in which many requests of one kind in a row are one line."""
    folded: list[str] = []
    for kind, group in groupby(lines, _kind_of_request):
        run = list(group)
        if not kind or len(run) < _ALIKE_MIN:
            folded += run
            continue
        found = [match for line in run if (match := _REQUEST.fullmatch(line))]
        first, last = found[0][1], found[-1][1]
        senders = ", ".join(sorted({match[2] for match in found}))
        folded.append(f"{first:>6} {senders}: {len(run)} {kind}s until {last}")
    return folded


def _kind_of_request(line: str) -> str:
    match = _REQUEST.fullmatch(line)
    return match[3] if match else ""


def run_scenario(blocks: Sequence[Sequence[str]]) -> list[list[str]]:
    """Carry out the commands of each block; returns its output."""
    script = Script()
    return [script.run(commands) for commands in blocks]


class Script:
    """Runs commands; one cluster for a whole scenario."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._shown = 0

    @property
    def cluster(self) -> Cluster:
        """The cluster, once a command `cluster` has named its nodes."""
        assert self._cluster is not None, "the first command has to be `cluster`"
        return self._cluster

    def run(self, commands: Sequence[str]) -> list[str]:
        """Carry out commands; returns what happened since, then what the commands print."""
        output: list[str] = []
        for command in commands:
            name, *words = shlex.split(command)
            handler: Callable[..., list[str] | None] = getattr(self, f"do_{name}")
            answers = handler(*words) or []
            output += self._news() + answers
        return output

    def _news(self) -> list[str]:
        if self._cluster is None:
            return []
        fresh = self.cluster.trace[self._shown :]
        self._shown = len(self.cluster.trace)
        return _folded(fresh)

    # ---- commands

    def do_cluster(self, *words: str) -> None:
        """`cluster 1 2 3 [observers 4] [seed N] [latency MS]`."""
        groups: dict[str, list[int]] = {"voters": []}
        current = "voters"
        for word in words:
            if word.isdigit():
                groups[current].append(int(word))
            else:
                current = word
                groups.setdefault(word, [])
        seed = groups.get("seed", [1])[0]
        self._cluster = Cluster(groups["voters"], groups.get("observers"), seed=seed)
        self.cluster.latency_ms = groups.get("latency", [1])[0]

    def do_start(self, *ids: str) -> None:
        """`start 1 2`: start nodes."""
        self.cluster.start(*map(int, ids))

    def do_kill(self, *ids: str) -> None:
        """`kill 1`: end nodes at once; what is not flushed is lost."""
        for one in ids:
            self.cluster.kill(int(one))

    def do_stop(self, node: str) -> None:
        """`stop 1`: a graceful shutdown."""
        self.cluster.stop(int(node))

    def do_verbose(self, state: str) -> None:
        """`verbose on|off`: show every request that arrives; equal ones are counted."""
        self.cluster.verbose = state == "on"

    def do_run(self, duration: str) -> None:
        """`run 500`: let this many milliseconds pass."""
        self.cluster.run(int(duration))

    def do_elect(self, *words: str) -> list[str]:
        """`elect [not 1]`: let time pass until one of the nodes (other than 1) leads."""
        cluster = self.cluster
        barred = {int(word) for word in words[1:]}

        def led() -> bool:
            return any(one not in barred for one in cluster.leaders())

        return [] if cluster.run_until(led) else ["nobody was elected within a minute"]

    def do_commit(self, offset: str) -> list[str]:
        """`commit 5`: let time pass until every node knows that offset 5 is the high watermark."""
        cluster, wanted = self.cluster, int(offset)

        def known() -> bool:
            offsets = [node.core.high_watermark for node in cluster.nodes.values()]
            return all(mark >= wanted for mark in offsets)

        return [] if cluster.run_until(known) else [f"{wanted} was not committed within a minute"]

    def do_append(self, node: str, *values: str) -> list[str]:
        """`append 1 a b`: append records at a node, if it leads."""
        return self._result(self.cluster.append(int(node), *(value.encode() for value in values)))

    def _result(self, token: int) -> list[str]:
        match self.cluster.results[token]:
            case effects.AppendAccepted(_, base, last, epoch):
                return [f"accepted at {base}-{last}, epoch {epoch}"]
            case effects.AppendRefused(_, reason, detail):
                return [f"refused: {reason}: {detail}"]
        return ["no result"]

    def do_cut(self, *words: str) -> None:
        """`cut 1 / 2 3`: nothing passes between the two groups."""
        place = words.index("/")
        self.cluster.cut([int(w) for w in words[:place]], [int(w) for w in words[place + 1 :]])

    def do_oneway(self, sender: str, target: str) -> None:
        """`oneway 1 2`: what 1 sends does not reach 2 (answers neither)."""
        self.cluster.blocked.add((int(sender), int(target)))

    def do_drop(self, name: str) -> None:
        """`drop FetchRequest`: lose every message of that name."""

        def lost(_sender: int, _target: int, message: Message) -> bool:
            return name == message.NAME

        self.cluster.drop = lost

    def do_nofetch(self, node: str) -> None:
        """`nofetch 2`: lose the fetches of node 2."""

        def lost(sender: int, _target: int, message: Message) -> bool:
            return sender == int(node) and isinstance(message, FetchRequest)

        self.cluster.drop = lost

    def do_heal(self) -> None:
        """`heal`: everything passes again."""
        self.cluster.heal()

    def do_java(self, *ids: str) -> None:
        """`java 2`: nodes that call themselves Kafka's Java client."""
        for one in ids:
            self.cluster.software[int(one)] = "apache-kafka-java"

    def do_old(self, *ids: str) -> None:
        """`old 2`: nodes without pre-votes, as before Kafka 4.0; peers learn that when they ask."""
        self.cluster.without_pre_votes |= {int(one) for one in ids}

    def do_status(self) -> list[str]:
        """`status`: the state of every node."""
        lines = []
        for node_id, node in sorted(self.cluster.nodes.items()):
            core = node.core
            voted = f" voted {core.voted.id}" if core.voted else ""
            lines.append(
                f"{node_id}: {core.role} epoch {core.epoch} leader {core.leader_id} "
                f"end {core.end_offset} high watermark {core.high_watermark}{voted}"
            )
        return lines

    def do_log(self, *ids: str) -> list[str]:
        """`log 1 2`: the batches of nodes, as offset/epoch:records."""
        return [
            f"{one}: " + " ".join(f"{o}/{e}:{what}" for o, e, what in self.cluster.log_of(int(one)))
            for one in ids
        ]

    def do_expect(self, node: str, offset: str, *values: str) -> list[str]:
        """`expect 1 5 a`: append records that must get offset 5."""
        encoded = [value.encode() for value in values]
        token = self.cluster.append(int(node), *encoded, expected=int(offset))
        return self._result(token)
