"""Summarizes requests and responses in a few words, for the last column of lines."""

from __future__ import annotations

from kraftwire.inspect.facts.registry import REQUEST_FACTS, RESPONSE_FACTS

__all__ = ["REQUEST_FACTS", "RESPONSE_FACTS"]
