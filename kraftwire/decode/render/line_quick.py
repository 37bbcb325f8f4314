"""The short way to a body under its former name; it is at home in `kraftwire.decode.body.quick`."""

from __future__ import annotations

from kraftwire.decode.body.quick import quick_body, quick_errors

__all__ = ["quick_body", "quick_errors"]
