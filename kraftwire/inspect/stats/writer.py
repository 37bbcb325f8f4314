"""Writes statistics: as tables and as one JSON object."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TextIO, TypeVar

from kraftwire.decode.text import (
    count_text,
    duration_text,
    listed,
    size_text,
    utc_text,
)
from kraftwire.inspect.attributes_json import attributes_to_json
from kraftwire.inspect.stats.collect import (
    ERROR,
    LEGEND,
    P99_COUNT_MIN,
    ExchangeCounts,
    ExchangeKey,
    Histogram,
    PartitionCounts,
    Sizes,
    StatsCollector,
    partitions_table,
    without_batches,
)
from kraftwire.inspect.tables import Table, width_of, write_table
from kraftwire.printable import printable, printable_lines

Sort = Literal["p99", "requests", "errors", "name"]

Name = TypeVar("Name")

# Rows without a value come last.
_NOTHING = -1.0

_KEYS: dict[str, Callable[[ExchangeCounts], float]] = {
    "p99": lambda row: _high(row.service),
    "requests": lambda row: row.requests,
    "errors": lambda row: sum(row.errors.values()),
}


def in_order(
    rows: Iterable[tuple[Name, ExchangeCounts]], sort: Sort
) -> list[tuple[Name, ExchangeCounts]]:
    """Return the rows with their names, the largest values first, or names from A to Z."""
    by_name = sorted(rows, key=lambda each: str(each[0]))
    if sort == "name":
        return by_name
    key = _KEYS[sort]
    return sorted(by_name, key=lambda each: -key(each[1]))


def slowest_first(rows: Iterable[tuple[Name, ExchangeCounts]]) -> list[tuple[Name, ExchangeCounts]]:
    """Return the rows with their names by the p99 of what surely is service, or its largest."""
    by_name = sorted(rows, key=lambda each: str(each[0]))
    return sorted(by_name, key=lambda each: -_high(each[1].clear_service))


def _high(service: Histogram) -> float:
    return _NOTHING if service.high is None else service.high


_NS = 1_000_000_000
_NS_PER_MS = 1_000_000
_MS = 1000
# Times without a recording that are listed; the JSON form has all.
_HOLES_SHOWN = 5

# The largest numbers of rows of clients crossed with APIs, and of sizes.
_PAIRS_SHOWN = 20
_SIZES_SHOWN = 20

_ORDERS: dict[Sort, str] = {
    "p99": "longest p99 or max first",
    "requests": "most requests first",
    "errors": "most errors first",
    "name": "by name",
}
_NAMES_SHOWN = 3

_NUMBER_HEADS = ("requests", "errors", "p50", "p99", "max", "waited")


def write_stats(
    found: StatsCollector, stream: TextIO, sort: Sort = "p99", *, top: int | None = None
) -> None:
    """Write all tables that have rows, each with at most `top` rows."""
    width = width_of(stream)
    secured = _secured(found)
    if not (found.exchanges.rows or found.logs.rows or secured.rows):
        stream.write("nothing to count\n")
        return
    if found.exchanges.rows:
        lines = [part for line in _head(found) for part in textwrap.wrap(line, width)]
        stream.write(printable_lines([*lines, ""]))
    for table, rows_max, legend in (
        (_clients(found, sort), None, ""),
        (_pairs(found, sort), _PAIRS_SHOWN, ""),
        (_apis(found, sort), None, ""),
        (_errors(found), None, ""),
        (_sizes(found, "requests"), _SIZES_SHOWN, LEGEND),
        (_sizes(found, "responses"), _SIZES_SHOWN, LEGEND),
        (_software(found), None, ""),
        (secured, _PAIRS_SHOWN, ""),
        (partitions_table(found.logs), None, ""),
    ):
        if table.rows:
            write_table(table, stream, width, rows_max=top or rows_max, legend=legend)
    for sentence in without_batches(found.logs):
        stream.write(printable_lines(textwrap.wrap(sentence, width)))


def _head(found: StatsCollector) -> list[str]:
    first = found.first_ns or 0
    whole, holes = (found.last_ns - first) / _NS, found.holes
    span = whole - sum(end - start for start, end in holes)
    total = sum(row.requests for row in found.exchanges.rows.values())
    rate = f", {total / span:,.1f} a second" if span > 0 else ""
    lines = [
        f"{count_text(total, 'request')} in {duration_text(span)} from "
        f"{utc_text(first // _NS_PER_MS)}{rate}; rows count requests, each with its response",
        *(f"nothing is recorded for {duration_text(end - start)} from "
          f"{utc_text(round(start * _MS))}" for start, end in holes[:_HOLES_SHOWN]),
        f"times: p50, p99 and max are milliseconds of service (quantiles within {ERROR:.1%}, p99 "
        f"only of {P99_COUNT_MIN} and more); "
        "waited is the p50 of what requests waited for records (Fetch, ShareFetch), for other "
        "members (JoinGroup, SyncGroup), or after another request of their connection",
    ]
    return lines + _slowest(found)


def _slowest(found: StatsCollector) -> list[str]:
    """Describe which client waits longest for its answers, and for which API."""
    clients = slowest_first(found.exchanges.by_client().items())
    name, row = clients[0]
    if len(clients) < 2 or not row.clear_service.count:
        return []
    pairs = slowest_first(found.exchanges.rows.items())
    worst, pair = next(each for each in pairs if each[0].client_id == name)
    requests = count_text(pair.requests, "request")
    unclear = sum(each.unclear.count for _, each in clients)
    left_out = (
        f" (without {count_text(unclear, 'answer')} to Fetch or ShareFetch whose records are older "
        "than the request: they may have waited)"
    )
    return [
        f"slowest client: {name}, {_named_high(row.clear_service)}; its slowest API is "
        f"{_api(worst)}, {_named_high(pair.clear_service)} in {requests}"
        f"{left_out if unclear else ''}"
    ]


def _named_high(histogram: Histogram) -> str:
    """Return the p99, or the largest value by its name."""
    name = "max" if histogram.p99 is None else "p99"
    return f"{name} {_ms(histogram.high)} ms"


def _ms(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"


def _api(key: ExchangeKey) -> str:
    return key.api if key.version < 0 else f"{key.api} v{key.version}"


def _numbers(row: ExchangeCounts) -> tuple[str, ...]:
    """Return the columns that all tables of exchanges have."""
    errors = sum(row.errors.values())
    return (
        f"{row.requests:,}",
        f"{errors:,}" if errors else "",
        _ms(row.service.quantile(0.5)),
        _ms(row.service.p99),
        _ms(row.service.largest if row.service.count else None),
        _ms(row.wait.quantile(0.5)),
    )


def _clients(found: StatsCollector, sort: Sort) -> Table:
    head = ("client id", *_NUMBER_HEADS)
    table = Table(_title("By client", sort), head, right=range(1, 7), names=(0,))
    for client_id, row in in_order(found.exchanges.by_client().items(), sort):
        table.rows.append((client_id, *_numbers(row)))
    return table


def _pairs(found: StatsCollector, sort: Sort) -> Table:
    head = ("client id", "API", *_NUMBER_HEADS)
    title = _title("By client and API", sort)
    table = Table(title, head, right=range(2, 8), names=(0, 1))
    named = [((key.client_id, _api(key)), row) for key, row in found.exchanges.rows.items()]
    for (client_id, api), row in in_order(named, sort):
        table.rows.append((client_id, api, *_numbers(row)))
    return table


def _apis(found: StatsCollector, sort: Sort) -> Table:
    head = ("API", *_NUMBER_HEADS)
    table = Table(_title("By API", sort), head, right=range(1, 7), names=(0,))
    for name, row in in_order(_by_api(found), sort):
        table.rows.append((name, *_numbers(row)))
    return table


def _by_api(found: StatsCollector) -> list[tuple[str, ExchangeCounts]]:
    merged = found.exchanges.by_api().items()
    return [(_api(ExchangeKey(api, version, "")), row) for (api, version), row in merged]


def _title(text: str, sort: Sort) -> str:
    return f"{text}, {_ORDERS[sort]}"


def _errors(found: StatsCollector) -> Table:
    head = ("error", "API", "client id", "count")
    title = "Errors, and requests without an answer"
    table = Table(title, head, right=(3,), names=(0, 1, 2))
    rows: list[tuple[str, str, str, int]] = []
    for key, row in found.exchanges.rows.items():
        rows += [(name, _api(key), key.client_id, count) for name, count in row.errors.items()]
        if row.without_response:
            rows.append(("(no answer)", _api(key), key.client_id, row.without_response))
        if row.lost_responses:
            rows.append(("(answer not captured)", _api(key), key.client_id, row.lost_responses))
        if row.not_recorded:
            rows.append(("(recording ended before)", _api(key), key.client_id, row.not_recorded))
    for name, api, client_id, count in sorted(rows, key=lambda each: (-each[3], each[:3])):
        table.rows.append((name, api, client_id, f"{count:,}"))
    return table


def _sizes(found: StatsCollector, which: str) -> Table:
    head = ("API", "total", "p50", "p99", "max", "sizes")
    title = f"Sizes of {which}, most bytes first"
    table = Table(title, head, right=(1, 2, 3, 4), names=(0,))
    rows = [
        (name, row.request_sizes if which == "requests" else row.response_sizes)
        for name, row in _by_api(found)
    ]
    for name, sizes in sorted(rows, key=lambda each: (-each[1].total, each[0])):
        if sizes.total:
            table.rows.append((name, *_size_cells(sizes)))
    return table


def _size_cells(sizes: Sizes) -> Sequence[str]:
    found = sizes.histogram
    values = found.quantile(0.5), found.p99, found.largest
    texts = ["" if each is None else size_text(round(each)) for each in values]
    return (size_text(sizes.total), *texts, sizes.bars())


def _software(found: StatsCollector) -> Table:
    head = ("client id", "connections", "software", "APIs")
    table = Table("Clients", head, right=(1,), names=(0,), lists=(2, 3))
    apis: dict[str, Counter[str]] = {}
    for key, row in found.exchanges.rows.items():
        apis.setdefault(key.client_id, Counter())[key.api] += row.requests
    for client_id, used in sorted(apis.items()):
        client = found.exchanges.clients.get(client_id)
        connections = f"{len(client.connections):,}" if client else ""
        software = listed(sorted(client.software)) if client and client.software else ""
        names = [name for name, _ in used.most_common(_NAMES_SHOWN)]
        names += [f"{len(used) - len(names)} more"] if len(used) > len(names) else []
        table.rows.append((client_id, connections, software, listed(names)))
    return table


def _secured(found: StatsCollector) -> Table:
    head = ("connection", "TLS", "mechanism", "principal")
    table = Table("Connections that are encrypted or log in", head, names=(0, 3))
    for connection, each in sorted(found.secured().items()):
        cells = (each.tls_version, each.mechanism, each.principal)
        table.rows.append((connection, *(cell or "" for cell in cells)))
    return table


def stats_to_json(found: StatsCollector) -> dict[str, Any]:
    """Return all rows, without sums, as a JSON object."""
    has_frames = found.first_ns is not None
    return {
        "start": found.first_ns / _NS if found.first_ns is not None else None,
        "end": found.last_ns / _NS if has_frames else None,
        "notRecorded": [{"from": start, "to": end} for start, end in found.holes],
        "exchanges": [_row(key, row) for key, row in found.exchanges.rows.items()],
        "clients": [
            {
                "clientId": client_id,
                "software": sorted(client.software),
                "connections": len(client.connections),
            }
            for client_id, client in found.exchanges.clients.items()
        ],
        "connections": [
            {"connection": connection}
            | attributes_to_json(each, "tlsVersion mechanism principal")
            for connection, each in sorted(found.secured().items())
        ],
        "logs": [_partition(name, row) for name, row in sorted(found.logs.rows.items())],
    }


def _row(key: ExchangeKey, row: ExchangeCounts) -> dict[str, Any]:
    return attributes_to_json(
        row,
        "api version clientId requests responses withoutResponse lostResponses notRecorded "
        "requestBytes responseBytes errors latencyMs serviceMs waitMs requestSizes responseSizes",
        api=key.api,
        version=key.version if key.version >= 0 else None,
        clientId=key.client_id,
        latencyMs=row.latency.to_json(),
        serviceMs=row.service.to_json(),
        waitMs=row.wait.to_json(),
        requestSizes=row.request_sizes.to_json(),
        responseSizes=row.response_sizes.to_json(),
    )


def _partition(name: str, row: PartitionCounts) -> dict[str, Any]:
    return attributes_to_json(
        row,
        "log files batches records controlBatches wrongCrc bytes=size compression firstOffset "
        "lastOffset firstTimestamp lastTimestamp otherLines",
        log=name,
        files=len(row.files),
    )


class StatsWriter(StatsCollector):
    """Counts everything and writes tables at the end."""

    def __init__(
        self,
        stream: TextIO,
        *,
        sort: Sort = "p99",
        top: int | None = None,
    ) -> None:
        """Write to a stream. `top` is the largest number of rows of each table."""
        super().__init__()
        self._stream = stream
        self._sort = sort
        self._top = top

    def finish(self) -> None:
        """Write the statistics as tables."""
        super().finish()
        write_stats(self, self._stream, self._sort, top=self._top)
        self._stream.flush()


class StatsJsonWriter(StatsWriter):
    """Counts everything and writes one JSON object at the end."""

    def finish(self) -> None:
        """Write the statistics as JSON."""
        StatsCollector.finish(self)
        self._stream.write(printable(json.dumps(stats_to_json(self))) + "\n")
        self._stream.flush()
