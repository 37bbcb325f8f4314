"""Lets clients meet errors, and compares what they do with docs/client-errors.md.

    python -m tests.compat.errors [--only GLOB] [--client NAME] [--of-the-day N] [--write]

A real broker is started, with the proxy before it. `--write` puts what was found into the page;
without it, each cell that differs is tried again, then printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fnmatch import fnmatchcase

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from kraftwire.testing import kafka_cluster, proxy
from tests.compat.errors.meeting import Meeting
from tests.compat.errors.program import COMMANDS, Program
from tests.compat.errors.refusals import REFUSALS
from tests.compat.errors.table import PAGE, Cells, Key, page, read_cells, rows_of
from tests.support.kafka.maven import KAFKA, directory_of, kafka_classpath
from tests.support.kafka.process import QUICK_GROUPS
from tests.support.suite.of_the_day import of_the_day, today

_REPEATS = 2
_TOPIC = "orders"
_RECORDS = 10
# A share group learns what it may read with a heartbeat.
_PROPERTIES = {
    **QUICK_GROUPS,
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.compat.errors", description=__doc__)
    parser.add_argument("--only", default="*", metavar="GLOB", help="of APIs")
    parser.add_argument("--client", choices=COMMANDS, help="only this one")
    parser.add_argument("--of-the-day", type=int, metavar="N", help="N APIs, others every day")
    parser.add_argument("--write", action="store_true", help="put what was found into the page")
    options = parser.parse_args(arguments)
    apis = [api for api in REFUSALS if fnmatchcase(api, options.only)]
    if options.of_the_day is not None:
        apis = of_the_day(apis, options.of_the_day, today())
    clients = [name for name in COMMANDS if options.client in (None, name)]
    found = _meet(clients, apis)
    known = read_cells()
    if options.write:
        PAGE.write_text(page({**known, **found}, COMMANDS), "utf-8")
        return 0
    different = _differences(found, known, clients, apis)
    for _ in range(_REPEATS):
        if different:  # a busy machine makes clients wait
            found |= _meet(clients, sorted({api for api, _, _ in different}))
            different = _differences(found, known, clients, apis)
    for key in different:
        print(f"{' '.join(key)}: {found.get(key)}; the page has {known.get(key)}")
    return 1 if different else 0


def _differences(
    found: Cells, known: Cells, clients: Sequence[str], apis: Sequence[str]
) -> list[Key]:
    chosen = {key for key in known if key[0] in apis and key[2] in clients}
    every = sorted(found.keys() | chosen)
    return [key for key in every if _steady(found.get(key)) != _steady(known.get(key))]


def _steady(cell: str | None) -> str | None:
    """Return a cell without the number of tries: a request may be made twice at the same time."""
    return cell and re.sub(r"tried \d times", "tried again", cell)


def _meet(clients: Sequence[str], apis: Sequence[str]) -> Cells:
    """Return the cells of clients, which are at work at the same time."""
    kafka_classpath(KAFKA)  # fetches it
    with kafka_cluster(1, 1, properties=_PROPERTIES, kafka=directory_of(KAFKA)) as cluster:
        _prepare(cluster.bootstrap_servers)
        with ThreadPoolExecutor(len(clients)) as pool:
            work = [pool.submit(_meet_one, cluster.bootstrap_servers, c, apis) for c in clients]
            return {key: cell for each in work for key, cell in each.result().items()}


def _prepare(servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic(_TOPIC, 1, 1)], wait_for_metadata=True)
    admin.close()
    producer = KafkaProducer(bootstrap_servers=servers)
    for _ in range(_RECORDS):
        producer.send(_TOPIC, b"x", partition=0).get(60)
    producer.close()


def _meet_one(servers: str, client: str, apis: Sequence[str]) -> Cells:
    found: Cells = {}
    with closing(Program(COMMANDS[client])) as program, proxy(servers) as before:
        meeting = Meeting(before, program, _TOPIC)
        offered = program.apis()
        assert set(offered) <= set(REFUSALS), set(offered) - set(REFUSALS)
        for api in offered:
            if api in apis:
                cells = rows_of(client, meeting.outcomes(api))
                for (_, error, _), cell in cells.items():
                    print(f"{client}: {api} {error}: {cell}", flush=True)
                found |= cells
    return found


if __name__ == "__main__":
    sys.exit(main())
