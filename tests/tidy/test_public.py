"""The page of public modules is true: what it names can be imported, and says what it offers."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.tidy.sources import ROOT

PAGE = (ROOT / "docs" / "public.md").read_text()
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]
MODULES = [name for row in ROWS for name in re.findall(r"`(kraftwire[\w.]*)`", row.split("|")[1])]


def _is_loaded_without_extras(name: str) -> bool:
    return not name.startswith("kraftwire.spark")


def test_the_page_names_modules() -> None:
    """Otherwise the tests below test nothing."""
    assert {"kraftwire.errors", "kraftwire.decode", "kraftwire.client"} <= set(MODULES)


@pytest.mark.parametrize("name", [name for name in MODULES if _is_loaded_without_extras(name)])
def test_a_public_module_says_what_it_offers(name: str) -> None:
    """People import what `__all__` lists; a name that is missing there is private."""
    holder, _, last = name.rpartition(".")
    if last == "find":
        assert callable(getattr(import_module(holder), last))
        return
    module = import_module(name)
    assert module.__all__
    for offered in module.__all__:
        assert hasattr(module, offered), f"{name}.{offered}"


@pytest.mark.parametrize("name", re.findall(r"^::: (\S+)$", REFERENCE, re.MULTILINE))
def test_the_reference_describes_public_modules(name: str) -> None:
    """What the reference shows, people use."""
    assert any(name.startswith(public) for public in MODULES) or "Message" in name
