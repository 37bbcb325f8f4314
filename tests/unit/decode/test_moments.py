"""Durations and moments, as people read them."""

from __future__ import annotations

import pytest

from kraftwire.decode.text import duration_text, moment_text

_START = 1_760_000_000.0  # 2025-10-09T08:53:20Z
_DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "500 ms"),
        (90, "90 s"),
        (150, "2 min 30 s"),
        (7199, "119 min 59 s"),
        (7200, "2 h 00 min"),
        (47 * 3600 + 59 * 60, "47 h 59 min"),
        (5 * _DAY, "5 d 0 h"),
        (7 * _DAY + 3 * 3600, "7 d 3 h"),
    ],
)
def test_a_duration_has_a_suitable_unit(seconds: float, text: str) -> None:
    """Nobody knows how long 7200 minutes are."""
    assert duration_text(seconds) == text


def test_a_moment_of_a_short_story_is_relative() -> None:
    """The head of the story has the time of day."""
    assert moment_text(_START + 12.5, _START, _START + 3600) == "+12.500"
    assert moment_text(_START + 12.5, _START, _START + 3600, digits=1) == "+12.5"


def test_a_moment_of_a_long_story_can_be_found_elsewhere() -> None:
    """Logs of brokers have the time of day, and no seconds since our start."""
    found = moment_text(_START + 4 * _DAY + 0.25, _START, _START + 5 * _DAY)
    assert found == "+345600.250 2025-10-13T08:53:20Z"
