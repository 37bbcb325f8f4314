"""`kraftwire schema`: which messages there are, what they hold, and how they changed.

Owns the command's arguments; the other modules of this folder print what they select. Works
from the facts inside the generated modules, so it needs no schema files.
"""

from __future__ import annotations

import json
import re
from typing import Any

import click

from kraftwire.cli.output import put
from kraftwire.cli.schema.changes import changes_json, changes_text, check_range
from kraftwire.cli.schema.layout import layout_json, layout_text
from kraftwire.cli.schema.names import all_words, find_messages
from kraftwire.cli.schema.overview import (
    KINDS,
    list_json,
    list_text,
    overview_json,
    overview_text,
)
from kraftwire.cli.tables import show
from kraftwire.errors import UsageError
from kraftwire.wire.facts import MessageFacts

_VERSIONS = re.compile(r"(?P<low>\d{0,5})(?:\.\.|-)(?P<high>\d{0,5})")


def _words(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:  # noqa: ARG001
    return [word for word in all_words() if word.casefold().startswith(start.casefold())]


@click.command()
@click.argument("name", required=False, shell_complete=_words)
@click.argument("versions", required=False)
@click.option("--kind", type=click.Choice(list(KINDS)), metavar="KIND",
              help=f"List only messages of a kind: {', '.join(KINDS)}.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def schema(name: str | None, versions: str | None, kind: str | None, as_json: bool) -> None:
    """Show messages, their byte layout, and what changed between versions.

    NAME is a message (VoteRequest), an API (Fetch: request and response) or an API key (1).
    VERSIONS is one version, for the byte layout, or two, such as 12..17, for what changed between
    them; 12.. and ..17 stop at the newest and start at the oldest.

    \b
      kraftwire schema                  all messages
      kraftwire schema VoteRequest      its fields in all versions, its history
      kraftwire schema VoteRequest 2    its byte layout
      kraftwire schema Fetch 12..17     what changed, in request and response
    """
    if name is None:
        _print([list_text(kind)], [list_json(kind)] if as_json else None)
        return
    if kind:
        raise UsageError("--kind is for the list of messages, not for one of them")
    found = find_messages(name)
    texts, data = [], []
    for facts in found:
        text, row = _one(facts, versions)
        texts.append(text)
        data.append(row)
    _print(texts, data if as_json else None)


def _one(facts: MessageFacts, versions: str | None) -> tuple[list[str], dict[str, Any]]:
    if versions is None:
        return overview_text(facts), overview_json(facts)
    if versions.isdecimal():
        version = int(versions)
        if version not in facts.versions:
            raise UsageError(f"{facts.name} has versions {facts.versions}, not {version}")
        return layout_text(facts, version), layout_json(facts, version)
    low, high = _range(facts, versions)
    return changes_text(facts, low, high), changes_json(facts, low, high)


def _range(facts: MessageFacts, text: str) -> tuple[int, int]:
    match = _VERSIONS.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is neither a version nor a range such as 12..17")
    low = int(match["low"] or facts.versions.low)
    high = int(match["high"] or facts.versions.high)
    check_range(facts, low, high)
    return low, high


def _print(texts: list[list[str]], data: list[Any] | None) -> None:
    if data is not None:
        put(*json.dumps(data[0] if len(data) == 1 else data, indent=2).splitlines())
        return
    for number, lines in enumerate(texts):
        show(["", *lines] if number else lines)
