"""The report of an import: what changed on the wire between two releases."""

from __future__ import annotations

from typing import Any

from tests.unit.tools.test_import_schemas import field, parsed, request
from tools.import_schemas.report import wire_changes


def report(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    text = wire_changes({old["name"]: parsed(old)}, {new["name"]: parsed(new)})
    return [line.strip() for line in text.splitlines()]


def test_the_report_names_versions_and_fields_that_came_and_went() -> None:
    """People read it before they decide to support a release."""
    old = request("0-1", field("Gone", versions="0"), field("Kept"))
    new = request("1-2", field("Kept"), field("New", "string", "2+", default="x"))
    assert report(old, new) == [
        "PingRequest",
        "versions 0-1 -> 1-2 (new: 2; removed: 0)",
        "added    New: string, versions 2+, default 'x'",
        "removed  Gone: int32, versions 0",
    ]


def test_the_report_names_a_changed_type_and_default() -> None:
    """Such a change breaks bytes that both releases claim to read."""
    old = request("0", field("Size", default="1"))
    new = request("0", field("Size", "int64", default="2", nullableVersions="0+"))
    assert report(old, new) == [
        "PingRequest",
        "changed  Size: type int32 -> int64; nullable none -> 0+; default 1 -> 2",
        "changed  the layout of versions that both releases have: 0",
    ]


def test_the_report_tells_a_renamed_field_from_a_new_one() -> None:
    """A new name for the same bytes concerns readers of JSON only."""
    old, new = request("0", field("CandidateId")), request("0", field("ReplicaId"))
    assert report(old, new) == ["PingRequest", "renamed  CandidateId -> ReplicaId"]


def test_the_report_follows_a_renamed_message() -> None:
    """One message that changed its name is not one removed and one added."""
    old, new = request("0", name="PokeRequest"), request("0-1")
    expected = ["PingRequest", "renamed from PokeRequest", "versions 0 -> 0-1 (new: 1)"]
    assert report(old, new) == expected


def test_the_report_of_equal_releases_is_empty() -> None:
    """No news is an empty page."""
    assert report(request("0", field("A")), request("0", field("A"))) == []
