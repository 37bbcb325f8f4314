"""Unknown tagged fields are noticed in any struct of a message, by the engine and by Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftwire import engine
from kraftwire.decode.body import scan
from kraftwire.messages import find
from kraftwire.wire.message import Message, Struct
from kraftwire.wire.plans import unknown_tags_check
from tests.support.vectors import vectors


def _structs(value: Any) -> Iterator[Struct]:
    if isinstance(value, list):
        for each in value:
            yield from _structs(each)
    elif isinstance(value, Struct):
        yield value
        for name in type(value).__slots__:
            if name != "unknown_tagged_fields":
                yield from _structs(getattr(value, name))


@pytest.mark.parametrize("name", sorted(vectors()))
def test_a_tag_is_noticed_wherever_it_is(name: str) -> None:
    """Lines, trees and tables leave a frame with unknown tags to the full decoder."""
    if engine.core is None:
        pytest.skip("without the engine there is one check, which test_line_paths.py covers")
    cls: type[Message] = find(name)
    for vector in vectors()[name]:
        if vector.version not in cls.facts().flexible:
            continue
        message, _ = cls.decode(vector.data, vector.version)
        checks = (
            unknown_tags_check(cls, vector.version),
            scan._tag_check(scan._structs.plan(cls, vector.version)),
        )
        assert not any(check(message) for check in checks if check is not None)
        for struct in _structs(message):
            before = struct.unknown_tagged_fields  # type: ignore[attr-defined]
            struct.unknown_tagged_fields = {9000: b"x"}  # type: ignore[attr-defined]
            assert all(check is not None and check(message) for check in checks), struct
            struct.unknown_tagged_fields = before  # type: ignore[attr-defined]
