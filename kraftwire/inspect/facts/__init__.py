"""The essentials of a request or response in a few words; see README.md."""

from __future__ import annotations

from kraftwire.inspect.facts.table import request_facts, response_facts

__all__ = ["request_facts", "response_facts"]
