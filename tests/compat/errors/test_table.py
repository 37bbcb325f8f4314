"""The page of client errors: its table is what the calls would write."""

from __future__ import annotations

from kraftwire.messages import API_NAMES
from tests.compat.errors.meeting import Met
from tests.compat.errors.program import COMMANDS
from tests.compat.errors.refusals import REFUSALS
from tests.compat.errors.table import PAGE, page, read_cells, rows_of

_RETRIABLE, _FATAL = REFUSALS["Produce"]


def test_versions_with_the_same_outcome_are_one() -> None:
    """Versions that the client was not brought to are gaps only at the ends."""
    outcomes = {0: "raised", 1: "raised", 2: "swallowed", 3: "raised"}
    found = [Met("Produce", _FATAL, version, outcome) for version, outcome in outcomes.items()]
    found.append(Met("Produce", _RETRIABLE, 3, "tried 3 times"))
    assert rows_of("a client", found) == {
        ("Produce", _FATAL, "a client"): "v0-1 raised; v2 swallowed; v3 raised",
        ("Produce", _RETRIABLE, "a client"): "v3 tried 3 times",
    }


def test_the_page_is_written_as_it_is_read() -> None:
    """A run compares cells, so none may be lost."""
    cells = read_cells()
    assert page(cells, COMMANDS) == PAGE.read_text("utf-8")
    assert {client for _, _, client in cells} == set(COMMANDS)
    assert {(api, error) for api, error, _ in cells} <= {
        (api, error) for api, errors in REFUSALS.items() for error in errors
    }


def test_errors_are_of_apis() -> None:
    """A name that is none would never be looked for."""
    assert set(REFUSALS) <= set(API_NAMES.values())
