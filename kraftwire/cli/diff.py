"""`kraftwire diff`: where two log directories, or two captures of the same traffic, diverge.

Owns the command's arguments and its output; `kraftwire.inspect.compare` does the work.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from kraftwire.capture.tls import KeyLog, ensure_ciphers
from kraftwire.cli.output import put, say
from kraftwire.decode.text import count_text
from kraftwire.errors import KraftwireError, UsageError
from kraftwire.inspect.compare import Comparison, compare_captures, compare_logs
from kraftwire.inspect.run.inputs import is_capture

_SAME, _DIFFERENT, _TROUBLE = 0, 1, 2


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="A JSON object per difference.")
@click.option("--keylog", metavar="FILE", help="Secrets of TLS connections (SSLKEYLOGFILE).")
@click.option("-q", "--quiet", is_flag=True, help="Nothing but the exit code.")
def diff(first: str, second: str, as_json: bool, keylog: str | None, quiet: bool) -> int:
    """Show where A and B diverge: log directories or segments, or captures of the same traffic.

    For each partition, shows the first batch that differs, and the records that only one of the two
    has; for each connection, the first frame that differs, and the frames that only one has.

    \b
      kraftwire diff broker-1/orders-0 broker-2/orders-0
      kraftwire diff client.pcap server.pcap

    Exit code: 0 if they are the same, 1 if they differ, 2 if that cannot be determined.
    """
    try:
        found = _compared(Path(first), Path(second), keylog)
    except KraftwireError as error:
        say(f"kraftwire: {error}")
        return _TROUBLE
    if not quiet:
        _show(found, as_json=as_json)
    if found.problems or not found.subjects:
        return _TROUBLE
    if found.differences:
        return _DIFFERENT
    return _TROUBLE if found.incomplete else _SAME


def _compared(first: Path, second: Path, keylog: str | None) -> Comparison:
    for path in (first, second):
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
    kinds = [path.is_file() and is_capture(str(path)) for path in (first, second)]
    if kinds[0] != kinds[1]:
        capture, other = (first, second) if kinds[0] else (second, first)
        raise UsageError(f"{capture} is a capture, {other} is not")
    if not kinds[0]:
        return compare_logs(first, second)
    if keylog is not None:
        ensure_ciphers()
    return compare_captures(first, second, None if keylog is None else KeyLog.read(keylog))


def _show(found: Comparison, *, as_json: bool) -> None:
    for each in found.differences:
        if as_json:
            put(json.dumps(each.to_json()))
        else:
            put(f"{each.subject}: {each.text}" if each.subject else each.text)
    for problem in found.problems:
        say(f"kraftwire: {problem}")
    if found.more_problems:
        say(f"kraftwire: {found.more_problems:,} more problems")
    if not found.subjects:
        say("kraftwire: there is nothing to compare: no segment, no snapshot, no frame")
        return
    if found.incomplete:
        verb = "is" if found.incomplete == 1 else "are"
        frames = count_text(found.incomplete, "frame")
        say(f"kraftwire: {frames} in both {verb} incomplete and not compared")
    count = len(found.differences)
    differ = "no difference" if not count else f"{count:,} difference{'s' * (count != 1)}"
    say(f"kraftwire: {found.compared:,} {found.noun} in both, {differ}")
