"""Reads many elements at once for the slow reader, which otherwise reads them one by one.

Each function reads the valid elements and stops at the first invalid one; the reader then continues
there and reports what is wrong.
"""

from __future__ import annotations

from kraftwire.errors import WireError
from kraftwire.limits import STRING_SIZE_MAX
from kraftwire.wire.fast import Numbers, Packer
from kraftwire.wire.sizes import FIXED_CODES, FIXED_SIZES, min_struct_size
from kraftwire.wire.varint import read_uvarint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kraftwire.wire.facts import FieldFacts, StructFacts

_NUMBERS = {name: Numbers(code[1:]) for name, code in FIXED_CODES.items() if name != "uuid"}


class StructPlan:
    """How to read a struct in one version; made once for all its objects in a message.

    `steps` are the fields in wire order: either neighbours of fixed size, with the function that
    unpacks them and their size, or one field of variable size. `missing` are fields that are
    absent or tagged.
    """

    __slots__ = ("cls", "missing", "size_min", "steps", "tagged")

    def __init__(self, facts: StructFacts, version: int, is_flexible: bool) -> None:
        self.cls = facts.cls
        self.size_min = min_struct_size(facts, version, is_flexible)
        self.missing: list[FieldFacts] = []
        self.tagged: dict[int, FieldFacts] = {}
        self.steps: list[tuple[list[FieldFacts], Any, int]] = []
        fixed: list[FieldFacts] = []
        for each in facts.fields:
            if version in each.tagged or version not in each.versions:
                self.missing.append(each)
                if version in each.versions:
                    self.tagged[each.tag] = each
            elif each.type in FIXED_SIZES and not each.is_array:
                fixed.append(each)
            else:
                self._close(fixed)
                self.steps.append(([each], None, 0))
                fixed = []
        self._close(fixed)

    def _close(self, fixed: list[FieldFacts]) -> None:
        if fixed:
            packer = Packer(">" + "".join(FIXED_CODES[each.type][1:] for each in fixed))
            self.steps.append((fixed, packer.unpack_from, packer.size))


def elements(
    type_name: str, buf: bytes, position: int, count: int, *, compact: bool
) -> tuple[list[Any], int]:
    """Return the valid elements among the first `count` of an array, and the position after them.

    Arrays of structs are left to the reader, and so are arrays of bytes, which Kafka never uses.
    """
    if type_name in FIXED_SIZES:
        return _numbers(type_name, buf, position, count)
    if type_name == "string":
        return _strings(buf, position, count, compact)
    return [], position


def _numbers(type_name: str, buf: bytes, position: int, count: int) -> tuple[list[Any], int]:
    size = FIXED_SIZES[type_name]
    count = min(count, (len(buf) - position) // size)
    end = position + size * count
    if type_name == "uuid":
        return [buf[at : at + size] for at in range(position, end, size)], end
    return [*_NUMBERS[type_name].unpack[count](buf, position)], end


def _strings(buf: bytes, position: int, count: int, compact: bool) -> tuple[list[str], int]:
    out: list[str] = []
    limit = len(buf)
    try:
        for _ in range(count):
            n = buf[position]
            if not compact:
                n = (n << 8) + buf[position + 1] + 1
                start = position + 2
            elif n < 128:
                start = position + 1
            else:
                n, start = read_uvarint(buf, position)
            end = start + n - 1
            if not 0 < n <= STRING_SIZE_MAX + 1 or end > limit:
                break
            out.append(buf[start:end].decode())
            position = end
    except (IndexError, UnicodeDecodeError, WireError):
        pass  # the reader will report this element
    return out, position


def tags(
    buf: bytes, position: int, count: int, known: dict[int, Any], out: dict[int, bytes]
) -> tuple[int, int]:
    """Put unknown tagged fields into `out`, up to one that is known or incomplete.

    Return how many of `count` were read, and the position after them.
    """
    limit = len(buf)
    done = 0
    try:
        for done in range(count):  # noqa: B007
            tag = buf[position]
            start = position + 1
            if tag > 127:
                tag, start = read_uvarint(buf, position)
            size = buf[start]
            start += 1
            if size > 127:
                size, start = read_uvarint(buf, start - 1)
            end = start + size
            if tag in known or end > limit:
                break
            out[tag] = buf[start:end]
            position = end
        else:
            done = count
    except (IndexError, WireError):
        pass  # the reader will report this tagged field
    return done, position
