"""Unknown tagged fields are noticed in any struct of a message, by the engine and by Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftwire.decode.body.ordinary import form_of
from kraftwire.decode.body.scan import error_codes, has_unknown_tags
from kraftwire.messages import find
from kraftwire.wire.message import Message, Struct
from tests.support.messages.vectors import vectors

_CORRELATION = bytes(4)
_ANONYMOUS = bytes(8) + b"\xff\xff"


def _structs(value: Any) -> Iterator[Struct]:
    if isinstance(value, list):
        for each in value:
            yield from _structs(each)
    elif isinstance(value, Struct):
        yield value
        for name in type(value).__slots__:
            if name != "unknown_tagged_fields":
                yield from _structs(getattr(value, name))


def _ordinary(message: Message, version: int) -> Any:
    """What the short path says about a frame of this message; None where it has no form."""
    is_request = message.KIND == "request"
    form = form_of(is_request, message.API_KEY, version)
    if form is None or form.message is not type(message):
        return None
    header = (_ANONYMOUS if is_request else _CORRELATION) + (b"\0" if form.has_tags else b"")
    found = form.read(header + message.encode(version), is_request, form.has_tags)
    return found or ()


@pytest.mark.parametrize("name", sorted(vectors()))
def test_a_tag_is_noticed_wherever_it_is(name: str) -> None:
    """Lines, trees and tables leave a frame with unknown tags to the full decoder."""
    cls: type[Message] = find(name)
    for vector in vectors()[name]:
        if vector.version not in cls.facts().flexible:
            continue
        message, _ = cls.decode(vector.data, vector.version)
        assert not has_unknown_tags(message, vector.version)
        has_form = _ordinary(message, vector.version) is not None
        for struct in _structs(message):
            before = struct.unknown_tagged_fields  # type: ignore[attr-defined]
            struct.unknown_tagged_fields = {9000: b"x"}  # type: ignore[attr-defined]
            assert has_unknown_tags(message, vector.version), struct
            if has_form and vector.data != message.encode(vector.version):
                assert _ordinary(message, vector.version) == ()
            struct.unknown_tagged_fields = before  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(each for each in vectors() if each.endswith("Response")))
def test_a_set_error_code_is_noticed_wherever_it_is(name: str) -> None:
    """Codes are looked for only where the short path says that there may be any."""
    cls: type[Message] = find(name)
    for vector in vectors()[name]:
        message, _ = cls.decode(vector.data, vector.version)
        found = _ordinary(message, vector.version)
        if found:
            assert found[1] or not error_codes(found[0], vector.version)
