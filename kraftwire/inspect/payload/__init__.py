"""Prints keys, values and headers of records as text."""

from __future__ import annotations

from kraftwire.inspect.payload.text import Payload, payload_of

__all__ = ["Payload", "payload_of"]
