"""Scripts of simulated brokers at a Java controller and at ours: answers and records side by side.

Owns the comparison. The scripts, and what makes two traces of them comparable (C-ORD-4), come from
`ctlfuzz` among the shared tools. Where Kafka writes more than ours on purpose, those records are
added to our log, so that offsets and epochs stay equal and the comparison goes on.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest
import trio
import trio.testing

from kraftwire import messages
from kraftwire.controller.features import SUPPORTED_FEATURES
from kraftwire.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
)
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.node.controller import Controller
from kraftwire.records.metadata import encode_metadata
from tests.support.maven import KAFKA, ROOT, directory_of, kafka_classpath
from tests.support.metadata_records import FEATURES
from tests.support.node_stub import StubNode, control_batch, raw_batch, request_of

_TOOLS = ROOT.parent / "shared" / "tools" / "controller"
_STALE = "from a stale index (C-PCB-11)"
_NOBODY = -1
_STALE_SESSION = 101  # DUPLICATE_BROKER_REGISTRATION
_CONTROLLER_SECONDS_MAX = 600

Step = dict[str, Any]


class Tools:
    """The shared tools, with a folder for the schemas in Kafka's jars, which they read."""

    def __init__(self, folder: Path) -> None:
        if not _TOOLS.exists():
            pytest.skip("the scripts of simulated brokers are missing: shared/tools/controller")
        self._schemas = folder / "schemas"
        jars = kafka_classpath(KAFKA)
        for jar in sorted(directory_of(KAFKA).glob("kafka-*.jar")):
            with zipfile.ZipFile(jar) as archive:
                names = [name for name in archive.namelist() if name.endswith(".json")]
                archive.extractall(self._schemas, names)
        self.environment = {"KAFKA_JARS": jars, "KAFKA_SCHEMAS": str(self._schemas)}
        with mock.patch.dict(os.environ, self.environment), warnings.catch_warnings():
            # They leave the files of the schemas to the garbage collector.
            warnings.simplefilter("ignore", ResourceWarning)
            path = [str(_TOOLS), *sys.path]
            with mock.patch.multiple(sys, path=path, dont_write_bytecode=True):
                self.fuzz: Any = importlib.import_module("ctlfuzz")
                self.oracle: Any = importlib.import_module("oracle")
                self.proto: Any = importlib.import_module("proto")

    def java_trace(self, folder: Path, port: int, seed: int, count: int) -> list[Step]:
        """Run a script against a fresh Java controller."""
        program = str(_TOOLS / "ctlfuzz.py")
        return [json.loads(line) for line in self.run(program, "java", folder, port, seed, count)]

    def run(self, *command: object) -> list[str]:
        """Run a Python program in a process of its own, as these tools leave sockets open; returns
        the lines that it prints."""
        own = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(_TOOLS)}
        result = subprocess.run(
            [sys.executable, *map(str, command)],
            capture_output=True,
            text=True,
            timeout=_CONTROLLER_SECONDS_MAX,
            env=os.environ | self.environment | own,
            cwd=ROOT,
            check=False,
        )
        assert result.returncode == 0, result.stderr[-2000:]
        return result.stdout.splitlines()


@dataclass
class Comparison:
    """What was compared. `known` counts deliberate differences; `differences` are all others."""

    requests: int = 0
    records: int = 0
    known: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def compare(tools: Tools, java: list[Step]) -> Comparison:
    """Send the script of a trace to our controller; ends at the first unknown difference, and at a
    known one that cannot be evened out."""
    return trio.run(_compare, tools, java)


async def _compare(tools: Tools, java: list[Step]) -> Comparison:
    async with our_controller(tools) as (node, comparison):
        script = _Script(tools, node, comparison)
        await trio.to_thread.run_sync(script.run, java)
    return comparison


