"""Values that a version cannot carry: Kafka refuses some and leaves others out; we do the same.

A field outside its versions must hold its default unless the schema calls it ignorable. A
mistake there either loses data silently or breaks a caller that fills one object for all versions.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kraftwire.errors import WireError
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message
from tests.support.kafka.java_cases import Case, Judge, check_each
from tests.support.messages.random_messages import random_message
from tests.support.messages.vectors import canonical

# Kafka's converters, not its serializers, refuse JSON of a struct that the version does not have.
_CONVERTER_REFUSES = "Can't read version"


def test_foreign_fields_are_refused_or_left_out_as_in_kafka(judge: Judge) -> None:
    """Both outcomes matter: the same messages are refused, the others have the same bytes."""
    peer, all_cases = judge
    versions = peer.message_versions()
    ours = [
        # A field that no version of the judge's release has is unknown to it.
        random_message(
            case.message_class, case.version, case.source, foreign_versions=versions[case.name]
        )
        for case in all_cases
    ]
    answers = peer.ask(
        case.ask("write", json=_json_of_all_versions(case.message_class.facts().root, message))
        for case, message in zip(all_cases, ours, strict=True)
    )
    check_each(_check_foreign_fields, zip(all_cases, ours, answers, strict=True))


def _check_foreign_fields(case: Case, message: Message, answer: dict[str, Any]) -> None:
    if _CONVERTER_REFUSES in answer.get("error", ""):
        return
    if "error" in answer:
        with pytest.raises(WireError):
            message.encode(case.version)
        with pytest.raises(WireError):
            message.to_json(case.version)
    else:
        assert message.encode(case.version).hex() == answer["hex"]
        assert canonical(message.to_json(case.version)) == canonical(answer["json"])


def _json_of_all_versions(struct: StructFacts, value: Any) -> dict[str, Any]:
    """Every field of a message under its key, whatever the version, as Kafka's converters allow."""
    return {
        field.name: _field_json(field, getattr(value, field.attribute)) for field in struct.fields
    }


def _field_json(field: FieldFacts, value: Any) -> Any:
    if value is None and field.struct is not None and not _is_ever_nullable(field):
        value = field.struct.cls()  # None stands for a tagged struct at its default
    if value is None:
        return None
    if field.is_array:
        return [_element_json(field, element) for element in value]
    return _element_json(field, value)


def _is_ever_nullable(field: FieldFacts) -> bool:
    return field.nullable.low <= field.nullable.high


def _element_json(field: FieldFacts, value: Any) -> Any:
    if field.struct is not None:
        return _json_of_all_versions(field.struct, value)
    if field.type == "uuid":
        return uuid_to_text(value)
    if field.type in ("bytes", "records"):
        return base64.b64encode(value).decode()
    return value
