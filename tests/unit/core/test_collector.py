"""Rarer collections: for the program that requests them, and no longer than that."""

from __future__ import annotations

import gc

from kraftwire.collector import rare_collection


def test_thresholds_are_raised_within_a_context_only() -> None:
    """The program's own settings are restored."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        with rare_collection():
            assert gc.get_threshold() > (700, 10, 10)
            assert gc.isenabled()
        assert gc.get_threshold() == (700, 10, 10)
    finally:
        gc.set_threshold(*before)
