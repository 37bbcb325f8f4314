"""Steps and layouts: how their text becomes lines, and when they are equal."""

from __future__ import annotations

import pytest

from kraftwire.messages.create_topics_request import CreateTopicsRequest
from kraftwire.wire.functions.layout import layouts_of, versions_of
from kraftwire.wire.functions.names import ranges
from kraftwire.wire.functions.steps import Default, Step, lines_of


class Twice(Step):
    """A step with other steps inside."""

    TEXT = """
if {condition}:
    {steps}
    count = {{}}
"""
    condition: str
    steps: tuple[Step, ...]


class Misspelt(Step):
    """A step whose text names a field that it does not have."""

    TEXT = "{condtion}"
    condition: str


def test_a_line_that_is_a_field_stands_for_its_steps() -> None:
    """Each of their lines is indented like that line; no steps leave no line."""
    inner = Twice("b", (Default("o.x", "1"), Default("o.y", "2")))
    assert lines_of([Twice("a", (inner,)), Twice("c", ())]) == [
        "if a:",
        "    if b:",
        "        o.x = 1",
        "        o.y = 2",
        "        count = {}",
        "    count = {}",
        "if c:",
        "    count = {}",
    ]


def test_an_unknown_name_in_a_text_is_an_error() -> None:
    """It is one in a template, too."""
    with pytest.raises(AttributeError, match="condtion"):
        lines_of(Misspelt("a"))


def test_values_are_equal_if_their_fields_are() -> None:
    """This is how versions are distinguished."""
    assert Default("o.x", "1") == Default(target="o.x", value="1")
    assert hash(Default("o.x", "1")) == hash(Default("o.x", "1"))
    assert Default("o.x", "1") != Default("o.x", "2")
    assert repr(Default("o.x", "1")) == "Default(target='o.x', value='1')"


def test_layouts_know_the_versions_that_use_them() -> None:
    """A struct that a version does not change keeps its layout, and its function."""
    used = versions_of(layouts_of(CreateTopicsRequest.facts()))
    found = [(layout.name, ranges(versions)) for layout, versions in used.items()]
    assert [versions for name, versions in found if name == "CreatableTopic"] == ["0-4", "5-7"]
    assert [versions for name, versions in found if name == "CreateTopicsRequest"] == [
        "0", "1-4", "5-7",
    ]  # fmt: skip


def test_versions_are_described_in_few_words() -> None:
    """This is the comment above a function."""
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert ranges([3]) == "3"
