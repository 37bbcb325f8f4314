"""Traffic of kcat: metadata, records sent and read, without a group and with one."""

from __future__ import annotations

import json
import re
import subprocess

from tests.interop.clients.probe import bootstrap_servers, run
from tests.interop.clients.probe_kcat import version
from tests.interop.clients.traffic.orders import BATCH, COUNT, MORE, SECONDS, until, value

NAME = "kcat"
TOPIC = "kcat-orders"
SMALL = ("-X", "fetch.message.max.bytes=100", "-X", "fetch.wait.max.ms=200")


def kcat(*words: str, given: bytes = b"") -> str:
    """Run kcat to its end; returns what it prints. Raises: CalledProcessError if it fails."""
    command = ["kcat", "-b", bootstrap_servers(), "-X", f"client.id={NAME}", *words]
    done = subprocess.run(command, input=given, capture_output=True, timeout=SECONDS, check=True)
    return done.stdout.decode()


def cluster() -> str:
    """The brokers."""
    return f"{len(json.loads(kcat('-L', '-J'))['brokers'])} brokers"


def topics() -> str:
    """A topic that the broker creates when it is asked for."""
    until(lambda: bool(_partitions()), "a topic")
    return f"{len(_partitions())} partitions of {len(_partitions()[0]['replicas'])} replicas"


def _partitions() -> list[dict[str, list[int]]]:
    (topic,) = json.loads(kcat("-L", "-J", "-t", TOPIC))["topics"]
    return list(topic["partitions"])


def _produce(count: int, *more: str) -> str:
    lines = [value(NAME, number) + b"\n" for number in range(count)]
    batches = ("-X", f"batch.num.messages={BATCH}", "-X", "linger.ms=5")
    kcat("-P", "-t", TOPIC, *batches, *more, given=b"".join(lines))
    return f"{count} records"


def classic() -> str:
    """All records, without a group and by a group."""
    count = str(COUNT + MORE)
    started = ("-X", "auto.offset.reset=earliest")
    read = kcat("-C", "-t", TOPIC, "-o", "beginning", "-c", count, "-q", *SMALL)
    shared = kcat("-G", "kcat-readers", "-c", count, "-q", *SMALL, *started, TOPIC)
    assert sorted(read.splitlines()) == sorted(shared.splitlines())
    return f"{len(read.splitlines())} records"


def transactions() -> str:
    """One transaction, and where its partition ends."""
    _produce(BATCH, "-X", "transactional.id=kcat-transactions", "-p", "0")
    end = kcat("-Q", "-t", f"{TOPIC}:0:-1")
    match = re.search(r"offset (\d+)", end)
    assert match is not None, end
    assert int(match[1]) > BATCH, end
    return f"{BATCH} records"


if __name__ == "__main__":
    run(
        version(),
        {
            "cluster": cluster,
            "topics": topics,
            "produce": lambda: _produce(COUNT),
            "idempotent": lambda: _produce(MORE, "-X", "enable.idempotence=true"),
            "classic": classic,
            "transactions": transactions,
        },
    )
