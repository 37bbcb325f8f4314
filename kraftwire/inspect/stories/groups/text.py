"""The story of groups for people: the events, and the state at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from kraftwire.decode.text import GREEN, RED, YELLOW, count_text, duration_text
from kraftwire.inspect.stories.fitting import write_fitted
from kraftwire.inspect.stories.text import event_lines, head_line, width_of, write_lines
from kraftwire.inspect.tables import Table, wants_colour
from kraftwire.story.groups.model import Group, Member, assigned
from kraftwire.story.groups.story import GroupStory

__all__ = ["write_groups"]

# The largest number of rows of a table; the JSON form has all that are kept.
_ROWS_MAX = 200
_STYLES = {"error": RED, "gone": RED, "leave": YELLOW, "rebalance": GREEN}


def write_groups(story: GroupStory, start: float, end: float, stream: TextIO) -> None:
    """Write all sections of the story."""
    is_coloured, width = wants_colour(stream), width_of(stream)
    groups = [each for each in story.groups.by_id.values() if each.kind or each.offsets]
    if not groups:
        write_lines(stream, ["Groups: none was seen"])
        return
    head = head_line("Groups", start, end, is_coloured=is_coloured)
    write_lines(stream, [f"{head}; {count_text(len(groups), 'group')}", ""])
    events = event_lines(
        story.events.in_order(), start, width=width, overflow=story.events.overflow,
        styles=_STYLES if is_coloured else None,
    )
    if events:
        write_lines(stream, [*events, ""])
    tables = (
        _groups(story, groups), _members(groups, start), _shares(groups), _lag(story, groups, start)
    )
    for table in tables:
        if table.rows:
            table.rows = list(_once(table.rows))
            write_fitted(table, stream, width, rows_max=_ROWS_MAX)
    if story.groups.overflow:
        more = count_text(story.groups.overflow, "time")
        write_lines(stream, [f"There were more groups or members than are kept: {more}."])


def _groups(story: GroupStory, groups: list[Group]) -> Table:
    head = (
        "group", "kind", "members", "epoch", "rebalances", "longest", "in all", "lag", "commits"
    )
    table = Table("Groups at the end", head, right=(2, 3, 4, 5, 6, 7, 8), optional=(0,))
    for each in sorted(groups, key=lambda group: group.id):
        took = [generation.seconds for generation in each.generations if generation.seconds]
        ends = story.lag.ends
        lags = [offsets.lag(ends.get(place)) for place, offsets in each.offsets.items()]
        known = [lag for lag in lags if lag is not None]
        count = len(each.generations) + each.generation_overflow
        table.rows.append(
            (
                each.id,
                each.kind or "no members",
                f"{len(each.present)} of {len(each.members)}" if each.members else "",
                _epoch(each),
                f"{count:,}" if count else "",
                duration_text(max(took)) if took else "",
                duration_text(sum(took)) if took else "",
                f"{sum(known):,}" if known else "",
                f"{sum(offsets.commits for offsets in each.offsets.values()):,}",
            )
        )
    return table


def _epoch(group: Group) -> str:
    """Return the last generation, or the members' own where none began during the capture."""
    numbers = [each.number for each in group.generations[-1:]]
    numbers = numbers or [each.number for each in group.members.values() if each.number >= 0]
    return str(max(numbers)) if numbers else ""


def _members(groups: list[Group], start: float) -> Table:
    head = ("group", "member", "from", "to", "how it ended", "assignment at the end")
    table = Table("Members", head, right=(2, 3), optional=(0, 1, 4, 5))
    for group in sorted(groups, key=lambda each: each.id):
        for each in group.members.values():
            table.rows.append((group.id, *_member(each, group, start)))
    return table


def _member(each: Member, group: Group, start: float) -> tuple[str, ...]:
    is_tasks = group.kind == "streams"
    return (
        each.label,
        f"{each.joined - start:+.1f}",
        "" if each.ended is None else f"{each.ended - start:+.1f}",
        each.ending or f"last heard at {each.last_seen - start:+.1f}",
        "" if each.assignment is None else assigned(each.assignment, is_tasks=is_tasks),
    )


def _shares(groups: list[Group]) -> Table:
    head = ("group", "member", "acquired", "again", "accepted", "released", "rejected", "others")
    table = Table(
        "Records of share groups (again: acquired once more)",
        head, right=range(2, 8), optional=(0, 1),
    )
    for group in groups:
        for each in group.members.values():
            if not each.acquired and not each.acknowledged:
                continue
            done = dict(each.acknowledged)
            named = [done.pop(name, 0) for name in ("accepted", "released", "rejected")]
            counts = [each.acquired, each.redelivered, *named, sum(done.values())]
            table.rows.append(
                (group.id, each.label, *(f"{count:,}" if count else "" for count in counts))
            )
    return table


def _lag(story: GroupStory, groups: list[Group], start: float) -> Table:
    head = ("group", "partition", "committed", "end", "lag", "largest lag", "at", "commits")
    table = Table("Offsets and lag, in records", head, right=range(2, 8), optional=(0, 1))
    for group in sorted(groups, key=lambda each: each.id):
        for place, offsets in sorted(group.offsets.items()):
            end = story.lag.ends.get(place)
            lag = offsets.lag(end)
            table.rows.append(
                (
                    group.id,
                    f"{place[0]}-{place[1]}",
                    "" if offsets.committed is None else str(offsets.committed),
                    "" if end is None else str(end),
                    "" if lag is None else f"{lag:,}",
                    f"{offsets.lag_max:,}" if offsets.lag_max is not None else "",
                    f"{offsets.lag_max_time - start:+.1f}" if offsets.lag_max else "",
                    f"{offsets.commits:,}",
                )
            )
    return table


def _once(rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield the rows; the group is left out where it is that of the row before."""
    group = ""
    for row in rows:
        yield row if row[0] != group else ("", *row[1:])
        group = row[0]
