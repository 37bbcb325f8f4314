"""`kraftwire quorum watch`: the quorum as a table updated in place, with the latest changes.

Owns the view and its timing. A failed sample is shown and does not end the command: users watch
elections."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kraftwire.cli.output import put
from kraftwire.cli.quorum.options import QuorumConnection
from kraftwire.cli.quorum.output import replicas_with_status
from kraftwire.client import Admin, LogInfo, QuorumInfo, ReplicaInfo
from kraftwire.client.cluster import error_detail
from kraftwire.client.results import NO_DIRECTORY_ID
from kraftwire.errors import ApiError, UsageError
from kraftwire.printable import printable

_View = tuple[QuorumInfo, LogInfo | None]

# A sample waits this long for a leader before the view reports that there is none.
_SAMPLE_SECONDS_MIN = 2.0
_UNKNOWN = "?"

# How many of the latest changes are shown below the table.
_CHANGES_SHOWN = 8
_LAG_MS_NORMAL = 2000


def changes(before: _View, now: _View) -> list[str]:
    """Return one line for each change from one sample to the next."""
    return [
        *_leader_changes(before[0], now[0]),
        *_voter_changes(before[0], now[0]),
        *_log_changes(before, now),
        *_loaded_changes(before, now),
    ]


def _leader_changes(before: QuorumInfo, now: QuorumInfo) -> Iterator[str]:
    if now.leader_epoch == before.leader_epoch:
        return
    text = f"node {now.leader_id} leads epoch {now.leader_epoch}"
    if now.leader_id == before.leader_id:
        yield f"{text} and led epoch {before.leader_epoch}"
    else:
        yield f"{text}, after {before.leader_id} led epoch {before.leader_epoch}"


def _voter_changes(before: QuorumInfo, now: QuorumInfo) -> Iterator[str]:
    old, new = _by_id(before.voters), _by_id(now.voters)
    for id in sorted(new.keys() - old.keys()):
        yield f"{id} has become a voter: voters are {_ids(new)}"
    for id in sorted(old.keys() - new.keys()):
        yield f"{id} is no longer a voter: voters are {_ids(new)}"
    for id in sorted(old.keys() & new.keys()):
        was, is_ = old[id].directory_id, new[id].directory_id
        if was != is_ and is_ != NO_DIRECTORY_ID:
            yield f"voter {id} has a new directory: {is_}; it was {was}"
        places = before.endpoints.get(id, ()), now.endpoints.get(id, ())
        if all(places) and places[0] != places[1]:
            moved = ", ".join(f"{e.listener}://{e.host}:{e.port}" for e in places[1])
            yield f"voter {id} has moved to {moved}"
    known = {(each.id, each.directory_id) for each in (*before.voters, *before.observers)}
    for each in now.observers:
        if (each.id, each.directory_id) not in known:
            yield f"{each.id} has begun to fetch as an observer, at offset {each.log_end_offset}"


def _log_changes(before: _View, now: _View) -> Iterator[str]:
    """Return changes of the leader's snapshot and log start; every leader has its own."""
    was, is_ = before[1], now[1]
    if was is None or is_ is None or before[0].leader_id != now[0].leader_id:
        return
    if is_.snapshot is not None and is_.snapshot != was.snapshot:
        id = f"{is_.snapshot.offset}-{is_.snapshot.epoch}"
        yield f"leader {now[0].leader_id} has written snapshot {id}"
    if is_.start_offset > was.start_offset:
        leader = now[0].leader_id
        yield f"leader {leader} has dropped its log before offset {is_.start_offset}"


def _loaded_changes(before: _View, now: _View) -> Iterator[str]:
    """Return the replicas that needed records before the leader's log start, and now have them."""
    log = now[1]
    if log is None or log.snapshot is None:
        return
    old = {(each.id, each.directory_id): each for each in (*before[0].voters, *before[0].observers)}
    for each in (*now[0].voters, *now[0].observers):
        was = old.get((each.id, each.directory_id))
        if was is None or each.log_end_offset < log.snapshot.offset:
            continue
        # For offset 0 a leader names its snapshot even if it has the records.
        if was.log_end_offset <= 0 or was.log_end_offset < log.start_offset:
            id = f"{log.snapshot.offset}-{log.snapshot.epoch}"
            since = max(0, was.log_end_offset)
            yield f"{each.id} was at offset {since} and is past snapshot {id}: it has loaded it"


def _by_id(replicas: tuple[ReplicaInfo, ...]) -> dict[int, ReplicaInfo]:
    return {each.id: each for each in replicas}


def _ids(replicas: dict[int, ReplicaInfo]) -> str:
    return ", ".join(map(str, sorted(replicas)))


@dataclass(frozen=True, slots=True)
class Sample:
    """The quorum at one moment, or why it was not found.

    `log` is None if it is unknown: through brokers, or just after a change of leader.
    """

    time_ms: int
    info: QuorumInfo | None = None
    log: LogInfo | None = None
    problem: str = ""


