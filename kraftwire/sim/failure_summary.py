"""The lines that describe a violation, the same in every kind of simulation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kraftwire.sim.invariants import meaning

# How texts about a violation name a node: at their start, or after one of these words.
_NODE = re.compile(r"(?:^|\b(?:at|candidate|leader|node|says|voter) )(\d+)\b")

# A value with its field names, as Python shows it, and a field in it.
_SHOWN = re.compile(r"\b[A-Z]\w*\((\w+=[^()]*)\)")
_FIELD = re.compile(r"\b(\w+)=")

_ELECTIONS = {"S1", "S2", "S3", "S4", "S17", "S18", "S19", "S20"}


def report_lines(
    title: str, invariant: str, detail: str, evidence: Sequence[str], nodes: Sequence[str]
) -> list[str]:
    """Return the lines after a timeline: the run, what broke, the state of the nodes."""
    return [
        title,
        *summary_lines(invariant, detail, evidence),
        *_titled("state of the nodes, those involved first", nodes),
    ]


def summary_lines(invariant: str, detail: str, evidence: Sequence[str]) -> list[str]:
    """Describe a violation: the invariant and what happened, what must hold, the contradicting
    facts."""
    return [
        f"{invariant}: {_plain(detail)}",
        f"    must hold: {meaning(invariant)}",
        *_titled("evidence", [_plain(line) for line in evidence]),
    ]


def _titled(title: str, lines: Sequence[str]) -> list[str]:
    """Return lines under a title; nothing if there are none."""
    return [f"    {title}:", *(f"        {line}" for line in lines)] if lines else []


def nodes_named(texts: Iterable[str]) -> set[int]:
    """Return the ids of the nodes that texts about a violation name."""
    return {int(found) for text in texts for found in _NODE.findall(text)}


def is_of_elections(invariant: str) -> bool:
    """Return whether an invariant is about votes and leaders rather than logs."""
    return invariant in _ELECTIONS


def _plain(text: str) -> str:
    """Simplify the `repr` of values in a text, which may come from any error."""
    return _SHOWN.sub(lambda found: _FIELD.sub(r"\1 ", found[1]), text)
