"""Shows Kafka's brokers on a control plane in Python: run with ``make demo-brokers``.

It starts a cluster with the command line, lets a producer write while a controller is killed, and
shows what the controllers know of it.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer  # type: ignore[import-untyped]
from kafka.admin import NewTopic  # type: ignore[import-untyped]

from kraftwire.cli.main import main as kraftwire
from kraftwire.client import Admin

_RECORDS = 200


def main() -> int:
    """Run the demonstration; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "cluster"
        words = ("--controllers", "3", "--brokers", "2", "--detach")
        printed = _run("cluster", "up", *words, "--dir", str(place))
        if printed is None:
            return 1
        try:
            return _show(printed, place)
        finally:
            _run("cluster", "down", "--dir", str(place))


def _show(addresses: str, place: Path) -> int:
    servers, controllers = (line.split()[1] for line in addresses.splitlines())
    with _closed(KafkaAdminClient(bootstrap_servers=servers.split(","))) as admin:
        admin.create_topics([NewTopic("orders", num_partitions=3, replication_factor=2)])
    with _closed(KafkaProducer(bootstrap_servers=servers.split(","), acks="all")) as producer:
        for number in range(_RECORDS):
            if number == _RECORDS // 2:
                leader = Admin(bootstrap_controllers=controllers).describe_quorum().leader_id
                print(f"{number} records are acknowledged; controller {leader} leads: kill it")
                _run("cluster", "kill", str(leader), "--dir", str(place))
            producer.send("orders", str(number).encode()).get(60)
    print(f"{_RECORDS} records are acknowledged by both replicas")
    for words in (
        ("cluster", "status", "--dir", str(place)),
        ("quorum", "describe", "--status", "--bootstrap-controller", controllers),
        ("metadata", "show", "--bootstrap-controller", controllers, "brokers", "topics"),
    ):
        if _run(*words, is_shown=True) is None:
            return 1
    return 0


def _run(*words: str, is_shown: bool = False) -> str | None:
    """Run a command, and show it; returns what it printed, None if it failed."""
    print(f"\n$ kraftwire {' '.join(words)}", flush=True)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = kraftwire(list(words))
    if is_shown or words[1] == "up":
        print(printed.getvalue().rstrip(), flush=True)
    return printed.getvalue() if code == 0 else None


@contextlib.contextmanager
def _closed(client: Any) -> Iterator[Any]:
    try:
        yield client
    finally:
        client.close()


if __name__ == "__main__":
    sys.exit(main())