@asynccontextmanager
async def our_controller(
    tools: Tools, **config: object
) -> AsyncIterator[tuple[StubNode, Comparison]]:
    """A fresh controller of ours at work, which has registered itself, and an empty comparison."""
    node = StubNode(1, voter_count=1, **config)
    bootstrap = [
        (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in FEATURES.items()
    ]
    node.controller = Controller(node.config, cast("Any", node), bootstrap=bootstrap)
    node.raft.cluster_id = tools.oracle.CID
    _begin_epoch(node)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        await node.controller.register_controller(
            ControllerRegistrationRequest(
                controller_id=1,
                features=[
                    Feature(name=name, min_supported_version=low, max_supported_version=high)
                    for name, (low, high) in SUPPORTED_FEATURES.items()
                ],
            )
        )
        yield node, Comparison()
        nursery.cancel_scope.cancel()


def _begin_epoch(node: StubNode) -> None:
    """Let this node lead a new epoch, whose first record is a control record."""
    node.raft.epoch += 1
    node.commit(control_batch(node.raft.end_offset, epoch=node.raft.epoch))
    node.controller.leadership(1, node.raft.epoch, node.raft.end_offset)


class Connection:
    """The script's connection: requests and answers go through Kafka's schemas."""

    def __init__(self, tools: Tools, node: StubNode, comparison: Comparison) -> None:
        self.cid = tools.oracle.CID
        self.is_refused_by_java = False
        self._keys = tools.oracle.KEY
        self._proto = tools.proto
        self._node = node
        self._comparison = comparison

    def call(self, name: str, version: int, body: dict[str, Any]) -> Any:
        """Return the answer of our controller."""
        if name == "BrokerRegistration" and self._is_only_refused_by_java(body["BrokerId"]):
            self._comparison.known["a fenced broker restarts within its session (C-REG-8)"] += 1
            return {"ErrorCode": _STALE_SESSION, "BrokerEpoch": -1}
        data = self._proto.encode(f"{name}Request", body, version)
        message, _ = messages.request_class(self._keys[name]).decode(data, version)
        request = request_of(message, version, to="peer")
        answer = trio.from_thread.run(self._node.answer, request)
        assert answer is not None, name
        self._comparison.requests += 1
        return self._proto.decode(f"{name}Response", answer.encode(version), version)

    def _is_only_refused_by_java(self, broker_id: int) -> bool:
        broker = self._node.image.brokers.get(broker_id)
        may_go = broker is not None and (broker.is_fenced or broker.in_controlled_shutdown)
        return self.is_refused_by_java and may_go

    def dump(self, first: int = 0, raw: bool = False) -> list[tuple[Any, ...]]:
        """Return the records of the log from an offset on."""
        del raw
        proto = self._proto
        found: list[tuple[Any, ...]] = []
        for batch in self._node.batches:
            if batch.last_offset < first:
                continue
            if batch.is_control:
                found.append((batch.base_offset, batch.base_offset, "control", 0, {}))
                continue
            for one in proto.batches(bytes(batch.raw)):
                for offset, _, value in proto.records(one):
                    reader = proto.R(value)
                    _, number, version = reader.uvar(), reader.uvar(), reader.uvar()
                    name = proto.META[number]["name"]
                    fields = proto.decode(name, value[reader.p :], version)
                    found.append((offset, one["base"], name, version, fields))
        return found


class _Script:
    """One run of a script at our controller."""

    def __init__(self, tools: Tools, node: StubNode, comparison: Comparison) -> None:
        self._tools, self._node, self._comparison = tools, node, comparison
        self._connection = Connection(tools, node, comparison)
        run = tools.fuzz.Run.__new__(tools.fuzz.Run)
        run.c, run.b, run.tid, run.p, run.nm = self._connection, {}, {}, {}, {}
        run.off = run.base = node.raft.end_offset
        run.failover = self._failover
        self._run = run

    def run(self, java: list[Step]) -> None:
        """Compare step after step."""
        for step in java:
            brokers = self._node.image.brokers.values()
            self._fenced = {broker.id for broker in brokers if broker.is_fenced}
            self._held = self._partitions_of(step["op"][1])
            self._levels = dict(self._node.image.features)
            self._connection.is_refused_by_java = [_STALE_SESSION, -1] in _answers(step)
            (line,) = self._run.go([step["op"]])
            self._comparison.records += len(step["rec"])
            if not self._is_same(step, json.loads(line)):
                return
            self._forget_offsets(step)

    def _partitions_of(self, broker: Any) -> set[tuple[str, int]]:
        """Return the partitions in which a broker is in sync or eligible, as a trace has them."""
        topics = self._node.image.topics
        return {
            (self._run.norm(topic_id), index)
            for topic_id, index in (*topics.in_isr(broker), *topics.in_elr(broker))
        }

    def _failover(self) -> None:
        run = self._run
        led = (q for (t, _), q in run.p.items() if t in run.tid.values())
        if any(q["Leader"] in run.b for q in led):
            trio.from_thread.run_sync(_begin_epoch, self._node)
            trio.from_thread.run(trio.testing.wait_all_tasks_blocked)

    def _is_same(self, java: Step, ours: Step) -> bool:
        """Compare one step; known differences are evened out."""
        self._forget_nobody(java)
        theirs, own = (Counter(map(_text, step["rec"])) for step in (java, ours))
        missing = [json.loads(text) for text in (theirs - own).elements()]
        reasons = [self._reason(java, record) for record in missing]
        if missing and all(reasons):
            self._comparison.known.update(reasons)
            if own - theirs:
                # What Kafka wrote from a stale index has changed what it wrote next.
                return _STALE not in reasons and self._differs(java, ours)
            self._add(missing)
            ours |= {"end": self._run.off - self._run.base, "rec": java["rec"]}
        for step in (java, ours):
            step["re"] = _sorted(step["re"])
        is_same = all(java[key] == ours[key] for key in ("end", "re", "rec"))
        return is_same or self._differs(java, ours)

    def _differs(self, java: Step, ours: Step) -> bool:
        """Note an unknown difference; returns False."""
        text = f"step {java['i']}: Java {json.dumps(java)}, ours {json.dumps(ours)}"
        self._comparison.differences.append(text)
        return False

    def _forget_nobody(self, java: Step) -> None:
        """Drop what Kafka stores as the last leader of a partition that had none before
        (C-PCB-8)."""
        topics, run = self._node.image.topics, self._run
        ids = {name: value for value, name in run.nm.items()}
        for name, _, fields in java["rec"]:
            if name == "PartitionChangeRecord" and fields["LastKnownElr"] == [_NOBODY]:
                self._comparison.known["nobody as the last leader (C-PCB-8)"] += 1
                fields["LastKnownElr"] = None
                key = ids[fields["TopicId"]], fields["PartitionId"]
                run.p[key]["LastKnownElr"] = [_NOBODY]
                partition = topics.partition(key)
                assert partition is not None
                changed = copy(partition)
                changed.last_known_elr = [_NOBODY]
                topics.add_partition(changed, encode_metadata(changed, 2))

    def _reason(self, java: Step, record: list[Any]) -> str:
        """Return why Kafka writes a record and ours does not, if that is on purpose."""
        name, _, fields = record
        kind = java["op"][0]
        if name == "BrokerRegistrationChangeRecord" and fields.get("Fenced") == 1:
            return "fenced again (C-HB-7)" if fields["BrokerId"] in self._fenced else ""
        if name == "FeatureLevelRecord":
            is_equal = self._levels.get(fields["Name"], 0) == fields["FeatureLevel"]
            return "a level is written again (C-FEA-4)" if is_equal else ""
        if name == "PartitionChangeRecord" and kind in ("up", "restart", "bounce", "unreg"):
            is_repeated = java["rec"].count(record) > 1
            is_stale = (fields["TopicId"], fields["PartitionId"]) not in self._held
            return _STALE if is_repeated or is_stale else ""
        return ""

    def _add(self, records: list[Any]) -> None:
        """Append records of a trace to our log."""
        if not records:
            return
        proto, run = self._tools.proto, self._run
        numbers = {meta["name"]: number for number, meta in proto.META.items()}
        values = [
            b"".join(
                (
                    *map(proto.uvar, (1, numbers[name], version)),
                    proto.encode(name, self._denormalised(fields), version),
                )
            )
            for name, version, fields in records
        ]
        batch = raw_batch(values, self._node.raft.end_offset, self._node.raft.epoch)
        trio.from_thread.run_sync(self._node.commit, batch)
        added = [one for one in self._connection.dump(run.off) if one[0] >= run.off]
        run.fold(added)
        run.off = added[-1][0] + 1

    def _denormalised(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a record with our ids and offsets."""
        ids = {name: value for value, name in self._run.nm.items()}

        def value_of(value: Any) -> Any:
            if isinstance(value, list):
                return [value_of(each) for each in value]
            if isinstance(value, str) and value[:1] in "dru" and value[1:].isdigit():
                number = int(value[1:])
                reserved = number.to_bytes(16, "big")
                return {"u": ids.get(value), "d": self._tools.oracle.u(number), "r": reserved}[
                    value[0]
                ]
            return value

        plain = {key: value_of(value) for key, value in fields.items()}
        if "BrokerEpoch" in plain:
            plain["BrokerEpoch"] += self._run.base
        return plain

    def _forget_offsets(self, java: Step) -> None:
        """Forget the offset that a broker has reported where Kafka does (C-HB-10)."""
        for name, _, fields in java["rec"]:
            if name == "BrokerRegistrationChangeRecord":
                self._node.controller._sessions.offsets.pop(fields["BrokerId"], None)


def _answers(step: Step) -> list[Any]:
    return step["re"] if isinstance(step["re"], list) else []


def _text(record: Any) -> str:
    return json.dumps(record, sort_keys=True)


def _sorted(answer: Any) -> Any:
    """Return an answer with the results of elections by partition, which Kafka has in the order of
    a hash table (C-ORD-2)."""
    results = answer.get("ReplicaElectionResults", ()) if isinstance(answer, dict) else ()
    for each in results:
        each["PartitionResult"].sort(key=lambda one: one["PartitionId"])
    return answer
