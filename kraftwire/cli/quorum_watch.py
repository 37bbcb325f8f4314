"""`kraftwire quorum watch`: the quorum as a table that changes in place.

Owns the view and its rhythm. A look that fails is shown and followed by the next: elections are
what one watches for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kraftwire.cli.quorum_options import Connection
from kraftwire.cli.quorum_output import replicas_with_status
from kraftwire.client import Admin, QuorumInfo, ReplicaInfo
from kraftwire.client.cluster import error_detail
from kraftwire.errors import ApiError

__all__ = ["quorum_line", "quorum_view", "watch_quorum"]

# A look waits this long for a leader before the view says that there is none.
_LOOK_SECONDS_MIN = 2.0
_UNKNOWN = "?"

_Look = tuple[QuorumInfo | None, str]


def watch_quorum(connection: Connection, interval_s: float, count: int | None) -> None:
    """Look at the quorum again and again until Ctrl-C or `count` looks."""
    admin = connection.admin(timeout_s=max(_LOOK_SECONDS_MIN, interval_s))
    console = Console()
    looks = _looks(admin, interval_s, count)
    try:
        if console.is_terminal:
            _watch_live(console, looks)
        else:
            for info, problem in looks:
                click.echo(quorum_line(info, problem, _now_ms()))
    except KeyboardInterrupt:
        return


def _watch_live(console: Console, looks: Iterator[_Look]) -> None:
    last: QuorumInfo | None = None
    with Live(console=console, auto_refresh=False) as live:
        for info, problem in looks:
            last = info or last
            live.update(quorum_view(last, problem, _now_ms()), refresh=True)


def _looks(admin: Admin, interval_s: float, count: int | None) -> Iterator[_Look]:
    """What each look finds, or why it finds nothing, one per interval."""
    done = 0
    while count is None or done < count:
        started = time.monotonic()
        try:
            look: _Look = (admin.describe_quorum(), "")
        except ApiError as error:
            look = (None, error_detail(error))
        yield look
        done += 1
        if done != count:
            time.sleep(max(0.0, started + interval_s - time.monotonic()))


def quorum_line(info: QuorumInfo | None, problem: str, now_ms: int) -> str:
    """A look in one line, for output that is not a terminal."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_ms / 1000))
    if info is None:
        return f"{moment}  no answer of a leader: {problem}"
    lags = ", ".join(
        f"{replica.id} {status.lower()} {_text(info.lag(replica))}"
        for replica, status in replicas_with_status(info)
    )
    head = f"leader {info.leader_id} epoch {info.leader_epoch}"
    return f"{moment}  {head} high watermark {info.high_watermark}; lag: {lags}"


def quorum_view(info: QuorumInfo | None, problem: str, now_ms: int) -> RenderableType:
    """A look as a table; with a problem, the last good look and what is wrong."""
    parts: list[RenderableType] = []
    if info is not None:
        head = Text(f"leader {info.leader_id}", style="bold")
        head.append(f"   epoch {info.leader_epoch}   high watermark {info.high_watermark}", "")
        parts += [head, _table(info, now_ms)]
    if problem:
        parts.append(Text(f"no answer of a leader: {problem}", style="red"))
    return Group(*parts)


def _table(info: QuorumInfo, now_ms: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="underline")
    table.add_column("node", justify="right")
    table.add_column("role")
    table.add_column("log end", justify="right")
    table.add_column("lag", justify="right")
    table.add_column("last fetch", justify="right")
    table.add_column("caught up", justify="right")
    table.add_column("directory id")
    for replica, status in replicas_with_status(info):
        table.add_row(*_cells(info, replica, status, now_ms), style=_style(info, replica, status))
    return table


def _cells(info: QuorumInfo, replica: ReplicaInfo, status: str, now_ms: int) -> tuple[str, ...]:
    return (
        str(replica.id),
        status.lower(),
        str(replica.log_end_offset),
        _text(info.lag(replica)),
        _ago(replica.last_fetch_ms, now_ms),
        _ago(replica.last_caught_up_ms, now_ms),
        replica.directory_id,
    )


def _style(info: QuorumInfo, replica: ReplicaInfo, status: str) -> str:
    if status == "Leader":
        return "bold green"
    # A follower fetches at least every half second; one that is seconds behind is in trouble.
    lag_ms = info.lag_ms(replica)
    return "yellow" if lag_ms is None or lag_ms > _LAG_MS_NORMAL else ""


_LAG_MS_NORMAL = 2000


def _ago(time_ms: int | None, now_ms: int) -> str:
    """How long ago, short; clocks of two machines may differ, so it is never below zero."""
    if time_ms is None:
        return _UNKNOWN
    seconds = max(0, now_ms - time_ms) / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _text(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
