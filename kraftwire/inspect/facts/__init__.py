"""Summarizes requests and responses in a few words, for the last column of lines."""

from __future__ import annotations

from kraftwire.inspect.facts.registry import request_facts, response_facts

__all__ = ["request_facts", "response_facts"]
