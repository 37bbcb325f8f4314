"""The table of APIs in the README says what listeners offer."""

from __future__ import annotations

import re
from pathlib import Path

from kraftwire import messages
from kraftwire.node.handlers import versions

_README = Path(versions.__file__).with_name("README.md")
_ROW = re.compile(r"\| ([A-Z]\w+(?:, [A-Z]\w+)*) \| ([-0-9, ]+) \| (both|client|controller) \|")
_LISTENERS = {
    "client": ("client",),
    "controller": ("controller",),
    "both": ("client", "controller"),
}


def _offered() -> dict[tuple[str, str], str]:
    """API and listener -> versions, as the node offers them."""
    tables = {"client": versions.BROKER_VERSIONS, "controller": versions.CONTROLLER_VERSIONS}
    return {
        (messages.API_NAMES[key], listener): str(low) if low == high else f"{low}-{high}"
        for listener, table in tables.items()
        for key, (low, high) in table.items()
    }


def _documented() -> dict[tuple[str, str], str]:
    """The same, as the README says."""
    found = {}
    for apis, ranges, listeners in _ROW.findall(_README.read_text(encoding="utf-8")):
        names, of_names = apis.split(", "), ranges.split(", ")
        if len(of_names) == 1:
            of_names *= len(names)
        for name, of_name in zip(names, of_names, strict=True):
            for listener in _LISTENERS[listeners]:
                assert (name, listener) not in found, f"{name} has two rows"
                found[name, listener] = of_name
    return found


def test_the_table_of_handlers_has_the_versions_that_are_offered() -> None:
    """Each API of each kind of listener is in one row, with its range."""
    assert _documented() == _offered()
