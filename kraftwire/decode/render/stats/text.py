"""Statistics as tables."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

from kraftwire.decode.render.stats.collect import Collector
from kraftwire.decode.render.stats.exchanges import Row
from kraftwire.decode.render.stats.histogram import ERROR, Histogram
from kraftwire.decode.render.tables import Table, write_table
from kraftwire.decode.render.text import (
    count_text,
    duration_text,
    listed,
    size_text,
    utc_text,
    words,
)
from kraftwire.printable import printable_lines

__all__ = ["write_stats"]

_NS = 1_000_000_000
_NS_PER_MS = 1_000_000
_NAMES_SHOWN = 3


def write_stats(found: Collector, stream: TextIO) -> None:
    """Write all tables that have rows."""
    tables = [_apis(found), _clients(found), _errors(found), _partitions(found)]
    shown = [table for table in tables if table.rows]
    if not shown:
        stream.write("nothing to count\n")
    if found.exchanges.rows:
        stream.write(printable_lines([*_head(found), ""]))
    for number, table in enumerate(shown):
        if number:
            stream.write("\n")
        write_table(table, stream)


def _head(found: Collector) -> list[str]:
    first = found.first_ns or 0
    span = (found.last_ns - first) / _NS
    total = sum(row.requests for row in found.exchanges.rows.values())
    rate = f", {total / span:,.1f} a second" if span > 0 else ""
    return [
        f"{count_text(total, 'request')} in {duration_text(span)} from "
        f"{utc_text(first // _NS_PER_MS)}{rate}",
        "p50, p99 and max are the service times; what a Fetch waited for records is beside them "
        f"(quantiles within {ERROR:.1%})",
    ]


def _ms(histogram: Histogram, share: float | None = None) -> str:
    value = histogram.largest if share is None else histogram.quantile(share)
    if value is None or not histogram.count:
        return ""
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"


def _numbers(row: Row) -> tuple[str, ...]:
    """The columns that tables of exchanges share."""
    errors = sum(row.errors.values())
    return (
        f"{row.requests:,}",
        f"{row.without_response:,}" if row.without_response else "",
        f"{errors:,}" if errors else "",
        _ms(row.service, 0.5),
        _ms(row.service, 0.99),
        _ms(row.service),
        _ms(row.wait, 0.5),
        size_text(row.request_bytes),
        size_text(row.response_bytes),
    )


_NUMBER_HEADS = (
    "requests",
    "no answer",
    "errors",
    "p50 ms",
    "p99 ms",
    "max ms",
    "waited p50",
    "sent",
    "received",
)

_PARTITION_HEAD = (
    "log",
    "files",
    "batches",
    "records",
    "bytes",
    "offsets",
    "compression",
    "time",
    "remarks",
)


def _apis(found: Collector) -> Table:
    head = ("API", "version", *_NUMBER_HEADS, "clients")
    table = Table("By API", head, right=range(1, 12), optional=(11, 10, 9, 3, 1))
    clients: dict[tuple[str, int], set[str]] = {}
    for key in found.exchanges.rows:
        clients.setdefault((key.api, key.version), set()).add(key.client_id)
    merged = found.exchanges.by_api()
    for (api, version), row in sorted(merged.items(), key=lambda each: -each[1].requests):
        shown = "" if version < 0 else f"v{version}"
        table.rows.append((api, shown, *_numbers(row), str(len(clients[api, version]))))
    return table


def _clients(found: Collector) -> Table:
    head = ("client id", *_NUMBER_HEADS, "connections", "software", "APIs")
    table = Table("By client", head, right=range(1, 11), optional=(12, 10, 9, 8, 2, 11))
    apis: dict[str, Counter[str]] = {}
    for key, row in found.exchanges.rows.items():
        apis.setdefault(key.client_id, Counter())[key.api] += row.requests
    merged = found.exchanges.by_client()
    for client_id, row in sorted(merged.items(), key=lambda each: -each[1].requests):
        client = found.exchanges.clients.get(client_id)
        connections = f"{len(client.connections):,}" if client else ""
        software = listed(sorted(client.software)) if client and client.software else ""
        names = [name for name, _ in apis[client_id].most_common(_NAMES_SHOWN)]
        rest = len(apis[client_id]) - len(names)
        used = ", ".join(names) + (f" +{rest}" if rest else "")
        table.rows.append((client_id, *_numbers(row), connections, software, used))
    return table


def _errors(found: Collector) -> Table:
    table = Table("Errors", ("error", "API", "client id", "count"), right=(3,))
    rows = [
        (name, f"{key.api} v{key.version}", key.client_id, count)
        for key, row in found.exchanges.rows.items()
        for name, count in row.errors.items()
    ]
    for name, api, client_id, count in sorted(rows, key=lambda each: -each[3]):
        table.rows.append((name, api, client_id, f"{count:,}"))
    return table


def _partitions(found: Collector) -> Table:
    table = Table("By partition", _PARTITION_HEAD, right=(1, 2, 3, 4), optional=(8, 1, 2, 5))
    for name, row in sorted(found.logs.rows.items()):
        times = [row.first_timestamp, row.last_timestamp]
        remarks = [f"{row.control_batches:,} control"] if row.control_batches else []
        remarks += [f"{row.wrong_crc:,} with wrong CRC"] if row.wrong_crc else []
        remarks += [f"{row.other_lines:,} other lines"] if row.other_lines else []
        table.rows.append(
            (
                name,
                str(len(row.files)),
                f"{row.batches:,}",
                f"{row.records:,}",
                size_text(row.size),
                f"{row.first_offset}-{row.last_offset}" if row.batches else "",
                ", ".join(words(codec, [f"{n:,}"]) for codec, n in row.compression.most_common()),
                " to ".join(utc_text(each)[:19] for each in times if each is not None),
                ", ".join(remarks),
            )
        )
    return table
