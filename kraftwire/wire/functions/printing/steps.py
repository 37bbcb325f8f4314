"""The steps of printers: a class for each kind.

A printer has the input in `buf` and its position in `pos`; `n` is the last length that was read.
Starts are counted from `pos`. `left` is what is left of the budget of structs and elements.
"""

from __future__ import annotations

from kraftwire.wire.functions.decoding.steps import Advance
from kraftwire.wire.functions.steps import Step

__all__ = [
    "Gap", "NoTags", "NoTopic", "NoTopicName", "OneStruct", "OrNull", "PrintBytes", "PrintValue",
    "RefuseOtherNull", "Spend", "StructOrNull", "Structs", "Tags", "TopicName", "Values",
]  # fmt: skip


class PrintValue(Step):
    """Make text of the bytes of a string, of a byte string, or of an array of numbers."""

    TEXT = "{target} = {maker}[buf[{start} : (pos := {stop})]]"
    target: str
    maker: str
    start: str
    stop: str


class PrintBytes(PrintValue):
    """Make text of bytes."""

    TEXT = "{target} = {maker}(buf[{start} : (pos := {stop})])"


class TopicName(Step):
    """Make text of the name of the topic that records belong to, and keep the name."""

    TEXT = """
told = buf[{start} : (pos := {stop})]
{target} = TEXTS[told]
"""
    target: str
    start: str
    stop: str


class NoTopic(Step):
    """Begin a message: nothing has named a topic."""

    TEXT = "topic = topic_id = None"


class NoTopicName(Step):
    """Note that the topic has no name."""

    TEXT = "told = None"


class Gap(Step):
    """Leave a gap for records: a character that no JSON text has."""

    TEXT = """
gaps.append(({start}, (pos := {stop}), {topic}))
{target} = "\\0"
"""
    target: str
    start: str
    stop: str
    topic: str


class Spend(Step):
    """Subtract the elements of an array from the budget."""

    TEXT = """
left -= {count}
if left < 0:
    raise ValueError
"""
    count: str


class Values(Step):
    """Make text of an array of strings, of byte strings or of uuids."""

    TEXT = "{target}, pos = {maker}(buf, {start}, {count})"
    target: str
    maker: str
    start: str
    count: str


class Structs(Step):
    """Make text of an array of structs."""

    TEXT = "{target}, pos, left = {function}(buf, {start}, {count}, left{more})"
    target: str
    function: str
    start: str
    count: str
    more: str


class OneStruct(Step):
    """Make text of a struct by itself: an array of one, without its brackets.

    The function takes an element from the budget that is none.
    """

    TEXT = """
{target}, pos, left = {function}(buf, {start}, 1, left + 1{more})
{target} = {target}[1:-1]
"""
    target: str
    function: str
    start: str
    more: str


class StructOrNull(Step):
    """Make text of a struct that may be null."""

    TEXT = """
if n == 1:
    {one}
elif n == {null}:
    {target} = "null"
    pos += {at}
else:
    raise ValueError
"""
    target: str
    one: OneStruct
    null: int
    at: int


class RefuseOtherNull(Step):
    """Refuse a length below that of null."""

    TEXT = """
if n < -1:
    raise ValueError
"""


class OrNull(Step):
    """Make text of a value unless it is null or empty; `skip` moves past its length."""

    TEXT = """
if {condition}:
    {steps}
else:
    {target} = {empty}
    {skip}
"""
    condition: str
    steps: tuple[Step, ...]
    target: str
    empty: str
    skip: tuple[Advance | NoTopicName, ...]


class Tags(Step):
    """Make text of tagged fields, by a function of their own."""

    TEXT = """
if n:
    tags, pos, left = {function}(buf, pos, n, left{more})
else:
    tags = ""
"""
    function: str
    more: str


class NoTags(Step):
    """Refuse tagged fields, of which none is known."""

    TEXT = """
if n:
    raise ValueError
"""
