"""`kraftwire metadata`: the state that a metadata log describes, and how two states differ.

Owns the arguments and the exit codes; `kraftwire.story.metadata` does the work.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kraftwire.cli.background import StatusLine
from kraftwire.cli.output import put, say
from kraftwire.cli.security import client_security
from kraftwire.collector import collect_rarely
from kraftwire.errors import KraftwireError, UsageError

if TYPE_CHECKING:
    from kraftwire.story.metadata.log_state import LogState

_INCOMPLETE = 3
_SAME, _DIFFERENT, _TROUBLE = 0, 1, 2

_TIMEOUT_S = 60.0
_LINES_AT_ONCE = 1000


class _FetchProgress(StatusLine):
    """A context that shows up to which offset a log was read."""

    def __init__(self) -> None:
        self._offset = 0
        super().__init__()

    def at(self, offset: int) -> None:
        """Note the offset of a batch."""
        self._offset = offset

    def text(self) -> str:
        """Return the offset."""
        return f"offset {self._offset:,}"


@click.group()
def metadata() -> None:
    """Show the state of a cluster from its metadata log, as it is or as it was.

    \b
      kraftwire metadata show /var/lib/kafka topics brokers
      kraftwire metadata show --bootstrap-controller localhost:9093 --at 1200
      kraftwire metadata diff node-1 node-1@1200
    """


@metadata.command()
@click.argument("arguments", nargs=-1, metavar="[DIR|FILE]... [SUBJECT]...")
@click.option("--at", type=click.IntRange(min=0), metavar="OFFSET",
              help="The state after the record at this offset.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object per line.")
@click.option("--bootstrap-controller", metavar="HOST:PORT,...",
              help="Read what a live quorum has committed.")
@click.option("--command-config", metavar="FILE", help="Kafka's properties of the client.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=_TIMEOUT_S,
              show_default=True, metavar="SECONDS", help="How long to wait for a leader.")
def show(
    arguments: tuple[str, ...],
    at: int | None,
    as_json: bool,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout: float,
) -> int:
    """Show topics, brokers, configurations and so on.

    Each comes with the offset that last changed it.

    DIR is a log directory or the folder __cluster_metadata-0 in it; FILE is a
    segment or a snapshot. SUBJECT is one of: features, voters, controllers,
    brokers, topics, configs, quotas, users, acls, tokens, producers; by default all.

    The log is read from offset 0, or else from its first snapshot; what only a
    snapshot has is marked with <=, as it may have changed earlier. Secrets are
    never shown. Of a directory, also records that are not committed yet count.

    Exit code: 0 if the state is complete, 3 if records before it are missing or
    could not be applied, 1 if nothing can be read, 2 for wrong usage.
    """
    from kraftwire.inspect.metadata import state_to_json, summary_lines, write_subject
    from kraftwire.story.metadata.rows import SUBJECTS, rows

    paths, chosen = _split(arguments)
    subjects = [each for each in SUBJECTS if each in chosen or not chosen]
    if bool(paths) == bool(bootstrap_controller):
        raise UsageError("name the files of a log, or --bootstrap-controller")
    collect_rarely()
    if bootstrap_controller is not None:
        state = _live(bootstrap_controller, command_config, timeout, at)
    else:
        state = _files(paths, at)
    source = bootstrap_controller or ", ".join(paths)

    def lines(subject: str) -> None:
        found = rows(state, [subject])
        while some := [json.dumps(row.to_json()) for row in islice(found, _LINES_AT_ONCE)]:
            put(*some)

    def tables(subject: str) -> None:
        write_subject(state, subject, sys.stdout, is_all=not chosen)

    if as_json:
        put(json.dumps(state_to_json(state, source)))
    else:
        put(*summary_lines(state, source), "")
    is_whole = _each(subjects, lines if as_json else tables)
    return 1 if not is_whole else 0 if state.is_complete else _INCOMPLETE


@metadata.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.argument("subjects", nargs=-1, metavar="[SUBJECT]...")
@click.option("--json", "as_json", is_flag=True, help="A JSON object per difference.")
@click.option("-q", "--quiet", is_flag=True, help="Nothing but the exit code.")
def diff(
    first: str, second: str, subjects: tuple[str, ...], as_json: bool, quiet: bool
) -> int:
    """Show what was added, removed and changed from A to B.

    A and B are log directories, segments or snapshots; with @OFFSET, the state
    after that offset. SUBJECT limits the comparison, as in show.

    Exit code, as of diff: 0 if the states are equal, 1 if they differ, 2 if that
    cannot be determined, as of a log that is incomplete.
    """
    from kraftwire.inspect.metadata import change_line, summary_lines
    from kraftwire.story.metadata.differences import differences
    from kraftwire.story.metadata.rows import SUBJECTS, rows

    unknown = [each for each in subjects if each not in SUBJECTS]
    if unknown:
        raise UsageError(f"there is no subject {unknown[0]!r}, only {', '.join(SUBJECTS)}")
    collect_rarely()
    try:
        states = [_files([path], at) for path, at in map(_place, (first, second))]
    except (KraftwireError, OSError) as error:
        say(f"kraftwire metadata: {error}")
        return _TROUBLE
    count = 0

    def compare(subject: str) -> None:
        nonlocal count
        for change in differences(*(rows(state, [subject]) for state in states)):
            count += 1
            if not quiet:
                put(json.dumps(change.to_json()) if as_json else change_line(change))

    is_whole = _each([each for each in SUBJECTS if each in subjects or not subjects], compare)
    incomplete = [each for each in zip(states, (first, second), strict=True)
                  if not each[0].is_complete]
    for state, name in incomplete:
        say(*(f"kraftwire metadata: {line}" for line in summary_lines(state, name)))
    if incomplete or not is_whole:
        return _TROUBLE
    return _DIFFERENT if count else _SAME


def _each(subjects: Iterable[str], act: Callable[[str], None]) -> bool:
    """Act on subjects one by one; returns whether all went well. By a fault of this software none
    is lost but its own."""
    faults = []
    for subject in subjects:
        try:
            act(subject)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - the line that follows names any
            faults.append(f"{subject} cannot be shown: {type(error).__name__}: {error}")
    say(*(f"kraftwire metadata: {fault}" for fault in faults))
    return not faults


def _split(arguments: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Tell files from subjects: after the files, the names of subjects."""
    from kraftwire.story.metadata.rows import SUBJECTS

    paths = [each for each in arguments if each not in SUBJECTS or Path(each).exists()]
    missing = [each for each in paths if not Path(each).exists()]
    if missing:
        raise UsageError(
            f"{missing[0]}: no such file or folder, and no subject: {', '.join(SUBJECTS)}"
        )
    return paths, [each for each in arguments if each not in paths]


def _place(text: str) -> tuple[str, int | None]:
    """Take DIR@OFFSET apart; a name with an @ that exists is a name."""
    path, mark, offset = text.rpartition("@")
    if Path(text).exists() or not (mark and offset.isascii() and offset.isdecimal()):
        return text, None
    return path, int(offset)


def _files(paths: list[str], at: int | None) -> LogState:
    from kraftwire.story.metadata.files import read_files

    with _FetchProgress() as progress:
        return read_files([Path(each) for each in paths], at, progress.at)


def _live(bootstrap: str, config: str | None, timeout_s: float, at: int | None) -> LogState:
    from kraftwire.cli.live_metadata import read_quorum
    from kraftwire.client.metadata_log import QuorumReader

    security = client_security(config, "metadata") if config else None
    with (
        QuorumReader(bootstrap, patience_s=timeout_s, security=security) as reader,
        _FetchProgress() as progress,
    ):
        return read_quorum(reader, at, progress.at)
