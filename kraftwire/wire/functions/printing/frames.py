"""The functions of printers, which hold the steps."""

from __future__ import annotations

from kraftwire.wire.functions.printing.steps import NoTopic
from kraftwire.wire.functions.steps import Function, Step

__all__ = ["PrintArray", "PrintRoot", "PrintTags", "TagBranch"]


class TagBranch(Step):
    """The branch that prints one tagged field; Kafka writes none at its default."""

    TEXT = """
{word} tag == {tag}:
    if buf[pos:end] == {default}:
        raise ValueError
    {steps}
    text += f',{text}'
"""
    word: str
    tag: int
    default: str
    steps: tuple[Step, ...]
    text: str


class PrintTags(Function):
    """The function that prints the tagged fields of a struct, in the order of tags."""

    TEXT = """
def {name}(buf, pos, count, left{more}):
    # Versions {versions}.
    text = ""
    last = -1
    for _ in range(count):
        tag = buf[pos]
        size = buf[pos + 1]
        pos += 2
        if tag > 127 or size > 127:
            tag, size, pos = long_tag(buf, pos - 2)
        end = pos + size
        if tag <= last:
            raise ValueError
        last = tag
        {branches}
        else:
            raise ValueError
        if pos != end:
            raise ValueError
    return text, pos, left
"""
    more: str
    branches: tuple[TagBranch, ...]


class PrintArray(Function):
    """The function that prints an array of `count` structs."""

    TEXT = """
def {name}(buf, pos, count, left{more}):
    # Versions {versions}.
    left -= {weight} * count
    if left < 0 or {min_size} * count > len(buf) - pos:
        raise ValueError
    rows = []
    for _ in range(count):
        {steps}
        rows.append(f'{text}')
    return f'[{{",".join(rows)}}]', pos, left
"""
    more: str
    weight: int
    min_size: int
    steps: tuple[Step, ...]
    text: str


class PrintRoot(Function):
    """The function that prints a message, whose records become gaps."""

    TEXT = """
def {name}(buf, pos, left, gaps):
    # Versions {versions}.
    {topic}
    left -= {weight}
    if left < 0:
        raise ValueError
    {steps}
    return f'{text}', pos
"""
    topic: tuple[NoTopic, ...]
    weight: int
    steps: tuple[Step, ...]
    text: str
