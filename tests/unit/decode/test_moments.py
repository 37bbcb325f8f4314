"""Durations, moments and numbers, as people read them."""

from __future__ import annotations

import pytest

from kraftwire.decode.text import double_text, duration_text, moment_text

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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (1000.0, "1000.0"), (0.1, "0.1"),
        (0.001, "0.001"), (9.999e-4, "9.999E-4"), (9999999.0, "9999999.0"), (1e7, "1.0E7"),
        (12345678.0, "1.2345678E7"), (-1e-5, "-1.0E-5"), (5e-324, "4.9E-324"), (1e21, "1.0E21"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"), (42485600.0, "4.24856E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"), (123456789.125, "1.23456789125E8"),
        (float("nan"), "NaN"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity"),
        ("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity"),
    ],
)  # fmt: skip
def test_numbers_look_as_java_prints_them(value: float | str, text: str) -> None:
    """Taken from `Double.toString`."""
    assert double_text(value) == text