def watch_quorum(connection: QuorumConnection, interval_s: float, count: int | None) -> None:
    """Sample the quorum and show it, until Ctrl-C or `count` times."""
    admin = connection.admin(timeout_s=max(_SAMPLE_SECONDS_MIN, interval_s))
    has_log = connection.bootstrap_controller is not None
    console = Console()
    samples = _samples(admin, interval_s, count, has_log=has_log)
    try:
        if console.is_terminal:
            _watch_live(console, samples)
        else:
            _watch_lines(samples)
    except KeyboardInterrupt:
        return


def _watch_lines(samples: Iterator[Sample]) -> None:
    for sample, found in _with_changes(samples):
        for text in found:
            put(f"{_moment(sample.time_ms)}  {text}")
        put(quorum_line(sample))


def _watch_live(console: Console, samples: Iterator[Sample]) -> None:
    last: Sample | None = None
    lines: deque[str] = deque(maxlen=_CHANGES_SHOWN)
    with Live(console=console, auto_refresh=False) as live:
        for sample, found in _with_changes(samples):
            lines.extend(f"{_moment(sample.time_ms)}  {text}" for text in found)
            if sample.info is not None:
                last = sample
            shown = Sample(sample.time_ms) if last is None else last
            view = quorum_view(shown, sample.problem, lines, now_ms=sample.time_ms)
            live.update(view, refresh=True)


def _with_changes(samples: Iterator[Sample]) -> Iterator[tuple[Sample, list[str]]]:
    """Yield each sample with the changes since the last successful one."""
    before: Sample | None = None
    for sample in samples:
        found: list[str] = []
        if sample.info is not None:
            if before is not None and before.info is not None:
                found = changes((before.info, before.log), (sample.info, sample.log))
            # An unknown log is not a change.
            log = sample.log or (before.log if before is not None else None)
            before = Sample(sample.time_ms, sample.info, log)
        yield sample, found


def _samples(
    admin: Admin, interval_s: float, count: int | None, *, has_log: bool
) -> Iterator[Sample]:
    """Yield a sample per interval, successful or not."""
    done = 0
    while count is None or done < count:
        started = time.monotonic()
        try:
            info = admin.describe_quorum()
            log = _log_of(admin, info) if has_log else None
            sample = Sample(_now_ms(), info, log)
        except ApiError as error:
            sample = Sample(_now_ms(), problem=error_detail(error))
        yield sample
        done += 1
        if done != count:
            time.sleep(max(0.0, started + interval_s - time.monotonic()))


def _log_of(admin: Admin, info: QuorumInfo) -> LogInfo | None:
    try:
        return admin.describe_log(info)
    except (ApiError, UsageError):
        return None  # the leader has changed, or its address is not known yet


def quorum_line(sample: Sample) -> str:
    """Return a sample in one line, for output that is not a terminal."""
    moment, info = _moment(sample.time_ms), sample.info
    if info is None:
        return f"{moment}  no sample: {sample.problem}"
    lags = ", ".join(
        f"{replica.id} {status.lower()} {_text(info.lag(replica))}"
        for replica, status in replicas_with_status(info)
    )
    head = f"leader {info.leader_id} epoch {info.leader_epoch}"
    line = f"{moment}  {head} high watermark {info.high_watermark}; lag: {lags}"
    return f"{line}; {_log_text(sample.log)}" if sample.log else line


def quorum_view(
    sample: Sample, problem: str, lines: Sequence[str], *, now_ms: int
) -> RenderableType:
    """Return a sample as a table, with the latest changes.

    With a `problem`, `sample` is the last successful one, and the problem is shown below it.
    """
    parts: list[RenderableType] = []
    if sample.info is not None:
        info = sample.info
        head = Text(f"leader {info.leader_id}", style="bold")
        head.append(f"   epoch {info.leader_epoch}   high watermark {info.high_watermark}", "")
        if sample.log is not None:
            head.append(printable(f"   {_log_text(sample.log)}"), "")
        parts += [head, _table(info, now_ms)]
    if problem:
        parts.append(Text(printable(f"no sample: {problem}"), style="red"))
    parts += [Text(printable(line)) for line in lines]
    return Group(*parts)


def _log_text(log: LogInfo) -> str:
    text = f"log from {log.start_offset}"
    if log.snapshot is not None:
        text += f", snapshot {log.snapshot.offset}-{log.snapshot.epoch}"
    return text


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
        printable(replica.directory_id),
    )


def _style(info: QuorumInfo, replica: ReplicaInfo, status: str) -> str:
    if status == "Leader":
        return "bold green"
    # A follower fetches at least every half second; a lag of seconds means trouble.
    lag_ms = info.lag_ms(replica)
    return "yellow" if lag_ms is None or lag_ms > _LAG_MS_NORMAL else ""


def _ago(time_ms: int | None, now_ms: int) -> str:
    """Return how long ago, in short form; never negative, even if clocks differ."""
    if time_ms is None:
        return _UNKNOWN
    seconds = max(0, now_ms - time_ms) / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _text(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def _moment(time_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_ms / 1000))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
